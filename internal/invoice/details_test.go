package invoice

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/test/expect"
)

// wantField checks that err is a *FieldError of a field, or nil for an empty name.
func wantField(t *testing.T, err error, field string) {
	t.Helper()
	var wrong *FieldError
	errors.As(err, &wrong)
	if got := wrong; field == "" && err != nil || field != "" && (got == nil || got.Field != field) {
		t.Errorf("error %v, want one of the field %q", err, field)
	}
}

func TestDetailsAtTheirLimits(t *testing.T) {
	pairs := func(n, key, value int) map[string]string {
		m := make(map[string]string)
		for i := range n {
			m[fmt.Sprintf("%02d", i)+strings.Repeat("ä", key-2)] = strings.Repeat("𝄞", value)
		}
		return m
	}
	for name, test := range map[string]struct {
		details Details
		field   string // the invalid field
	}{
		"nothing":                          {},
		"longest reference":                {Details{Reference: strings.Repeat("ä", 200)}, ""},
		"reference too long":               {Details{Reference: strings.Repeat("ä", 201)}, "reference"},
		"reference of blanks":              {Details{Reference: " \u200b"}, "reference"},
		"reference with NUL":               {Details{Reference: "a\x00"}, "reference"},
		"reference with a line break":      {Details{Reference: "a\nb"}, "reference"},
		"reference with an override":       {Details{Reference: "a\u202eb"}, "reference"},
		"unique without reference":         {Details{UniqueReference: true}, "uniqueReference"},
		"unique reference":                 {Details{UniqueReference: true, Reference: "r"}, ""},
		"longest description":              {Details{Description: strings.Repeat("ä", 500)}, ""},
		"description too long":             {Details{Description: strings.Repeat("ä", 501)}, "description"},
		"description with a control":       {Details{Description: "a\u0085"}, "description"},
		"longest customer id":              {Details{Customer: Customer{ID: strings.Repeat("ä", 200)}}, ""},
		"customer id too long":             {Details{Customer: Customer{ID: strings.Repeat("ä", 201)}}, "customer.id"},
		"longest e-mail address":           {Details{Customer: Customer{Email: strings.Repeat("a", 252) + "@b"}}, ""},
		"e-mail address too long":          {Details{Customer: Customer{Email: strings.Repeat("a", 253) + "@b"}}, "customer.email"},
		"e-mail address of another script": {Details{Customer: Customer{Email: "jörg@münchen.example"}}, ""},
		"e-mail address without a host":    {Details{Customer: Customer{Email: "a@"}}, "customer.email"},
		"e-mail address without a name":    {Details{Customer: Customer{Email: "@b"}}, "customer.email"},
		"e-mail address with a blank":      {Details{Customer: Customer{Email: "a b@c"}}, "customer.email"},
		"most metadata":                    {Details{Metadata: pairs(50, 40, 500)}, ""},
		"too much metadata":                {Details{Metadata: pairs(51, 2, 1)}, "metadata"},
		"key too long":                     {Details{Metadata: pairs(1, 41, 1)}, "metadata"},
		"empty key":                        {Details{Metadata: map[string]string{"": "x"}}, "metadata"},
		"key with brackets":                {Details{Metadata: map[string]string{"a]": "x"}}, "metadata"},
		"key with a control":               {Details{Metadata: map[string]string{"a\n": "x"}}, "metadata"},
		"value too long":                   {Details{Metadata: map[string]string{"k": strings.Repeat("ä", 501)}}, "metadata[k]"},
		"empty value":                      {Details{Metadata: map[string]string{"k": ""}}, ""},
		"value with lines":                 {Details{Metadata: map[string]string{"k": "a\r\n\tb"}}, ""},
		"value not UTF-8":                  {Details{Metadata: map[string]string{"k": "\xff"}}, "metadata"},
		"key not UTF-8":                    {Details{Metadata: map[string]string{"\xff": "v"}}, "metadata"},
		"reference not UTF-8":              {Details{Reference: "A\xff"}, "reference"},
		"value with NUL":                   {Details{Metadata: map[string]string{"k": "\x00"}}, "metadata[k]"},
	} {
		t.Run(name, func(t *testing.T) { wantField(t, test.details.Check(), test.field) })
	}
}

