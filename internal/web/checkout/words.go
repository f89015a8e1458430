package checkout

import (
	"cmp"
	"html/template"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/web/checkout/locale"
)

// words returns the headline of a state and the sentences below it.
func (s pageInput) words(st state) (headline string, text []template.HTML) {
	switch st {
	case waiting:
		headline, text = s.text.T("status.waiting.headline", nil), s.say("status.waiting.text", nil)
	case partial:
		headline, text = s.partialWords()
	case seen:
		headline, text = s.text.T("status.seen.headline", nil), s.say("status.seen.text", nil)
	case unknown:
		headline, text = s.unknownWords()
	case checking:
		headline, text = s.checkingWords()
	case paid:
		headline, text = s.paidWords()
	case refunded:
		headline, text = s.text.T("status.refunded.headline", nil), s.refundedWords()
	case expired:
		headline, text = s.expiredWords()
	case void:
		headline, text = s.text.T("status.void.headline", nil), s.voidWords()
	case draft:
		headline, text = s.text.T("status.draft.headline", nil), s.say("status.draft.text", values{"Merchant": s.merchant()})
	}
	if st == seen && s.following.isBlind(s.now) {
		text = append(text, s.say("status.seen.blind", nil)...)
	}
	return headline, text
}

// values are the values of a text's placeholders.
type values = locale.Values

// say returns one sentence, to be appended to others.
func (s pageInput) say(id string, v values) []template.HTML {
	return []template.HTML{s.text.HTML(id, v)}
}

// unknownWords returns the texts for an invoice on a chain that cannot be read, or that has dropped a
// payment.
func (s pageInput) unknownWords() (string, []template.HTML) {
	if !s.following.isBlind(s.now) {
		return s.text.T("result.orphaned.headline", nil), s.say("result.orphaned.text", nil)
	}
	then, end := "status.unknown.unpaid", values{"Time": s.text.Time(s.invoice.ExpiresAt)}
	if s.now.After(s.invoice.ExpiresAt) {
		then = "status.unknown.over"
	}
	text := append(s.say("status.unknown.text", values{"Network": s.network()}), s.say("status.unknown.paid", nil)...)
	return s.text.T("status.unknown.headline", nil), append(text, s.say(then, end)...)
}

// checkingWords returns the texts for an invoice that cannot be paid now, and whether a payment in
// flight counts.
func (s pageInput) checkingWords() (string, []template.HTML) {
	if s.invoice.EndedInLostPast() {
		return s.text.T("status.held.headline", nil), s.say("status.held.text", values{"Merchant": s.merchant()})
	}
	text := append(s.say("status.checking.text", values{"Time": s.text.Time(s.invoice.ExpiresAt)}), s.say("status.checking.late", values{"Merchant": s.merchant()})...)
	return s.text.T("status.checking.headline", nil), append(text, s.say("status.checking.wait", nil)...)
}

// refundedWords returns the texts for a final invoice that was refunded completely.
func (s pageInput) refundedWords() []template.HTML {
	inTime, late := s.invoice.Arrived()
	text := s.say("status.refunded.text", values{"Arrived": s.money(inTime.Plus(late)), "Refunded": s.money(s.invoice.AmountRefunded)})
	switch s.invoice.Status {
	case invoice.Paid:
		return append(text, s.say("status.refunded.paid", values{"Time": s.text.Time(s.invoice.SettledAt)})...)
	case invoice.Expired:
		return append(text, s.say("status.refunded.expired", values{"Time": s.text.Time(s.invoice.ExpiresAt)})...)
	case invoice.Void, invoice.Open, invoice.Drafted:
	}
	return append(text, s.say("status.refunded.void", nil)...)
}

func (s pageInput) partialWords() (string, []template.HTML) {
	inv := s.invoice
	return s.text.T("status.partial.headline", nil), append(
		s.say("status.partial.text", values{
			"Arrived": s.money(inv.Amount.Minus(s.rest())), "Amount": s.money(inv.Amount), "Missing": s.money(s.rest())}),
		s.say("status.partial.rest", nil)...)
}

func (s pageInput) paidWords() (string, []template.HTML) {
	inv := s.invoice
	if s.waived {
		return s.text.T("receipt.state.accepted", nil), s.waivedWords()
	}
	text := s.say("status.paid.text", values{"Merchant": s.merchant(), "Time": s.text.Time(inv.SettledAt)})
	return s.text.T("status.paid.headline", nil), append(text, s.excessWords()...)
}

// waivedWords returns the sentences about an invoice whose rest the merchant waived.
func (s pageInput) waivedWords() []template.HTML {
	inTime, late := s.invoice.Arrived()
	text := s.say("receipt.text.accepted", values{"Merchant": s.merchant(), "Missing": s.money(s.invoice.Amount.Minus(inTime))})
	if !late.IsZero() {
		text = append(text, s.say("status.expired.part.late", values{"Amount": s.money(late)})...)
	}
	return append(text, s.refundWords()...)
}

