package checkout

import (
	"cmp"
	"html/template"
	"slices"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/chain"
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
		headline, text = s.text.T("receipt.state.refunded", nil), s.refundedWords()
	case expired:
		headline, text = s.expiredWords()
	case void:
		headline, text = s.text.T("receipt.state.void", nil), s.voidWords()
	case draft:
		headline, text = s.text.T("status.draft.headline", nil), s.say("status.draft.text", values{"Merchant": s.merchant()})
	}
	if st == seen && s.following.isBlind(s.now) {
		text = append(text, s.sayAll(values{"Network": s.network()}, "status.unknown.text", "status.seen.blind")...)
	}
	return headline, text
}

// values are the values of a text's placeholders.
type values = locale.Values

// say returns one sentence, to be appended to others.
func (s pageInput) say(id string, v values) []template.HTML { return s.sayAll(v, id) }

// sayAll returns several sentences with the same values.
func (s pageInput) sayAll(v values, ids ...string) (text []template.HTML) {
	for _, id := range ids {
		text = append(text, s.text.HTML(id, v))
	}
	return text
}

// unknownWords returns the texts for an invoice on a chain that cannot be read, or that has dropped a payment.
func (s pageInput) unknownWords() (string, []template.HTML) {
	if !s.following.isBlind(s.now) {
		return s.text.T("result.orphaned.headline", nil), s.say("result.orphaned.text", nil)
	}
	then := []string{"status.unknown.unpaid"}
	if s.now.After(s.invoice.ExpiresAt) {
		then = []string{"status.ended", "status.stop"}
	}
	v := values{"Network": s.network(), "Time": s.text.Time(s.invoice.ExpiresAt)}
	return s.text.T("status.unknown.headline", nil), append(s.sayAll(v, "status.unknown.text", "status.unknown.paid"), s.sayAll(v, then...)...)
}

// checkingWords returns the texts for an invoice that cannot be paid now, and whether a payment in flight counts.
func (s pageInput) checkingWords() (string, []template.HTML) {
	v := values{"Merchant": s.merchant(), "Time": s.text.Time(s.invoice.ExpiresAt)}
	if s.invoice.EndedInLostPast() {
		return s.text.T("status.held.headline", nil), s.sayAll(v, "status.held.text", "status.stop")
	}
	return s.text.T("status.checking.headline", nil), s.sayAll(v, "status.checking.text", "status.checking.late", "status.stop")
}

// refundedWords returns the texts for a final invoice that was refunded completely.
func (s pageInput) refundedWords() []template.HTML {
	switch s.invoice.Status {
	case invoice.Paid:
		return append(s.refundWords(), s.say("status.refunded.paid", values{"Time": s.text.Time(s.invoice.SettledAt)})...)
	case invoice.Expired:
		return append(s.refundWords(), s.sayAll(values{"Time": s.text.Time(s.invoice.ExpiresAt)}, "status.ended", "status.stop")...)
	case invoice.Void, invoice.Open, invoice.Drafted:
	}
	return append(s.refundWords(), s.sayAll(nil, "status.refunded.void", "status.stop")...)
}

func (s pageInput) partialWords() (string, []template.HTML) {
	inv := s.invoice
	return s.text.T("receipt.state.part", nil), s.say("status.partial.text", values{
		"Arrived": s.money(inv.Amount.Minus(s.rest())), "Amount": s.money(inv.Amount)})
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
	return append(append(text, s.lateWords(late)...), s.refundWords()...)
}

// excessWords returns how much a paid invoice received beyond the amount due, how much was sent back,
// and whom to ask for the rest.
func (s pageInput) excessWords() []template.HTML {
	excess, back := s.invoice.Excess(), s.invoice.AmountRefunded
	if excess.IsZero() {
		return s.refundWords()
	}
	text := append(s.say("status.paid.more", values{"Arrived": s.money(s.invoice.AmountPaid), "Surplus": s.money(excess)}), s.refundWords()...)
	rest := excess
	if !back.IsZero() { // it includes money returned before the invoice was paid
		rest = excess.Plus(s.invoice.Sums.Tally.Returned).Minus(back)
	}
	if !rest.IsZero() {
		text = append(text, s.say("status.paid.rest", values{"Rest": s.money(rest), "Merchant": s.merchant()})...)
	}
	return text
}

func (s pageInput) expiredWords() (headline string, text []template.HTML) {
	inv := s.invoice
	inTime, late := inv.Arrived()
	ended := s.text.Time(inv.ExpiresAt)
	switch {
	case inv.Covered() && s.holds(): // a person decides about the payment
		headline, text = s.text.T("status.seen.headline", nil), s.say("status.seen.blind", nil)
	case !inTime.IsZero():
		headline = s.text.T("status.expired.part.headline", nil)
		text = s.say("status.expired.part.text", values{"Time": ended, "Arrived": s.money(inTime), "Amount": s.money(inv.Amount)})
	case !late.IsZero():
		headline = s.text.T("receipt.state.late", nil)
	default:
		return s.text.T("status.expired.headline", nil), s.sayAll(values{"Time": ended}, "status.expired.none", "status.stop", "status.expired.ask")
	}
	text = append(text, s.lateWords(late)...)
	if excess := inv.Excess(); !excess.IsZero() {
		text = append(text, s.say("status.paid.more", values{"Arrived": s.money(inv.AmountPaid), "Surplus": s.money(excess)})...)
	}
	return headline, append(text, s.keptWords()...)
}

// holds reports whether one of the newest payments is held by its screening.
func (s pageInput) holds() bool {
	return slices.ContainsFunc(s.payments, func(p invoice.Payment) bool { return p.Status == invoice.Held })
}

func (s pageInput) voidWords() []template.HTML {
	inTime, late := s.invoice.Arrived()
	arrived := inTime.Plus(late)
	if arrived.IsZero() {
		return s.sayAll(values{"Merchant": s.merchant()}, "status.stop", "status.void.none")
	}
	return append(s.say("status.arrived", values{"Amount": s.money(arrived)}), s.keptWords()...)
}

// lateWords returns the sentence about an amount that came too late, if there is one.
func (s pageInput) lateWords(late invoice.Amount) []template.HTML {
	if late.IsZero() {
		return nil
	}
	return s.say("status.late", values{"Amount": s.money(late), "Time": s.text.Time(s.invoice.ExpiresAt)})
}

// keptWords returns the sentences about money that has arrived for a closed invoice.
func (s pageInput) keptWords() []template.HTML {
	return append(append(s.safeWords(), s.refundWords()...), s.say("status.stop", nil)...)
}

// safeWords returns where money is that does not count, and what the merchant can do with it.
func (s pageInput) safeWords() []template.HTML {
	ask := "status.kept"
	if s.invoice.Status == invoice.Void {
		ask = "status.refundable"
	}
	return s.sayAll(values{"Merchant": s.merchant()}, "status.safe", ask)
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

// networkName returns what people read for a network: the name of its chain, or the key without one.
func networkName(text *locale.Text, chainKey, name string) string {
	if chainKey == chain.Local {
		return text.T("network.local", nil)
	}
	name = cmp.Or(name, chainKey)
	if chain.IsTestnet(chainKey) && !strings.HasSuffix(name, "Testnet") {
		return text.T("network.test", values{"Name": name})
	}
	return name
}

// network returns the display name of the invoice's network.
func (s pageInput) network() string { return networkName(s.text, s.chain.Key, s.chain.Name) }