func TestReturnURLs(t *testing.T) {
	long := "https://shop.example/" + strings.Repeat("a", MaxReturnURL-len("https://shop.example/"))
	for text, ok := range map[string]bool{
		"https://shop.example/thanks?order=1&x=%23%5C": true,
		"https://shop.example":                         true,
		"https://shop.example:8443/":                   true,
		"https://xn--mnchen-3ya.example/":              true,
		"https://192.0.2.1/":                           true,
		"https://[2001:db8::1]:8443/":                  true,
		"https://shop.example/a@b":                     true,
		"http://localhost:3000/thanks":                 true,
		"http://127.0.0.1/":                            true,
		"http://[::1]:8080/":                           true,
		"http://app.localhost/":                        true,
		long:                                           true,
		long + "a":                                     false,
		"http://shop.example/":                         false,
		"http://localhost.shop.example/":               false,
		"http://127.0.0.1.shop.example/":               false,
		"HTTPS://shop.example/":                        false,
		"https:shop.example":                           false,
		"https:///shop.example":                        false,
		"https:/shop.example":                          false,
		"//shop.example/":                              false,
		"/thanks":                                      false,
		"shop.example":                                 false,
		"javascript:alert(1)":                          false,
		"javascript://shop.example/%0aalert(1)":        false,
		"data:text/html,x":                             false,
		"ftp://shop.example/":                          false,
		"https://user@shop.example/":                   false,
		"https://shop.example@evil.example/":           false,
		"https://shop.example:pw@evil.example/":        false,
		"https://@shop.example/":                       false,
		"https://shop.example#":                        false,
		"https://shop.example/#done":                   false,
		"https://evil.example#@shop.example/":          false,
		`https://evil.example\@shop.example/`:          false,
		`https:\\shop.example/`:                        false,
		`https://shop.example/\evil.example`:           false,
		"https://shop.example/a b":                     false,
		"https://shop.example/\n":                      false,
		"\thttps://shop.example/":                      false,
		"https://shop.example/\u00e4":                  false,
		"https://sh\u00f6p.example/":                   false,
		"https://shop.example\u3002evil.example/":      false,
		"https://shop%2eexample/":                      false,
		"https://Shop.example/":                        false,
		"https://shop.example./":                       false,
		"https://.shop.example/":                       false,
		"https://shop..example/":                       false,
		"https://-shop.example/":                       false,
		"https://shop.example:/":                       false,
		"https://shop.example:port/":                   false,
		"https://shop.example:65535/":                  true,
		"https://shop.example:65536/":                  false,
		"https://shop.example:0/":                      false,
		"https://1password.example/":                   true,
		"https://shop.0xyz/":                           true,
		"https://127.1/":                               false,
		"https://2130706433/":                          false,
		"https://0x7f000001/":                          false,
		"https://0x/":                                  false,
		"https://0177.0.0.1/":                          false,
		"https://256.0.0.1/":                           false,
		"https://shop.1/":                              false,
		"https://shop.0x1/":                            false,
		"https://[fe80::1%25eth0]/":                    false,
		"https://[2001:DB8::1]/":                       false,
		"https://" + strings.Repeat("a.", 127) + "a/":  false, // 255 bytes
		"https://" + strings.Repeat("a.", 126) + "a/":  true,
		`https://shop.example/"onclick="x`:             false,
		"https://shop.example/<script>":                false,
		"https://shop.example/{id}":                    false,
	} {
		t.Run(text[:min(len(text), 60)], func(t *testing.T) {
			field := ""
			if !ok {
				field = "cancelUrl"
			}
			wantField(t, Details{CancelURL: text}.Check(), field)
		})
	}
	wantField(t, Details{ReturnURL: "x"}.Check(), "returnUrl")
}