// excessWords returns how much a paid invoice received beyond the amount due, how much was sent back,
// and whom to ask for the rest.
func (s pageInput) excessWords() []template.HTML {
	excess, back := s.invoice.Excess(), s.invoice.AmountRefunded
	surplus := values{"Arrived": s.money(s.invoice.AmountPaid), "Surplus": s.money(excess), "Merchant": s.merchant()}
	switch {
	case excess.IsZero():
		return s.refundWords()
	case !back.IsZero():
		text := append(s.say("status.paid.more", surplus), s.refundWords()...)
		// The amount sent back, or to be sent back, includes money returned before the invoice was
		// paid.
		if rest := excess.Plus(s.invoice.Sums.Tally.Returned).Minus(back); !rest.IsZero() {
			text = append(text, s.say("status.paid.rest", values{"Rest": s.money(rest), "Merchant": s.merchant()})...)
		}
		return text
	case s.invoice.Exception == invoice.Duplicate:
		return s.say("status.paid.twice", surplus)
	}
	return s.say("status.paid.over", surplus)
}

func (s pageInput) expiredWords() (headline string, text []template.HTML) {
	inv := s.invoice
	inTime, late := inv.Arrived()
	ended := s.text.Time(inv.ExpiresAt)
	switch {
	case !inTime.IsZero():
		headline = s.text.T("status.expired.part.headline", nil)
		text = s.say("status.expired.part.text", values{
			"Time": ended, "Arrived": s.money(inTime), "Amount": s.money(inv.Amount), "Missing": s.money(inv.Amount.Minus(inTime))})
		if !late.IsZero() {
			text = append(text, s.say("status.expired.part.late", values{"Amount": s.money(late)})...)
		}
	case !late.IsZero():
		headline = s.text.T("status.expired.late.headline", nil)
		text = s.say("status.expired.late.text", values{"Time": ended, "Amount": s.money(late)})
	default:
		return s.text.T("status.expired.headline", nil), append(
			s.say("status.expired.none", values{"Time": ended}), s.say("status.expired.ask", nil)...)
	}
	if excess := inv.Excess(); !excess.IsZero() {
		text = append(text, s.say("status.paid.more", values{"Arrived": s.money(inv.AmountPaid), "Surplus": s.money(excess)})...)
	}
	text = append(text, s.say("status.expired.kept", values{"Merchant": s.merchant()})...)
	return headline, append(text, s.refundWords()...)
}

func (s pageInput) voidWords() []template.HTML {
	inTime, late := s.invoice.Arrived()
	arrived := inTime.Plus(late)
	if arrived.IsZero() {
		return s.say("status.void.none", values{"Merchant": s.merchant()})
	}
	return append(s.say("status.void.kept", values{"Amount": s.money(arrived), "Merchant": s.merchant()}), s.refundWords()...)
}

func (s pageInput) refundWords() []template.HTML {
	if s.invoice.AmountRefunded.IsZero() {
		return nil
	}
	return s.say("status.refunded", values{"Amount": s.money(s.invoice.AmountRefunded)})
}

// usual returns the usual time until a payment is final; empty if it is unknown.
func (s pageInput) usual(t time.Duration) string {
	switch {
	case t == 0:
		return ""
	case t < time.Minute:
		return s.text.T("script.unit.second", values{"N": int64(t / time.Second)})
	case t < time.Hour:
		return s.text.T("script.unit.minute", values{"N": int64(t / time.Minute)})
	}
	return s.text.T("script.unit.hour", values{"N": int64(t / time.Hour)})
}

// merchant is the term for the merchant in texts.
func (s pageInput) merchant() string { return cmp.Or(s.profile.Name, s.invoice.MerchantID) }

// money is an amount in major units with its currency.
type money struct{ amount, currency string }

// String returns the amount and the currency.
func (m money) String() string { return m.amount + "\u00a0" + m.currency }

// HTML returns the same with an element that the script writes as the language does.
func (m money) HTML() template.HTML {
	return number(m.amount) + "\u00a0" + template.HTML(template.HTMLEscapeString(m.currency)) //nolint:gosec // escaped
}

// number returns the element of a decimal number.
func number(digits string) template.HTML {
	return template.HTML(`<data value="` + digits + `">` + digits + `</data>`) //nolint:gosec // digits and a dot
}

// money returns an amount with its currency.
func (s pageInput) money(a invoice.Amount) money { return money{s.major(a), s.invoice.Currency} }

// Seconds of a minute, an hour and a day.
const (
	minute = 60
	hour   = 60 * minute
	day    = 24 * hour
)

// timeLeft formats a number of seconds in its two largest units, as the script does.
func timeLeft(text *locale.Text, seconds int64) string {
	seconds = max(0, seconds)
	units := []struct {
		n  int64
		id string
	}{
		{seconds / day, "script.unit.day"}, {seconds % day / hour, "script.unit.hour"},
		{seconds % hour / minute, "script.unit.minute"}, {seconds % minute, "script.unit.second"},
	}
	for len(units) > 1 && units[0].n == 0 {
		units = units[1:]
	}
	var words []string
	for _, u := range units[:min(2, len(units))] {
		words = append(words, text.T(u.id, values{"N": u.n}))
	}
	return strings.Join(words, " ")
}
