package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/quittance/quittance/bench/seed"
	"github.com/quittance/quittance/internal/config"
	"github.com/quittance/quittance/internal/invoice"
)

const (
	// listedFew is the number of invoices of the baseline, which belong to listedMerchants. More invoices have more
	// merchants, with listedOf invoices each on average.
	listedFew, listedMerchants, listedOf = 10_000, 100, 1000
	// listedOpen: one in this many invoices is open.
	listedOpen = 50
	// listWarmUp is how often a list is requested before the requests that count.
	listWarmUp = 10
	// listLimit is the maximum p99 of a list, in milliseconds.
	listLimit = 15
)

// measureLists measures lists, searches and single objects over HTTP, with many invoices. The baseline is the service
// with few, in turns. Each request has its own value of the filter.
func measureLists(ctx context.Context, r *measurement) (err error) {
	few, err := r.startListed(ctx, listedFew)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, few.stop()) }()
	many, err := r.startListed(ctx, r.Invoices)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, many.stop()) }()
	logs, inTime := 0.0, 0
	for _, path := range listPaths {
		took := make(map[*listed][]time.Duration)
		for i := range listWarmUp + r.Queries {
			for _, l := range []*listed{few, many} {
				var page json.RawMessage
				one, err := l.get(ctx, "/api/"+l.fillIn(path), &page)
				if err != nil {
					return err
				}
				if i >= listWarmUp {
					took[l] = append(took[l], one)
				}
			}
		}
		p99, median, fewMedian := quantile(took[many], 0.99), quantile(took[many], 0.5), quantile(took[few], 0.5)
		if p99 <= listLimit {
			inTime++
		}
		logs += math.Log(median / fewMedian)
		r.slower(figure{
			What: fmt.Sprintf("GET %s, p99 with %d invoices", path, r.Invoices), Unit: "ms", Value: p99,
			Baseline: quantile(took[few], 0.99), BaselineIs: fmt.Sprintf("with %d", listedFew), unchecked: true,
			Note: fmt.Sprintf("medians %.1f and %.1f ms", median, fewMedian),
		})
	}
	r.slower(figure{
		What: fmt.Sprintf("a list, median with %d invoices", r.Invoices), Unit: "times that with few", Baseline: 1,
		Value:      math.Exp(logs / float64(len(listPaths))),
		BaselineIs: fmt.Sprintf("with %d, in turns; the geometric mean of %d ratios", listedFew, len(listPaths)),
	})
	r.faster(figure{
		What: fmt.Sprintf("lists with a p99 of at most %d ms, with %d invoices", listLimit, r.Invoices), Unit: "lists",
		Value: float64(inTime), Baseline: float64(len(listPaths)), BaselineIs: "all lists", unchecked: true,
	})
	return nil
}

// listed is a server with invoices, payments and events to list.
type listed struct {
	*service
	*seed.Maker
}

// startListed starts a server on a database with invoices of a year.
func (r *measurement) startListed(ctx context.Context, invoices int) (*listed, error) {
	n, err := r.holding(ctx, history{})
	if err != nil {
		return nil, err
	}
	rows, err := seed.New(seed.Config{
		Invoices: invoices, Merchants: max(listedMerchants, invoices/listedOf), Open: invoices / listedOpen,
		Until: time.Now(), KeepEvents: config.DefaultRetention, KeepAttempts: config.DefaultRetention,
	})
	if err != nil {
		return nil, err
	}
	database, err := r.newFilled(ctx, fillConfig{Year: &rows.Config, Head: n.Newest})
	if err != nil {
		return nil, err
	}
	s, err := r.startServer(ctx, n, serverConfig{Database: database, Registry: n.Registry})
	if err != nil {
		return nil, err
	}
	l := &listed{s, rows}
	if err := errors.Join(l.waitCaughtUp(ctx), l.waitForSums(ctx)); err != nil {
		return nil, errors.Join(err, l.stop())
	}
	return l, nil
}

// waitForSums waits until the server has computed the sums of the past, which takes CPU time.
func (l *listed) waitForSums(ctx context.Context) error {
	began := time.Now()
	return poll(ctx, "the sums are computed", time.Second, fillPatience, func(ctx context.Context) (bool, error) {
		through, err := query[int64](ctx, l.database, "SELECT through FROM rollup_progress")
		return time.Unix(through, 0).After(began.Add(-time.Hour)), err
	})
}

// fillIn replaces the words in braces by values of a random invoice, or of the largest merchant.
func (l *listed) fillIn(path string) string {
	n := rand.N(l.Invoices) //nolint:gosec // it picks a row
	return wordInPath.ReplaceAllStringFunc(path, func(word string) string {
		return url.QueryEscape(listValues[strings.Trim(word, "{}")](l, n))
	})
}

var wordInPath = regexp.MustCompile(`\{\w+\}`)

