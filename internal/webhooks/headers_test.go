package webhooks

import (
	"errors"
	"strconv"
	"strings"
	"testing"
)

func TestCheckHeaders(t *testing.T) {
	many := func(n int) (all []Header) {
		for i := range n {
			all = append(all, Header{"X-" + strconv.Itoa(i), "v"})
		}
		return all
	}
	for name, c := range map[string]struct {
		headers []Header
		index   int // -2: they are accepted
	}{
		"none":                   {nil, -2},
		"one":                    {[]Header{{"Authorization", "Bearer a b~"}}, -2},
		"as many as possible":    {many(MaxHeaders), -2},
		"one more":               {many(MaxHeaders + 1), -1},
		"the longest":            {[]Header{{strings.Repeat("n", MaxHeaderName), strings.Repeat("v", MaxHeaderValue)}}, -2},
		"a longer name":          {[]Header{{strings.Repeat("n", MaxHeaderName+1), "v"}}, 0},
		"a longer value":         {[]Header{{"X-A", strings.Repeat("v", MaxHeaderValue+1)}}, 0},
		"no name":                {[]Header{{"X-A", "v"}, {"", "v"}}, 1},
		"no value":               {[]Header{{"X-A", ""}}, 0},
		"a blank in the name":    {[]Header{{"X A", "v"}}, 0},
		"a line break":           {[]Header{{"X-A", "v\r\nX-Service-Event: x"}}, 0},
		"a line break in a name": {[]Header{{"X-A\n", "v"}}, 0},
		"a blank at the end":     {[]Header{{"X-A", "v "}}, 0},
		"another alphabet":       {[]Header{{"X-A", "é"}}, 0},
		"twice":                  {[]Header{{"X-A", "v"}, {"x-a", "w"}}, 1},
		"of the connection":      {[]Header{{"Host", "v"}}, 0},
		"of the body":            {[]Header{{"content-TYPE", "v"}}, 0},
		"of the signature":       {[]Header{{"X-Service-Signature", "v"}}, 0},
		"of the standard":        {[]Header{{"WEBHOOK-ID", "v"}}, 0},
		"of the proxy":           {[]Header{{"Proxy-Authorization", "v"}}, 0},
	} {
		err := CheckHeaders(c.headers)
		var wrong *HeaderError
		switch {
		case c.index == -2 && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.index != -2 && (!errors.As(err, &wrong) || wrong.Index != c.index):
			t.Errorf("%s: %v, want header %d to be refused", name, err, c.index)
		}
	}
}