func TestMerchantAllowsReturnHosts(t *testing.T) {
	listed := Merchant{ReturnHosts: []string{"shop.example", "localhost", "192.0.2.1"}}
	dev := Merchant{LoopbackReturns: true}
	for _, test := range []struct {
		merchant Merchant
		url      string
		ok       bool
	}{
		{Merchant{}, "https://any.example/", true},
		{Merchant{}, "http://localhost:3000/", false},
		{Merchant{}, "https://localhost/", false},
		{Merchant{}, "https://[::ffff:127.0.0.1]/", false},
		{Merchant{}, "https://0.0.0.0/", false},
		{Merchant{}, "https://[::]/", false},
		{Merchant{}, "https://[::ffff:0.0.0.0]/", false},
		{listed, "https://shop.example:8443/", true},
		{listed, "https://192.0.2.1/", true},
		{listed, "http://localhost:3000/", true},
		{listed, "https://www.shop.example/", false},
		{listed, "https://shop.example.evil.example/", false},
		{listed, "https://any.example/", false},
		{listed, "http://127.0.0.1/", false},
		{dev, "http://localhost:3000/", true},
		{dev, "http://127.0.0.1:3000/", true},
		{dev, "https://any.example/", true},
		{Merchant{ReturnHosts: []string{"shop.example"}, LoopbackReturns: true}, "http://localhost/", true},
		{Merchant{ReturnHosts: []string{"shop.example"}, LoopbackReturns: true}, "https://any.example/", false},
	} {
		field := ""
		if !test.ok {
			field = "returnUrl"
		}
		t.Run(test.url, func(t *testing.T) {
			d := Details{ReturnURL: test.url}
			wantField(t, d.Check(), "")
			wantField(t, test.merchant.CheckReturnURLs(d), field)
		})
	}
}

func TestMerchantReturnHosts(t *testing.T) {
	many := make([]string, MaxReturnHosts+1)
	for i := range many {
		many[i] = fmt.Sprintf("shop-%d.example", i)
	}
	for name, test := range map[string]struct {
		hosts []string
		field string
	}{
		"hosts":      {[]string{"shop.example", "127.0.0.1", "::1", "localhost"}, ""},
		"most":       {many[:MaxReturnHosts], ""},
		"too many":   {many, "returnHosts"},
		"URL":        {[]string{"a.example", "https://shop.example"}, "returnHosts[1]"},
		"port":       {[]string{"shop.example:443"}, "returnHosts[0]"},
		"upper case": {[]string{"Shop.example"}, "returnHosts[0]"},
		"wildcard":   {[]string{"*.shop.example"}, "returnHosts[0]"},
		"empty":      {[]string{""}, "returnHosts[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			name := "Acme"
			m, err := Merchant{ID: "acme"}.Change(MerchantChange{Name: &name, ReturnHosts: test.hosts}, Unix(1), 0)
			wantField(t, err, test.field)
			if err == nil && len(m.ReturnHosts) != len(test.hosts) {
				t.Errorf("the list is %q", m.ReturnHosts)
			}
		})
	}
	m, err := Merchant{ID: "acme", Name: "Acme", ReturnHosts: many[:1]}.Change(MerchantChange{ReturnHosts: []string{}}, Unix(1), 0)
	if err != nil || len(m.ReturnHosts) != 0 {
		t.Errorf("an empty list leaves %q, %v", m.ReturnHosts, err)
	}
}

func TestChangeOfDetails(t *testing.T) {
	text := func(s string) *string { return &s }
	was := Details{Reference: "r", Customer: Customer{"c", "a@b"}, Metadata: map[string]string{"a": "1", "b": "2"}}
	is := was.Change(DetailsChange{
		Reference: text("s"), CustomerEmail: text(""), Description: text("d"), Metadata: map[string]*string{"a": nil, "b": text("3"), "c": text("")},
	})
	want := Details{Reference: "s", Description: "d", Customer: Customer{ID: "c"}, Metadata: map[string]string{"b": "3", "c": ""}}
	expect.NoDiff(t, cmp.Diff(want, is), "changed")
	if len(was.Metadata) != 2 {
		t.Error("the change reached the metadata that it began with")
	}
	if is := is.Change(DetailsChange{NoMetadata: true}); is.Metadata != nil {
		t.Errorf("metadata %v remains", is.Metadata)
	}
	if is := is.Change(DetailsChange{NoMetadata: true, Metadata: map[string]*string{"x": text("y")}}); len(is.Metadata) != 1 {
		t.Errorf("metadata is %v, want x alone", is.Metadata)
	}
}

