package chain

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"regexp"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// Logs decodes a JSON list of logs with the same result as go-ethereum, several times as fast: most of the data that a
// back-fill reads is logs.
type Logs []types.Log

// UnmarshalJSON reads logs. It leaves unusual notation to go-ethereum, except numbers with leading zeros.
func (l *Logs) UnmarshalJSON(data []byte) error {
	var found foundLogs
	err := found.UnmarshalJSON(data)
	*l = found.logs
	return err
}

// foundLogs is Logs that also reports whether its numbers had leading zeros.
type foundLogs struct {
	logs         Logs
	leadingZeros bool
}

// HasLeadingZeros reports whether a number in the logs had leading zeros.
func (l *foundLogs) HasLeadingZeros() bool { return l.leadingZeros }

// UnmarshalJSON reads logs as Logs does.
func (l *foundLogs) UnmarshalJSON(data []byte) error {
	if logs, ok := parseLogs(data); ok {
		*l = foundLogs{logs: logs}
		return nil
	}
	short := withoutLeadingZeros(data)
	*l = foundLogs{leadingZeros: len(short) < len(data)}
	return json.Unmarshal(short, (*[]types.Log)(&l.logs))
}

// numberWithZeros is a number in a log that has leading zeros.
var numberWithZeros = regexp.MustCompile(`"(blockNumber|blockTimestamp|transactionIndex|logIndex)"(\s*:\s*)"0x0+([0-9a-fA-F]{1,16})"`)

// withoutLeadingZeros returns a list of logs without leading zeros in its numbers.
func withoutLeadingZeros(logs []byte) []byte {
	return numberWithZeros.ReplaceAll(logs, []byte(`"$1"$2"0x$3"`))
}

// minLog is about the length of the shortest log in JSON, in bytes.
const minLog = 300

// parseLogs parses a list of logs. ok is false if the notation is unusual.
func parseLogs(data []byte) (logs []types.Log, ok bool) {
	p := logParser{rest: data}
	logs, ok = p.logs()
	return logs, ok && p.atEnd()
}

// parseAnswer parses a JSON-RPC answer with a list of logs as its result. ok is false if the notation is unusual.
func parseAnswer(data []byte) (logs []types.Log, ok bool) {
	p := logParser{rest: data}
	if !p.next('{') {
		return nil, false
	}
	found := false
	for {
		key, ok := p.text()
		if !ok || !p.next(':') {
			return nil, false
		}
		switch string(key) {
		case "jsonrpc":
			_, ok = p.text()
		case "id":
			ok = p.decimal()
		case "result":
			if ok = !found; ok {
				logs, found = p.logs()
				ok = found
			}
		default:
			ok = false
		}
		if !ok {
			return nil, false
		}
		if !p.next(',') {
			return logs, p.next('}') && found && p.atEnd()
		}
	}
}

// logParser parses JSON. Its methods report whether they found their kind of token at the beginning of rest.
type logParser struct{ rest []byte }

func (p *logParser) logs() (logs []types.Log, ok bool) {
	if !p.next('[') {
		return nil, false
	}
	logs = make([]types.Log, 0, len(p.rest)/minLog)
	if p.next(']') {
		return logs, true
	}
	for {
		var log types.Log
		if !p.log(&log) {
			return nil, false
		}
		logs = append(logs, log)
		if !p.next(',') {
			return logs, p.next(']')
		}
	}
}

func (p *logParser) space() {
	for len(p.rest) > 0 && (p.rest[0] == ' ' || p.rest[0] == '\n' || p.rest[0] == '\t' || p.rest[0] == '\r') {
		p.rest = p.rest[1:]
	}
}

