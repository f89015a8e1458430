package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/clock"
)

// printEvents writes a line for each event.
func printEvents(out io.Writer, all []apitypes.EventRecord) error {
	const header = "EVENT\tHAPPENED\tTYPE\tMERCHANT\tINVOICE\tDELIVERY"
	return tableOf(out, "events", all, header, func(r apitypes.EventRecord) []any {
		e := r.Envelope()
		return []any{e.ID, timeOfDay(e.CreatedAt), e.Type, r.MerchantID, r.InvoiceID, deliveryState(r.Delivery)}
	})
}

// printEvent writes an event with its delivery and attempts.
func printEvent(out io.Writer, r apitypes.EventRecord) error {
	var body bytes.Buffer
	if err := json.Indent(&body, r.Event, "  ", "  "); err != nil {
		return fmt.Errorf("the event is no JSON: %w", err)
	}
	var text strings.Builder
	e := r.Envelope()
	fmt.Fprintf(&text, "%s  %s of merchant %s, invoice %s, %s\n\n  %s\n\n", e.ID, e.Type, r.MerchantID, r.InvoiceID, timeOfDay(e.CreatedAt), &body)
	if r.Delivery == nil {
		text.WriteString("It has no delivery: the merchant wanted no events when it happened.\n")
		_, err := io.WriteString(out, text.String())
		return err
	}
	fmt.Fprintf(&text, "Its delivery %s: %s.\n", r.Delivery.ID, deliveryState(r.Delivery))
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	if len(r.Attempts) > 0 {
		fmt.Fprintln(table, "\nATTEMPT\tSTARTED\tTOOK\tLOOKUP\tCONNECT\tTLS\tFIRST BYTE\tSTATUS\tREMARK")
	}
	for _, a := range r.Attempts {
		fmt.Fprintf(table, "%d\t%s\t%d ms\t%s\t%s\t%s\t%s\t%s\t%s\n", a.Number, timeOfDay(a.StartedAt), a.DurationMs,
			phase(a.LookupMs), phase(a.ConnectMs), phase(a.HandshakeMs), phase(a.AnswerMs), status(a.StatusCode), printable(a.Error))
		if a.Excerpt != "" {
			fmt.Fprintf(table, "\tanswered: %s\n", printable(a.Excerpt))
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return writeTrimmed(out, text.String())
}

// deliveryState describes the state of a delivery.
func deliveryState(d *apitypes.Delivery) string {
	if d == nil {
		return "none"
	}
	words := string(d.Status)
	if d.Attempts > 0 {
		words += " after " + count(d.Attempts, "attempt")
	}
	switch {
	case d.WaitingFor == apitypes.DeliveryWaitEndpoint:
		words += ", waiting for an endpoint"
	case d.Status == apitypes.DeliveryPending:
		words += ", next " + timeOfDay(d.NextAttemptAt)
	}
	return words
}

// timeOfDay formats a time in UTC, or "-" for 0.
func timeOfDay(at int64) string { return orDash(clock.Format(clock.Unix(at), time.UTC, time.RFC3339)) }

// phase formats the duration of a phase of an exchange, if it took place.
func phase(ms int64) string {
	if ms == 0 {
		return "-"
	}
	return fmt.Sprint(ms, " ms")
}

func status(code int) string {
	if code == 0 {
		return "-"
	}
	return fmt.Sprint(code)
}

// printable removes control characters from a text of another party.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t', r == '\r':
			return ' '
		case unicode.IsPrint(r):
			return r
		default:
			return unicode.ReplacementChar
		}
	}, text)
}
