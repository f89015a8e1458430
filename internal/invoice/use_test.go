package invoice_test

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/invoice"
)

// TestChangeUse tries every act on a payment in every use. An empty use means that the act is refused, and the error
// must name the present use.
func TestChangeUse(t *testing.T) {
	t.Parallel()
	some, all := invoice.NewAmount(40), invoice.NewAmount(100)
	const undecided, counted, refunding, refunded, dismissed, attributing = invoice.UseUndecided, invoice.UseCounted, invoice.UseRefunding, invoice.UseRefunded, invoice.UseDismissed, invoice.UseAttributing
	type after map[invoice.UseAct]invoice.PaymentUse
	for name, c := range map[string]struct {
		facts invoice.UseFacts
		is    invoice.PaymentUse
		after after
	}{
		"new":             {invoice.UseFacts{}, undecided, after{invoice.ActAttribute: counted, invoice.ActRefund: refunding, invoice.ActDismiss: dismissed, invoice.ActAccept: undecided}},
		"partly refunded": {invoice.UseFacts{Refunded: some}, undecided, after{invoice.ActAttribute: counted, invoice.ActRefund: refunding, invoice.ActDismiss: dismissed, invoice.ActAccept: undecided}},
		"counted":         {invoice.UseFacts{Counted: true}, counted, after{invoice.ActRefund: refunding, invoice.ActAccept: counted}},
		"counted, partly refunded": {invoice.UseFacts{Counted: true, Refunded: some}, counted,
			after{invoice.ActRefund: refunding, invoice.ActAccept: counted}},
		"counted, waived":               {invoice.UseFacts{Counted: true, Accepted: true}, counted, after{invoice.ActAccept: counted}},
		"prepared":                      {invoice.UseFacts{Reserved: some}, refunding, after{invoice.ActRefund: refunding}},
		"in a block":                    {invoice.UseFacts{Pending: all}, refunding, after{invoice.ActRefund: refunding}},
		"counted, in a block":           {invoice.UseFacts{Counted: true, Pending: some, Refunded: some}, refunding, after{invoice.ActRefund: refunding}},
		"refunded":                      {invoice.UseFacts{Refunded: all}, refunded, after{invoice.ActAccept: refunded}},
		"counted, refunded":             {invoice.UseFacts{Counted: true, Refunded: all}, refunded, after{invoice.ActAccept: refunded}},
		"dismissed":                     {invoice.UseFacts{Dismissed: true}, dismissed, after{invoice.ActDismiss: dismissed, invoice.ActAccept: dismissed}},
		"attributing":                   {invoice.UseFacts{Attributing: true}, attributing, after{invoice.ActAccept: attributing}},
		"attributing, in a block":       {invoice.UseFacts{Attributing: true, Pending: some}, refunding, after{invoice.ActRefund: refunding}},
		"attributing, counted":          {invoice.UseFacts{Attributing: true, Counted: true}, counted, after{invoice.ActRefund: refunding, invoice.ActAccept: counted}},
		"dismissed, and sent back":      {invoice.UseFacts{Dismissed: true, Refunded: all}, refunded, after{invoice.ActAccept: refunded}},
		"dismissed, and being refunded": {invoice.UseFacts{Dismissed: true, Pending: some}, refunding, after{invoice.ActRefund: refunding}},
	} {
		c.facts.Amount = all
		for _, act := range []invoice.UseAct{invoice.ActNone, invoice.ActAttribute, invoice.ActRefund, invoice.ActDismiss, invoice.ActAccept} {
			want, allowed := c.after[act]
			if act == invoice.ActNone {
				want, allowed = c.is, true
			}
			got, err := invoice.ChangeUse(c.facts, act)
			var used *invoice.UsedError
			switch {
			case allowed && (err != nil || got != want):
				t.Errorf("%s, %q: %s, %v; want %s", name, act, got, err, want)
			case !allowed && (!errors.As(err, &used) || used.Use != c.is || got != c.is):
				t.Errorf("%s, %q: %s, %v; want a refusal that names %s", name, act, got, err, c.is)
			}
		}
	}
}

// TestUsesExcludeEachOther draws facts. A person cannot put a payment that has a use to another use,
// except that a counted payment can be sent back. A refused act does not change the use.
func TestUsesExcludeEachOther(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		amount := func(label string) invoice.Amount { return invoice.NewAmount(rapid.Uint64Range(0, 3).Draw(r, label)) }
		f := invoice.UseFacts{
			Amount: invoice.NewAmount(3), Counted: rapid.Bool().Draw(r, "counted"), Dismissed: rapid.Bool().Draw(r, "dismissed"), Attributing: rapid.Bool().Draw(r, "attributing"),
			Accepted: rapid.Bool().Draw(r, "accepted"), Reserved: amount("reserved"), Pending: amount("pending"), Refunded: amount("refunded"),
		}
		was, _ := invoice.ChangeUse(f, invoice.ActNone)
		act := rapid.SampledFrom([]invoice.UseAct{invoice.ActAttribute, invoice.ActRefund, invoice.ActDismiss}).Draw(r, "act")
		is, err := invoice.ChangeUse(f, act)
		sendsBack := act == invoice.ActRefund && (was == invoice.UseCounted || was == invoice.UseRefunding)
		switch {
		case err != nil && is != was:
			r.Errorf("a refused %s changes %s to %s", act, was, is)
		case err == nil && is != was && was != invoice.UseUndecided && !sendsBack:
			r.Errorf("%s changes %s to %s", act, was, is)
		}
	})
}