func (p *logParser) next(c byte) bool {
	p.space()
	if len(p.rest) == 0 || p.rest[0] != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

func (p *logParser) atEnd() bool {
	p.space()
	return len(p.rest) == 0
}

// text parses a string of printable ASCII without escapes, and returns the text between its quotes.
func (p *logParser) text() (s []byte, ok bool) {
	if !p.next('"') {
		return nil, false
	}
	for i, c := range p.rest {
		switch {
		case c == '"':
			s, p.rest = p.rest[:i], p.rest[i+1:]
			return s, true
		case c == '\\' || c < ' ' || c > '~':
			return nil, false
		}
	}
	return nil, false
}

// digits parses a string of 0x and an even number of hexadecimal digits.
func (p *logParser) digits() (s []byte, ok bool) {
	s, ok = p.text()
	if !ok || len(s) < 2 || len(s)%2 != 0 || s[0] != '0' || s[1] != 'x' {
		return nil, false
	}
	return s[2:], true
}

// fixed parses len(into) bytes.
func (p *logParser) fixed(into []byte) bool {
	s, ok := p.digits()
	if !ok || len(s) != 2*len(into) {
		return false
	}
	_, err := hex.Decode(into, s)
	return err == nil
}

// number parses a quantity: 0x and hexadecimal digits without leading zeros.
func (p *logParser) number() (n uint64, ok bool) {
	s, ok := p.text()
	if !ok || len(s) < 3 || len(s) > 18 || s[0] != '0' || s[1] != 'x' || s[2] == '0' && len(s) > 3 {
		return 0, false
	}
	for _, c := range s[2:] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		n = n<<4 | uint64(c)
	}
	return n, true
}

func (p *logParser) bytes() (b []byte, ok bool) {
	s, ok := p.digits()
	if !ok {
		return nil, false
	}
	b = make([]byte, len(s)/2)
	_, err := hex.Decode(b, s)
	return b, err == nil
}

func (p *logParser) topics() (topics []common.Hash, ok bool) {
	const most = 4 // limit of the EVM
	if !p.next('[') {
		return nil, false
	}
	topics = make([]common.Hash, 0, most)
	if p.next(']') {
		return topics, true
	}
	for len(topics) < most {
		topics = append(topics, common.Hash{})
		if !p.fixed(topics[len(topics)-1][:]) {
			return nil, false
		}
		if p.next(']') {
			return topics, true
		}
		if !p.next(',') {
			return nil, false
		}
	}
	return nil, false
}

// decimal skips a number without fraction and exponent.
func (p *logParser) decimal() bool {
	p.space()
	n := 0
	for n < len(p.rest) && '0' <= p.rest[n] && p.rest[n] <= '9' {
		n++
	}
	ok := n == 1 || n > 1 && p.rest[0] != '0'
	p.rest = p.rest[n:]
	return ok
}

func (p *logParser) bool() (value, ok bool) {
	p.space()
	if rest, ok := bytes.CutPrefix(p.rest, []byte("false")); ok {
		p.rest = rest
		return false, true
	}
	p.rest, ok = bytes.CutPrefix(p.rest, []byte("true"))
	return true, ok
}

// The members of a log, as bits. The members in required must be present.
const (
	hasAddress = 1 << iota
	hasTopics
	hasData
	hasTxHash
	hasBlockNumber
	hasTxIndex
	hasBlockHash
	hasTimestamp
	hasIndex
	hasRemoved

	required = hasAddress | hasTopics | hasData | hasTxHash
)

func (p *logParser) log(l *types.Log) bool {
	if !p.next('{') {
		return false
	}
	seen := 0
	for {
		key, ok := p.text()
		if !ok || !p.next(':') {
			return false
		}
		member := p.member(l, string(key))
		if member == 0 {
			return false
		}
		seen |= member
		if p.next(',') {
			continue
		}
		return p.next('}') && seen&required == required
	}
}

// member parses the value of a log's member, and returns its bit; 0 if it is another member, or invalid.
func (p *logParser) member(l *types.Log, key string) int {
	var member int
	var n uint64
	ok := false
	switch key {
	case "address":
		member, ok = hasAddress, p.fixed(l.Address[:])
	case "topics":
		member = hasTopics
		l.Topics, ok = p.topics()
	case "data":
		member = hasData
		l.Data, ok = p.bytes()
	case "transactionHash":
		member, ok = hasTxHash, p.fixed(l.TxHash[:])
	case "blockNumber":
		member = hasBlockNumber
		l.BlockNumber, ok = p.number()
	case "transactionIndex":
		member = hasTxIndex
		n, ok = p.number()
		l.TxIndex = uint(n)
	case "blockHash":
		member, ok = hasBlockHash, p.fixed(l.BlockHash[:])
	case "blockTimestamp":
		member = hasTimestamp
		l.BlockTimestamp, ok = p.number()
	case "logIndex":
		member = hasIndex
		n, ok = p.number()
		l.Index = uint(n)
	case "removed":
		member = hasRemoved
		l.Removed, ok = p.bool()
	}
	if !ok {
		return 0
	}
	return member
}
