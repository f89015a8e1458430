package checkout

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/invoice"
)

// words returns the headline of a state and the sentences below it.
func (s pageInput) words(st state) (headline string, text []string) {
	switch st {
	case waiting:
		headline, text = "Waiting for your payment", []string{"This page shows it by itself once it is seen on the network."}
	case partial:
		headline, text = s.partialWords()
	case seen:
		headline = "Payment seen"
		text = []string{"The network has your payment. The invoice is paid once the network can no longer take it back. You need not do anything more."}
	case checking:
		headline = "The time is up"
		text = []string{"The last blocks are being checked: a payment made before " + clock(s.invoice.ExpiresAt) + " still counts, even if it is not shown here yet.",
			"Please do not send anything now."}
	case paid:
		headline, text = s.paidWords()
	case expired:
		headline, text = s.expiredWords()
	case void:
		headline, text = "This invoice was cancelled", s.voidWords()
	case draft:
		headline, text = "This invoice is not ready yet", []string{"It cannot be paid before " + s.merchant() + " has issued it."}
	}
	if s.halted && s.invoice.Status == invoice.Open {
		text = append(text, "New payments on this network cannot be seen at the moment. They are not lost: they are counted as soon as the connection is back.")
	}
	return headline, text
}

func (s pageInput) partialWords() (string, []string) {
	inv := s.invoice
	return "A part has arrived", []string{
		fmt.Sprintf("%s has arrived of %s; %s is missing.", s.money(inv.Amount.Minus(s.rest())), s.money(inv.Amount), s.money(s.rest())),
		"What is missing can be paid below. It must arrive in time, too.",
	}
}

func (s pageInput) paidWords() (string, []string) {
	inv := s.invoice
	text := []string{fmt.Sprintf("%s received the payment on %s. Thank you.", s.merchant(), clock(inv.SettledAt))}
	switch surplus := s.money(inv.Surplus()); inv.Exception {
	case invoice.Overpaid:
		text = append(text, fmt.Sprintf("%s has arrived, %s more than was due. To have the difference sent back, contact %s.",
			s.money(inv.AmountPaid), surplus, s.merchant()))
	case invoice.Duplicate:
		text = append(text, fmt.Sprintf("More money arrived after the invoice was paid: %s in all, %s more than was due. To have the difference sent back, contact %s.",
			s.money(inv.AmountPaid), surplus, s.merchant()))
	case invoice.Underpaid, invoice.Late, "":
	}
	return "Paid", append(text, s.refundWords()...)
}

func (s pageInput) expiredWords() (string, []string) {
	inTime, late := s.invoice.Arrived()
	ended := "The time to pay ended on " + clock(s.invoice.ExpiresAt)
	headline := "Expired"
	var text []string
	switch {
	case !inTime.IsZero():
		headline = "Expired: paid only in part"
		text = []string{fmt.Sprintf("%s. %s of %s had arrived by then; %s was missing.",
			ended, s.money(inTime), s.money(s.invoice.Amount), s.money(s.invoice.Amount.Minus(inTime)))}
		if !late.IsZero() {
			text = append(text, s.money(late)+" more came too late.")
		}
	case !late.IsZero():
		headline = "Your payment came too late"
		text = []string{fmt.Sprintf("%s. %s arrived after that, so it does not settle the invoice.", ended, s.money(late))}
	default:
		return headline, []string{
			ended + ", and no payment for this invoice had arrived. Please do not send anything any more.",
			"If you did send something and it is not shown here within a few minutes, enter its transaction’s hash under “I have paid”.",
		}
	}
	if !s.invoice.AmountRefunded.Less(inTime.Plus(late)) {
		return headline, append(text, s.refundWords()...)
	}
	text = append(text, "The money is not lost: it is at "+s.merchant()+"’s address, and listed here. Contact "+s.merchant()+
		" to have it accepted or sent back, and give the transaction’s hash. Please do not send anything more.")
	return headline, append(text, s.refundWords()...)
}

func (s pageInput) voidWords() []string {
	inTime, late := s.invoice.Arrived()
	arrived := inTime.Plus(late)
	switch {
	case arrived.IsZero():
		return []string{"Please do not pay it. If you have paid already, contact " + s.merchant() + "."}
	case !s.invoice.AmountRefunded.Less(arrived):
		return append([]string{s.money(arrived) + " had arrived."}, s.refundWords()...)
	}
	return append([]string{
		s.money(arrived) + " has arrived. The money is not lost: it is at " + s.merchant() + "’s address, and listed here. Contact " + s.merchant() +
			" to have it sent back, and give the transaction’s hash. Please do not send anything more.",
	}, s.refundWords()...)
}

func (s pageInput) refundWords() []string {
	if s.invoice.AmountRefunded.IsZero() {
		return nil
	}
	return []string{s.money(s.invoice.AmountRefunded) + " has been sent back."}
}

// merchant is the term for the merchant in texts.
func (s pageInput) merchant() string { return cmp.Or(s.profile.Name, s.invoice.MerchantID) }

// money formats an amount with its currency.
func (s pageInput) money(a invoice.Amount) string { return s.major(a) + "\u00a0" + s.invoice.Currency }

// clock formats a time.
func clock(t time.Time) string { return t.UTC().Format("2 January 2006, 15:04:05 UTC") }

// Seconds of a minute, an hour and a day.
const (
	minute = 60
	hour   = 60 * minute
	day    = 24 * hour
)

// timeLeft formats a number of seconds in its two largest units, as the script does.
func timeLeft(seconds int64) string {
	seconds = max(0, seconds)
	units := []struct {
		n    int64
		name string
	}{{seconds / day, "d"}, {seconds % day / hour, "h"}, {seconds % hour / minute, "min"}, {seconds % minute, "s"}}
	for len(units) > 1 && units[0].n == 0 {
		units = units[1:]
	}
	var words []string
	for _, u := range units[:min(2, len(units))] {
		words = append(words, fmt.Sprintf("%d\u00a0%s", u.n, u.name))
	}
	return strings.Join(words, " ")
}
