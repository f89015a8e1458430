package client_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/test/expect"
)

// invoicePage answers with invoices of the numbers.
func invoicePage(next string, numbers ...int) outcome {
	var invoices []string
	for _, n := range numbers {
		invoices = append(invoices, fmt.Sprintf(`{"id":"inv_%d"}`, n))
	}
	return answers(http.StatusOK, fmt.Sprintf(`{"invoices":[%s],"nextCursor":%q}`, strings.Join(invoices, ","), next))
}

func numbers(invoices []apitypes.Invoice) string {
	var all []string
	for _, inv := range invoices {
		all = append(all, strings.TrimPrefix(inv.ID, "inv_"))
	}
	return strings.Join(all, " ")
}

func TestCollect(t *testing.T) {
	for limit, want := range map[int]struct {
		ids      string
		requests int
	}{1: {"1", 1}, 2: {"1 2", 1}, 3: {"1 2 3", 2}, 100: {"1 2 3", 2}} {
		c, e, _ := with(t, invoicePage("c1", 1, 2), invoicePage("", 3))
		got, err := client.Collect(c.Invoices(t.Context(), client.InvoiceFilter{}), limit)
		if err != nil || numbers(got) != want.ids || len(e.sent) != want.requests {
			t.Errorf("at most %d: %s, %v after %d requests, want %+v", limit, numbers(got), err, len(e.sent), want)
		}
	}
	c, e, _ := with(t, invoicePage("c1", 1, 2), problem(400, apitypes.CodeInvalidField))
	got, err := client.Collect(c.Invoices(t.Context(), client.InvoiceFilter{}), 3)
	if refused := (*client.Error)(nil); !errors.As(err, &refused) || numbers(got) != "1 2" {
		t.Errorf("%s, %v", numbers(got), err)
	}
	if _, err := client.Collect(c.Invoices(t.Context(), client.InvoiceFilter{}), 0); err == nil || len(e.sent) != 2 {
		t.Errorf("a limit of 0: %v", err)
	}
}

func TestPages(t *testing.T) {
	c, e, _ := with(t, invoicePage("c1", 1, 2), invoicePage("", 3))
	f := client.InvoiceFilter{Status: apitypes.StatusPaid, PageSize: 2}
	first, err := c.InvoicesPage(t.Context(), f, "")
	if err != nil || numbers(first.Items) != "1 2" || first.NextCursor != "c1" {
		t.Errorf("%+v, %v", first, err)
	}
	last, err := c.InvoicesPage(t.Context(), f, first.NextCursor)
	if err != nil || numbers(last.Items) != "3" || last.NextCursor != "" {
		t.Errorf("%+v, %v", last, err)
	}
	if e.queries[0].Encode() != "limit=2&status=paid" || e.queries[1].Encode() != "cursor=c1&limit=2&status=paid" {
		t.Errorf("asked for %v", e.queries)
	}

	c, e, _ = with(t, answers(200, `{"payments":[{"id":"pay_1"}],"nextCursor":"c1"}`), answers(200, `{"refunds":[{"id":"ref_1"}],"nextCursor":"c2"}`),
		answers(200, `{"customers":[{"customer":"x"}],"nextCursor":"c3"}`), answers(200, `{"links":[{"id":"lnk_1","url":"/pay/x"}],"nextCursor":"c4"}`),
		answers(200, `{"events":[{"event":{"id":"evt_1"},"merchantId":"acme"}],"nextCursor":"c5"}`))
	ctx := t.Context()
	payments, err1 := c.PaymentsPage(ctx, client.PaymentFilter{}, "c")
	refunds, err2 := c.RefundsPage(ctx, client.RefundFilter{}, "c")
	customers, err3 := c.CustomersPage(ctx, client.CustomerFilter{}, "c")
	links, err4 := c.PaymentLinksPage(ctx, client.PaymentLinkFilter{}, "c")
	events, err5 := c.EventsPage(ctx, client.EventFilter{}, "c")
	expect.OK(t, errors.Join(err1, err2, err3, err4, err5))
	got := []string{payments.NextCursor, refunds.NextCursor, customers.NextCursor, links.NextCursor, events.NextCursor, payments.Items[0].ID, refunds.Items[0].ID,
		customers.Items[0].Customer, links.Items[0].URL, events.Items[0].ID()}
	want := []string{"c1", "c2", "c3", "c4", "c5", "pay_1", "ref_1", "x", "http://service.example/pay/x", "evt_1"}
	if !slices.Equal(got, want) || len(e.sent) != 5 {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, query := range e.queries {
		if query.Encode() != "cursor=c" {
			t.Errorf("asked for %s", query.Encode())
		}
	}
}

// TestLongMessageOfAStream has a stream with a message that is too long, in one line or in several.
func TestLongMessageOfAStream(t *testing.T) {
	line := "data: " + strings.Repeat("x", 1<<20) + "\n"
	for name, text := range map[string]string{"lines": strings.Repeat(line, 3), "a line": strings.ReplaceAll(strings.Repeat(line, 3), "\n", "") + "\n\n"} {
		c, e, _ := with(t, answers(http.StatusOK, text+"\n"))
		for _, err := range c.StreamEvents(t.Context(), client.EventFilter{}, client.AfterStart) {
			if invalid := (*client.InvalidResponseError)(nil); !errors.As(err, &invalid) || len(e.sent) != 1 {
				t.Errorf("%s: %v after %d requests", name, err, len(e.sent))
			}
		}
	}
}