// TestCheckReminderHours checks lists at the edges of what is allowed.
func TestCheckReminderHours(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		hours []int
		wrong string // part of the error; empty for a valid list
	}{
		{nil, ""},
		{[]int{-720, -1, 1, 2, 720}, ""},
		{[]int{-3, -2, -1, 1, 2, 3}, "at most 5; there are 6"},
		{[]int{0}, "there is 0"},
		{[]int{-721}, "there is -721"},
		{[]int{721}, "there is 721"},
		{[]int{-24, 2, -24}, "has -24 twice"},
	} {
		if err := CheckReminderHours(c.hours); c.wrong == "" && err != nil || c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
			t.Errorf("%v: %v, want %q", c.hours, err, c.wrong)
		}
	}
}

// nearInvoice asks for an amount from 1000 to 2000 Unix seconds.
func nearInvoice(id string, amount uint64) NearInvoice {
	return NearInvoice{Invoice: Invoice{
		ID: id, ChainKey: "base", Status: Open, CreatedAt: Unix(1000), FromBlock: 4,
		Terms: Terms{Merchant: Address{1}, Token: Address{2}, Amount: NewAmount(amount), ExpiresAt: Unix(2000)},
	}}
}

func nearTransfer(amount uint64, at int64) Transfer {
	return Transfer{ChainKey: "base", Token: Address{2}, To: Address{1}, From: Address{3}, Amount: NewAmount(amount), Position: Position{BlockTime: Unix(at), BlockNumber: uint64(at / 200)}}
}

var sameAmount = cmp.Comparer(func(a, b Amount) bool { return a == b })

func TestDiffer(t *testing.T) {
	told := nearInvoice("inv_1", 34_000_000)
	told.TransferAmount = NewAmount(34_000_123)
	rest := told
	rest.Asks = []Amount{NewAmount(8_500_000), {}}
	covered := told
	covered.Covered = true
	for name, test := range map[string]struct {
		of     NearInvoice
		amount uint64
		at     int64
		want   Difference
	}{
		"a fee was kept":                      {told, 33_990_000, 1500, Difference{Short: NewAmount(10_000)}},
		"too much":                            {told, 35_000_123, 1500, Difference{Over: NewAmount(1_000_000)}},
		"the amount":                          {told, 34_000_000, 1500, Difference{}},
		"another's suffix":                    {told, 34_000_999, 1500, Difference{}},
		"more than any suffix":                {told, 34_001_000, 1500, Difference{Over: NewAmount(877)}},
		"less than the rest":                  {rest, 8_400_000, 1500, Difference{Short: NewAmount(100_000)}},
		"the last second":                     {told, 34_000_000, 2000, Difference{}},
		"late":                                {told, 34_000_000, 2007, Difference{LateBy: 7 * time.Second}},
		"before the invoice":                  {told, 34_000_000, 900, Difference{Early: true}},
		"covered, and a little less than due": {covered, 33_000_000, 1500, Difference{Covered: true, Short: NewAmount(1_000_000)}},
	} {
		expect.NoDiff(t, cmp.Diff(test.want, test.of.Differ(nearTransfer(test.amount, test.at)), sameAmount), "%s", name)
	}
}

func TestSuggest(t *testing.T) {
	exact, twin, late, far, covered := nearInvoice("inv_1", 34_000_000), nearInvoice("inv_2", 34_000_000), nearInvoice("inv_3", 34_000_000),
		nearInvoice("inv_4", 99_000_000), nearInvoice("inv_5", 34_000_000)
	late.ExpiresAt = Unix(1200)
	covered.Covered = true
	void, elsewhere := nearInvoice("inv_6", 33_990_000), nearInvoice("inv_7", 33_990_000)
	void.Status, elsewhere.ChainKey = Void, "optimism"
	got := Suggest(nearTransfer(33_990_000, 1500), []NearInvoice{far, covered, void, late, exact, elsewhere, twin}, 5)
	var order []string
	for _, s := range got {
		order = append(order, s.ID)
		if want := s.ID == "inv_1" || s.ID == "inv_2"; s.Ambiguous != want {
			t.Errorf("%s is ambiguous: %t, want %t", s.ID, s.Ambiguous, want)
		}
	}
	expect.NoDiff(t, cmp.Diff([]string{"inv_2", "inv_1", "inv_5", "inv_3", "inv_4"}, order), "order")
	if got := Suggest(nearTransfer(33_990_000, 1500), []NearInvoice{exact, twin, late}, 2); len(got) != 2 {
		t.Errorf("%d suggestions, want 2", len(got))
	}
}