// listValues are the values of the words, for the nth invoice.
var listValues = map[string]func(l *listed, n int) string{
	"largest":        func(*listed, int) string { return seed.Merchant(0) },
	"largestAddress": func(l *listed, _ int) string { return l.Address(0).String() },
	"merchant":       func(l *listed, n int) string { return l.Invoice(n).MerchantID },
	"address":        func(l *listed, n int) string { return l.Invoice(n).Merchant.String() },
	"id":             func(l *listed, n int) string { return l.Invoice(n).ID },
	"idBeginning":    func(l *listed, n int) string { return l.Invoice(n).ID[:12] },
	"openId":         func(l *listed, n int) string { return l.Invoice(l.Invoices - 1 - n%l.Open).ID },
	"status":         func(l *listed, n int) string { return string(l.Invoice(n).Status) },
	"amount":         func(l *listed, n int) string { return l.Invoice(n).Amount.String() },
	"reference":      func(l *listed, n int) string { return l.Invoice(n).Details.Reference },
	"basket":         func(l *listed, n int) string { return l.Invoice(n).Details.Metadata["basket"] },
	"customer":       func(l *listed, n int) string { return l.Invoice(n).Details.Customer.ID },
	"commitment":     func(l *listed, n int) string { return l.Invoice(n).CommitmentID.String() },
	"exception":      func(_ *listed, n int) string { return []string{"underpaid", "overpaid", "late"}[n%3] },
	"from":           func(l *listed, n int) string { return fmt.Sprint(l.At(n).Unix()) },
	"payment":        func(l *listed, n int) string { return l.payment(n).ID },
	"paid":           func(l *listed, n int) string { return l.payment(n).Amount.String() },
	"txHash":         func(l *listed, n int) string { return l.payment(n).TxHash.String() },
	"txBeginning":    func(l *listed, n int) string { return l.payment(n).TxHash.String()[:12] },
	"payer":          func(l *listed, n int) string { return l.payment(n).From.String() },
	"unknown":        func(_ *listed, n int) string { return hashOf(n).String() },
}

// payment returns a payment of the nth invoice, or of one of the following invoices.
func (l *listed) payment(n int) invoice.Payment {
	for ; ; n = (n + 1) % l.Invoices {
		if of := l.Payments(n); len(of) > 0 {
			return of[0].Payment
		}
	}
}

// listPaths are the measured requests. For a value that few rows have, only one element is requested, so that the pages
// with few and with many rows are similar.
var listPaths = []string{
	"invoices",
	"invoices?merchantId={largest}",
	"invoices?limit=5&merchantId={merchant}",
	"invoices?status=paid",
	"invoices?status=expired",
	"invoices?status={status}",
	"invoices?limit=1&merchantId={merchant}&status={status}",
	"invoices?reference={reference}",
	"invoices?merchantId={merchant}&reference={reference}",
	"invoices?limit=1&metadata[basket]={basket}",
	"invoices?limit=1&merchantId={merchant}&metadata[basket]={basket}",
	"invoices?limit=1&merchantId={merchant}&customer={customer}",
	"invoices?limit=1&amount={amount}",
	"invoices?exception={exception}",
	"invoices?limit=5&merchantId={largest}&exception={exception}",
	"invoices?limit=5&to={address}",
	"invoices?limit=5&createdAfter={from}",
	"invoices?status=draft&to={largestAddress}",
	"invoices/{id}",
	"invoices/{id}/payments",
	"invoices/{id}/timeline",
	"payments",
	"payments?merchantId={largest}",
	"payments?limit=5&merchantId={merchant}",
	"payments?include=pending,unattributed&candidates=false",
	"payments?invoiceId={id}",
	"payments?txHash={txHash}",
	"payments?limit=1&from={payer}",
	"payments?limit=5&to={address}",
	"payments?limit=1&amount={paid}",
	"payments?limit=5&confirmedAfter={from}",
	"payments?limit=5&merchantId={merchant}&confirmedAfter={from}",
	"payments?merchantId=unknown&to={largestAddress}",
	"payments/{payment}",
	"payments/{payment}/refunds",
	"refunds",
	"refunds?merchantId={largest}",
	"customers?merchantId={largest}",
	"inbox?limit=5",
	"inbox?limit=5&merchantId={largest}",
	"inbox/counts?merchantId={merchant}",
	"operator/merchants?limit=5",
	"events",
	"events?merchantId={largest}",
	"events?limit=1&merchantId={merchant}",
	"events?type=invoice.created",
	"events?delivery=delivered",
	"events?delivery=pending",
	"events?limit=5&delivery=failed",
	"events?delivery=delivered&merchantId={largest}",
	"events?delivery=pending&merchantId={largest}",
	"events?limit=1&delivery=failed&merchantId={largest}",
	"events?invoiceId={openId}",
	"events?limit=5&createdAfter={from}",
	"invoices?q={id}",
	"invoices?q={idBeginning}",
	"invoices?q={reference}",
	"invoices?q={commitment}",
	"invoices?q={txHash}",
	"invoices?q={txBeginning}",
	"invoices?limit=1&q={payer}",
	"invoices?limit=5&q={address}",
	"invoices?q={payment}",
	"invoices?q={unknown}",
	"invoices?q=unknown+text",
}
