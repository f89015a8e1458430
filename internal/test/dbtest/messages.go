package dbtest

import (
	"encoding/binary"
	"sync/atomic"
)

// messages counts a PostgreSQL server's answers to a client. The connection is not encrypted.
type messages struct {
	header []byte // of the current message: its type, its length and the beginning of its body
	skip   int    // bytes of its body that are still to come
}

// pingMessage is what pgx sends to see whether a connection works.
var pingMessage = []byte("Q\x00\x00\x00\x0c-- ping\x00")

// tagLength is how much of a body is read: enough for the names of commands.
const tagLength = len("COMMIT\x00")

// scan counts the statements that were completed, and how many of them committed.
func (m *messages) scan(b []byte, statements, commits *atomic.Int64) {
	for len(b) > 0 {
		if m.skip > 0 {
			n := min(m.skip, len(b))
			b, m.skip = b[n:], m.skip-n
			continue
		}
		m.header = append(m.header, b[0])
		b = b[1:]
		if len(m.header) < 5 {
			continue
		}
		body := int(binary.BigEndian.Uint32(m.header[1:5])) - 4
		if read := len(m.header) - 5; read < min(body, tagLength) {
			continue
		}
		if m.header[0] == 'C' { // CommandComplete
			statements.Add(1)
			if string(m.header[5:]) == "COMMIT\x00" {
				commits.Add(1)
			}
		}
		m.skip = max(0, body-tagLength)
		m.header = m.header[:0]
	}
}
