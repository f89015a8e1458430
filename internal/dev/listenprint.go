package dev

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/webhooks"
	"github.com/quittance/quittance/webhook"
)

// Printer writes events as lines. Only Color and JSON are optional.
type Printer struct {
	Out   io.Writer // for events
	Notes io.Writer // for all other lines
	Color bool      // both are terminals
	JSON  bool      // write events as JSON
}

func (p Printer) style(code, text string) string { return styled(p.Color, code, text) }

// line holds the printed parts of an event.
type line struct {
	id, typ, invoiceID, amount string
	at                         time.Time
	record                     apitypes.EventRecord
}

// read parses an event.
func read(r apitypes.EventRecord) (line, error) {
	e, err := webhook.ParseEvent(r.Event)
	if err != nil {
		return line{}, fmt.Errorf("the service returned an invalid event (%.100q): %w", r.Event, err)
	}
	return line{id: e.ID, typ: e.Type, invoiceID: r.InvoiceID, amount: amount(e.Data), at: time.Unix(e.CreatedAt, 0), record: r}, nil
}

// amount returns the amount of an event's refund, payment or invoice, in this order.
// It is empty for other events.
func amount(data json.RawMessage) string {
	type sum struct {
		Amount   string `json:"amount"`
		Currency string `json:"currency"`
	}
	var of struct {
		Invoice *sum `json:"invoice"`
		Payment *sum `json:"payment"`
		Refund  *sum `json:"refund"`
	}
	if err := json.Unmarshal(data, &of); err != nil {
		return "" // an unknown type of event
	}
	for _, s := range []*sum{of.Refund, of.Payment, of.Invoice} {
		if s == nil {
			continue
		}
		if n, err := invoice.ParseAmount(s.Amount); err == nil && s.Currency == chain.USDC {
			return n.Major(chain.TokenDecimals) + " " + s.Currency
		}
		return s.Amount + " minor units of " + s.Currency
	}
	return ""
}

// jsonLine is an event as JSON: as the REST interface lists it, with the result of posting it, if it
// was posted.
type jsonLine struct {
	apitypes.EventRecord
	Forwarded *forwarded `json:"forwarded,omitempty"`
}

// forwarded is the outcome of posting an event.
type forwarded struct {
	StatusCode int    `json:"statusCode,omitempty"` // 0 without an answer
	DurationMS int64  `json:"durationMs"`
	Error      string `json:"error,omitempty"`
}

// event writes an event, and the outcome of forwarding it unless posted is nil.
func (p Printer) event(l line, posted *webhooks.Attempt) {
	if p.JSON {
		out := jsonLine{EventRecord: l.record}
		if posted != nil {
			out.Forwarded = &forwarded{posted.StatusCode, posted.Duration.Milliseconds(), posted.Error}
		}
		text, err := json.Marshal(out)
		if err != nil {
			p.note(err.Error())
			return
		}
		fmt.Fprintf(p.Out, "%s\n", text)
		return
	}
	fmt.Fprintf(p.Out, "%s  %s  %-14s  %s  %s", p.style(dim, clock.Format(l.at, time.Local, time.TimeOnly)),
		p.style(cyan, fmt.Sprintf("%-16s", l.typ)), l.amount, l.invoiceID, p.style(dim, l.id))
	switch {
	case posted == nil:
		fmt.Fprintln(p.Out)
	case posted.Error == "":
		fmt.Fprintln(p.Out, "  →", p.style(green, fmt.Sprintf("%d in %d ms", posted.StatusCode, posted.Duration.Milliseconds())))
	default:
		fmt.Fprintln(p.Out, "  →", p.style(red, fmt.Sprintf("failed in %d ms: %s", posted.Duration.Milliseconds(), posted.Error)))
	}
}

// note writes a line that is not an event.
func (p Printer) note(text string) { fmt.Fprintln(p.Notes, p.style(dim, text)) }
