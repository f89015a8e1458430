package webhooks

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/access"
)

func TestCheckHeaders(t *testing.T) {
	many := func(n int) (all []access.WebhookHeader) {
		for i := range n {
			all = append(all, access.WebhookHeader{Name: "X-" + strconv.Itoa(i), Value: "v"})
		}
		return all
	}
	for name, c := range map[string]struct {
		headers []access.WebhookHeader
		index   int // -2: they are accepted
	}{
		"none":                   {nil, -2},
		"one":                    {[]access.WebhookHeader{{Name: "Authorization", Value: "Bearer a b~"}}, -2},
		"as many as possible":    {many(MaxHeaders), -2},
		"one more":               {many(MaxHeaders + 1), -1},
		"the longest":            {[]access.WebhookHeader{{Name: strings.Repeat("n", MaxHeaderName), Value: strings.Repeat("v", MaxHeaderValue)}}, -2},
		"a longer name":          {[]access.WebhookHeader{{Name: strings.Repeat("n", MaxHeaderName+1), Value: "v"}}, 0},
		"a longer value":         {[]access.WebhookHeader{{Name: "X-A", Value: strings.Repeat("v", MaxHeaderValue+1)}}, 0},
		"no name":                {[]access.WebhookHeader{{Name: "X-A", Value: "v"}, {Name: "", Value: "v"}}, 1},
		"no value":               {[]access.WebhookHeader{{Name: "X-A", Value: ""}}, 0},
		"a blank in the name":    {[]access.WebhookHeader{{Name: "X A", Value: "v"}}, 0},
		"a line break":           {[]access.WebhookHeader{{Name: "X-A", Value: "v\r\nX-Service-Event: x"}}, 0},
		"a line break in a name": {[]access.WebhookHeader{{Name: "X-A\n", Value: "v"}}, 0},
		"a blank at the end":     {[]access.WebhookHeader{{Name: "X-A", Value: "v "}}, 0},
		"another alphabet":       {[]access.WebhookHeader{{Name: "X-A", Value: "é"}}, 0},
		"twice":                  {[]access.WebhookHeader{{Name: "X-A", Value: "v"}, {Name: "x-a", Value: "w"}}, 1},
		"of the connection":      {[]access.WebhookHeader{{Name: "Host", Value: "v"}}, 0},
		"of the body":            {[]access.WebhookHeader{{Name: "content-TYPE", Value: "v"}}, 0},
		"of the signature":       {[]access.WebhookHeader{{Name: "X-Service-Signature", Value: "v"}}, 0},
		"of the standard":        {[]access.WebhookHeader{{Name: "WEBHOOK-ID", Value: "v"}}, 0},
		"of the proxy":           {[]access.WebhookHeader{{Name: "Proxy-Authorization", Value: "v"}}, 0},
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
