package invoice_test

import (
	"errors"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/invoice"
)

// authorizationFor pays openInvoice at 1500: valid from 0 to 1520, the shortest window.
func authorizationFor(inv invoice.Invoice) invoice.Authorization {
	return invoice.Authorization{
		From: payer, To: inv.Merchant, Value: inv.Amount, ValidAfter: invoice.Unix(0), ValidBefore: invoice.Unix(1520), Nonce: invoice.Hash{7}, Signature: []byte{1},
	}
}

func TestCheckAuthorization(t *testing.T) {
	t.Parallel()
	now := invoice.Unix(1500)
	const hour = 3600
	for name, test := range map[string]struct {
		change func(*invoice.Invoice, *invoice.Authorization)
		want   invoice.Refusal
	}{
		"right":             {func(*invoice.Invoice, *invoice.Authorization) {}, ""},
		"draft":             {func(i *invoice.Invoice, _ *invoice.Authorization) { i.Status = invoice.Drafted }, invoice.RefusedNotPayable},
		"expired":           {func(i *invoice.Invoice, _ *invoice.Authorization) { i.Status = invoice.Expired }, invoice.RefusedNotPayable},
		"paid":              {func(i *invoice.Invoice, _ *invoice.Authorization) { i.Status = invoice.Paid }, invoice.RefusedNotPayable},
		"void":              {func(i *invoice.Invoice, _ *invoice.Authorization) { i.Status = invoice.Void }, invoice.RefusedNotPayable},
		"covered":           {func(i *invoice.Invoice, _ *invoice.Authorization) { i.Sums.InTime = i.Amount }, invoice.RefusedNotPayable},
		"another recipient": {func(_ *invoice.Invoice, a *invoice.Authorization) { a.To = invoice.Address{1} }, invoice.RefusedRecipient},
		"to oneself":        {func(i *invoice.Invoice, a *invoice.Authorization) { a.From = i.Merchant }, invoice.RefusedSelf},
		"too little":        {func(_ *invoice.Invoice, a *invoice.Authorization) { a.Value = invoice.NewAmount(99) }, invoice.RefusedValue},
		"too much":          {func(_ *invoice.Invoice, a *invoice.Authorization) { a.Value = invoice.NewAmount(101) }, invoice.RefusedValue},
		"transfer amount":   {func(i *invoice.Invoice, a *invoice.Authorization) { a.Value = i.TransferAmount }, invoice.RefusedValue},
		"what remains": {func(i *invoice.Invoice, a *invoice.Authorization) {
			i.Remaining, a.Value = invoice.NewAmount(40), invoice.NewAmount(40)
		}, ""},
		"all of a part":          {func(i *invoice.Invoice, _ *invoice.Authorization) { i.Remaining = invoice.NewAmount(40) }, invoice.RefusedValue},
		"valid since":            {func(_ *invoice.Invoice, a *invoice.Authorization) { a.ValidAfter = invoice.Unix(1499) }, ""},
		"valid from the next on": {func(_ *invoice.Invoice, a *invoice.Authorization) { a.ValidAfter = invoice.Unix(1500) }, invoice.RefusedNotYetValid},
		"too short":              {func(_ *invoice.Invoice, a *invoice.Authorization) { a.ValidBefore = invoice.Unix(1519) }, invoice.RefusedExpired},
		"past":                   {func(_ *invoice.Invoice, a *invoice.Authorization) { a.ValidBefore = invoice.Unix(0) }, invoice.RefusedExpired},
		"to the last second":     {func(_ *invoice.Invoice, a *invoice.Authorization) { a.ValidBefore = invoice.Unix(2001) }, ""},
		"past the last second":   {func(_ *invoice.Invoice, a *invoice.Authorization) { a.ValidBefore = invoice.Unix(2002) }, invoice.RefusedPastInvoice},
		"as long as can be": {func(i *invoice.Invoice, a *invoice.Authorization) {
			i.ExpiresAt, a.ValidBefore = invoice.Unix(9999), invoice.Unix(1500+hour)
		}, ""},
		"longer than can be": {func(i *invoice.Invoice, a *invoice.Authorization) {
			i.ExpiresAt, a.ValidBefore = invoice.Unix(9999), invoice.Unix(1501+hour)
		}, invoice.RefusedWindow},
		"a window without an end": {func(_ *invoice.Invoice, a *invoice.Authorization) { a.ValidBefore = invoice.Unix(1 << 60) }, invoice.RefusedPastInvoice},
	} {
		inv := openInvoice("a")
		a := authorizationFor(inv)
		test.change(&inv, &a)
		err := inv.CheckAuthorization(a, now, now)
		var refusal *invoice.RefusalError
		if errors.As(err, &refusal); (test.want == "") != (err == nil) || err != nil && (refusal.Reason != test.want || refusal.Detail == "") {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
	if err := openInvoice("a").CheckAuthorization(authorizationFor(openInvoice("a")), now, now.Add(time.Second)); err == nil {
		t.Error("the later of the two times does not count")
	}
}

// TestAuthorizationEqual expects a signature with the recovery id 0 or 1 to equal the one with 27 or 28.
func TestAuthorizationEqual(t *testing.T) {
	t.Parallel()
	a := authorizationFor(openInvoice("a"))
	b := a
	a.Signature, b.Signature = make([]byte, 65), make([]byte, 65)
	a.Signature[64], b.Signature[64] = 1, 28
	if !a.Equal(b) || a.Signature[64] != 1 {
		t.Error("1 is not 28")
	}
	if b.Signature[64] = 27; a.Equal(b) {
		t.Error("1 is 27")
	}
	if b.Signature = append(b.Signature, 0); a.Equal(b) {
		t.Error("a longer signature is the same")
	}
}

// TestAttributeBound expects the invoice that an authorization is bound to, whatever its nonce.
func TestAttributeBound(t *testing.T) {
	t.Parallel()
	a, b := openInvoice("a"), openInvoice("b")
	m := transfer(107)
	m.Evidence.Authorization = invoice.Hash{9}
	bound := invoice.Candidate{Invoice: b, Authorized: true}
	got, ok := invoice.Attribute(m, []invoice.Candidate{{Invoice: a, HasTransferAmount: true}, bound}, false)
	if !ok || got.Invoice.ID != "b" || got.Method != invoice.ByAuthorization || !bound.NamedBy(m) {
		t.Errorf("attributed to %q by %q", got.Invoice.ID, got.Method)
	}
	m.To = invoice.Address{1}
	if got, ok := invoice.Attribute(m, []invoice.Candidate{bound}, false); ok {
		t.Errorf("a transfer to another address is attributed to %q", got.Invoice.ID)
	}
}
