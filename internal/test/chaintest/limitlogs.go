package chaintest

import (
	"encoding/json"
	"fmt"
	"strings"
)

// LimitLogs refuses requests for the logs of a range of more than Blocks blocks, or with more than Logs logs; 0 means
// no limit.
type LimitLogs struct {
	contentFault
	Blocks, Logs uint64
	Wording      Wording
}

// Wording is how a node refuses a range. Message may have a verb for the first and one for the last block of the range
// that the node suggests.
type Wording struct {
	Code    int
	Message string
}

// Wordings are how well-known nodes refuse a range of logs.
var Wordings = []Wording{
	{-32602, "Log response size exceeded. Based on your parameters and the response size limit, this block range should work: [0x%x, 0x%x]"},
	{-32005, "query returned more than 10000 results. Try with this block range [0x%x, 0x%x]."},
	{-32602, "query exceeds max results 20000, retry with the range %d-%d"},
	{-32614, "eth_getLogs is limited to a 10,000 range"},
	{-32600, "block range is too wide"},
	{-32047, "Invalid eth_getLogs request. 'fromBlock'-'toBlock' range too large. Max range: 800"},
	{-32000, "query timeout exceeded"},
}

func (f LimitLogs) wrapCalls(_ *Proxy, ask callHandler) callHandler {
	return func(c call) answer {
		a := ask(c)
		filter, ok := rangeOf(c, ask)
		if !ok || a.Error != nil {
			return a
		}
		var logs []json.RawMessage
		if json.Unmarshal(a.Result, &logs) != nil {
			return a
		}
		first, last := uint64(*filter.FromBlock), uint64(*filter.ToBlock)
		if last > first && (f.Blocks > 0 && last-first+1 > f.Blocks || f.Logs > 0 && uint64(len(logs)) > f.Logs) {
			message := f.Wording.Message
			if strings.Contains(message, "%") {
				message = fmt.Sprintf(message, first, first+(last-first)/2)
			}
			return answer{Error: &refusal{f.Wording.Code, message}}
		}
		return a
	}
}
