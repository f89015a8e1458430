package api_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/report"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/txmgr"
	"github.com/quittance/quittance/internal/web/api"
)

// ReportedPayments returns the confirmed payments of a period on one page.
func (b *backend) ReportedPayments(ctx context.Context, f report.ReportFilter) (all []report.ReportedPayment, err error) {
	for _, p := range b.payments {
		if p.Status == invoice.Confirmed && p.Attributed() && !p.ConfirmedAt.Before(f.From) && p.ConfirmedAt.Before(f.To) && (f.MerchantID == "" || f.MerchantID == p.MerchantID) {
			inv := invoice.Invoice{Terms: invoice.Terms{Amount: invoice.NewAmount(1000), ExpiresAt: p.BlockTime}, Status: invoice.Paid, Sums: invoice.Sums{Payments: 1}}
			all = append(all, report.ReportedPayment{PaymentRow: p, Invoice: inv})
		}
	}
	return all, b.fail(ctx)
}

func (b *backend) ReportedRefunds(ctx context.Context, _ report.ReportFilter) ([]invoice.Refund, error) {
	return nil, b.fail(ctx)
}

func (b *backend) ConfirmedPaymentsBetween(ctx context.Context, _ string, _, _ invoice.Position, _ int) ([]invoice.Payment, error) {
	return nil, b.fail(ctx)
}

func (b *backend) TxShares(ctx context.Context, f report.ReportFilter) (all []txmgr.TxShare, err error) {
	for _, s := range b.shares {
		if !s.Cost.At.Before(f.From) && s.Cost.At.Before(f.To) && (f.MerchantID == "" || f.MerchantID == s.MerchantID) {
			all = append(all, s)
		}
	}
	return all, b.fail(ctx)
}

// TestReportedFees reports fees to the operator and to a merchant.
func TestReportedFees(t *testing.T) {
	b := reported()
	share := func(tx string, kind txmgr.TxKind, merchant string, items, gwei int64) txmgr.TxShare {
		return txmgr.TxShare{TxID: tx, ChainKey: "base", Kind: kind, MerchantID: merchant, Items: items, Cost: ledger.TxCost{Gwei: gwei, At: time.Unix(10, 0)}}
	}
	b.shares = []txmgr.TxShare{
		share("ctx_1", txmgr.TxSweep, "acme", 1, 33), share("ctx_1", txmgr.TxSweep, "globex", 2, 67),
		share("ctx_2", txmgr.TxSweep, "", 0, 7), share("ctx_3", txmgr.TxClose, "acme", 3, 9),
	}
	h := newAPI(t, b)
	commitments := apitypes.TransactionFee{ChainKey: "base", Kind: apitypes.FeeCommitment, MerchantID: "acme", Items: 3, CostGwei: "9"}
	sweeps := apitypes.TransactionFee{ChainKey: "base", Kind: apitypes.FeeSweep, MerchantID: "acme", Items: 1, CostGwei: "33"}
	for query, want := range map[string][]apitypes.TransactionFee{
		"from=1&to=11":                 {commitments, {ChainKey: "base", Kind: apitypes.FeeSweep, CostGwei: "7"}, sweeps, {ChainKey: "base", Kind: apitypes.FeeSweep, MerchantID: "globex", Items: 2, CostGwei: "67"}},
		"from=1&to=11&merchantId=acme": {commitments, sweeps},
		"from=11&to=12":                nil,
	} {
		made := decode[apitypes.SettlementReportResponse](t, do(h, "GET", "/api/reports/settlement?"+query, ""), http.StatusOK).Report
		expect.NoDiff(t, cmp.Diff(want, made.Fees, cmpopts.EquateEmpty()), "%s", query)
	}
}

// reported returns a backend with payments that were confirmed around midnight in Berlin.
func reported() *backend {
	b := &backend{}
	for i, at := range []string{"2026-11-22T22:59:59Z", "2026-11-22T23:00:00Z", "2026-11-23T22:59:59Z", "2026-11-23T23:00:00Z"} {
		t, err := time.Parse(time.RFC3339, at)
		if err != nil {
			panic(err)
		}
		b.payments = append(b.payments, ledger.PaymentRow{SeenID: number(i), Payment: invoice.Payment{
			ID: "pay_" + number(i), InvoiceID: invoiceID(i), MerchantID: "acme", Status: invoice.Confirmed, ConfirmedAt: t,
			Transfer: invoice.Transfer{ChainKey: "base", Currency: "USDC", Amount: invoice.NewAmount(1007)},
		}})
	}
	return b
}

// TestReportDayWithoutMidnight reports on days on which clocks are changed. The period begins with the
// day, also if clocks skip or repeat its midnight.
func TestReportDayWithoutMidnight(t *testing.T) {
	h := newAPI(t, reported())
	for day, want := range map[string]string{
		"America/Santiago 2026-09-06": "2026-09-06T01:00:00-03:00", // from 00:00 to 01:00
		"Atlantic/Azores 2026-03-29":  "2026-03-29T01:00:00Z",
		"America/Havana 2026-11-01":   "2026-11-01T00:00:00-04:00", // from 01:00 to 00:00
		"Europe/Berlin 2026-10-25":    "2026-10-25T00:00:00+02:00",
		"Pacific/Apia 2011-12-30":     "2011-12-31T00:00:00+14:00", // the day was skipped
	} {
		zone, date, _ := strings.Cut(day, " ")
		begin := expect.Must(time.Parse(time.RFC3339, want))
		query := url.Values{"from": {date}, "to": {strconv.FormatInt(begin.Unix()+1, 10)}, "timezone": {zone}}
		made := decode[apitypes.SettlementReportResponse](t, do(h, "GET", "/api/reports/settlement?"+query.Encode(), ""), http.StatusOK).Report
		if made.From != begin.Unix() {
			t.Errorf("%s begins at %v, want %s", day, time.Unix(made.From, 0).In(begin.Location()), want)
		}
	}
}

// TestReportDays groups payments by the days of a time zone.
func TestReportDays(t *testing.T) {
	h := newAPI(t, reported())
	for zone, want := range map[string]map[string]int64{
		"":                  {"2026-11-22": 2, "2026-11-23": 2},
		"Europe/Berlin":     {"2026-11-22": 1, "2026-11-23": 2, "2026-11-24": 1},
		"America/Sao_Paulo": {"2026-11-22": 2, "2026-11-23": 2},
	} {
		query := url.Values{"from": {"1795000000"}, "to": {"1796000000"}, "groupBy": {"day"}}
		if zone != "" {
			query.Set("timezone", zone)
		}
		made := decode[apitypes.SettlementReportResponse](t, do(h, "GET", "/api/reports/settlement?"+query.Encode(), ""), http.StatusOK).Report
		got := make(map[string]int64)
		for _, line := range made.Lines {
			got[line.Day] = line.Payments
		}
		expect.NoDiff(t, cmp.Diff(want, got), "%s", zone)
		if total := made.Totals[0]; total.Payments != 4 || total.Gross != "4028" || total.Settled != "4000" || total.Suffixes != "28" || total.Net != "4028" || *total.Decimals != 6 {
			t.Errorf("%s: totals %+v", zone, total)
		}
	}
	day := decode[apitypes.SettlementReportResponse](t, do(h, "GET", "/api/reports/settlement?from=2026-11-23&to=2026-11-24&timezone=Europe/Berlin&groupBy=chain&merchantId=acme", ""), http.StatusOK).Report
	if len(day.Lines) != 1 || day.Lines[0].ChainKey != "base" || day.Lines[0].Payments != 2 || day.From != 1795388400 || day.To != 1795474800 {
		t.Errorf("a day in Berlin has %+v", day)
	}
	none := decode[apitypes.SettlementReportResponse](t, do(h, "GET", "/api/reports/settlement?from=0&to=86400&merchantId=nobody", ""), http.StatusOK).Report
	if len(none.Lines) != 0 || none.Lines == nil {
		t.Errorf("nobody: %+v", none)
	}
}

func TestReportRefusesParameters(t *testing.T) {
	h := newAPI(t, reported())
	longest := int64(api.MaxReportPeriod / time.Second)
	for query, field := range map[string]string{
		"to=1": "from", "from=1": "to", "from=2&to=1": "to", "from=1&to=2&merchantId=no%00body": "merchantId", "from=1&to=1": "to", "from=-1&to=1": "from", "from=01&to=2": "from",
		"from=2026-02-30&to=2026-03-01": "from", "from=1&to=253402300800": "to", "from=1&to=99999999999999999999": "to",
		"from=1&to=" + fmt.Sprint(longest+2): "to", "from=1&to=2&groupBy=week": "groupBy", "from=1&to=2&timezone=": "timezone",
		"from=1&to=2&timezone=Local":    "timezone",
		"from=1969-12-31&to=1970-01-02": "from", "from=1970-01-01&to=1970-01-02&timezone=Europe/Berlin": "from", "from=0001-01-01&to=0001-01-02": "from",
		"from=1&to=1969-12-31": "to", "from=1&to=2&timezone=Berlin": "timezone", "from=1&to=2&timezone=../etc/passwd": "timezone",
	} {
		wantProblem(t, do(h, "GET", "/api/reports/settlement?"+query, ""), http.StatusBadRequest, "invalid_field", field)
	}
	if w := do(h, "GET", "/api/reports/settlement?from=1970-01-01&to=1970-01-02", ""); w.Code != http.StatusOK {
		t.Errorf("the first day: %d %s", w.Code, w.Body)
	}
	if w := do(h, "GET", "/api/reports/settlement?from=1&to="+fmt.Sprint(longest+1), ""); w.Code != http.StatusOK {
		t.Errorf("the longest period: %d %s", w.Code, w.Body)
	}
}

// TestReportsAreBounded checks that an owner can make only a few reports at a time.
func TestReportsAreBounded(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	b := reported()
	b.wait = func(context.Context) error {
		entered <- struct{}{}
		<-leave
		return nil
	}
	h := newAPI(t, b)
	const path = "/api/reports/settlement?from=1&to=2"
	done := make(chan int)
	for range api.MaxOwnReports {
		go func() { done <- do(h, "GET", path, "").Code }()
		<-entered
	}
	wantProblem(t, do(h, "GET", path, ""), http.StatusTooManyRequests, "rate_limited", "")
	if len(b.refused) != 1 || b.refused[0] != "reports" {
		t.Errorf("refused by %q", b.refused)
	}
	ended := 0
	for close(leave); ended < api.MaxOwnReports; {
		select {
		case <-entered:
		case status := <-done:
			if ended++; status != http.StatusOK {
				t.Errorf("answered %d", status)
			}
		}
	}
}

// TestReportAsCSV reads each table of a report as CSV.
func TestReportAsCSV(t *testing.T) {
	b := reported()
	b.shares = []txmgr.TxShare{{TxID: "ctx_1", ChainKey: "base", Kind: txmgr.TxAuthorization, MerchantID: "-acme", Items: 3, Cost: ledger.TxCost{Gwei: 100, At: time.Unix(1795388400, 0)}}}
	h := newAPI(t, b)
	const path = "/api/reports/settlement?from=1795000000&to=1796000000&groupBy=chain"
	const head = "day,chainKey,currency,decimals,payments,gross,settled,underpaid,suffixes,overpaid,late,duplicate,refunds,refunded,net," +
		"grossDecimal,settledDecimal,underpaidDecimal,suffixesDecimal,overpaidDecimal,lateDecimal,duplicateDecimal,refundedDecimal,netDecimal,from,to,timezone\r\n"
	const lines = head + ",base,USDC,6,4,4028,4000,0,28,0,0,0,0,0,4028," +
		"0.004028,0.004,0.00,0.000028,0.00,0.00,0.00,0.00,0.004028,2026-11-18T11:06:40Z,2026-11-30T00:53:20Z,UTC\r\n"
	const fees = "chainKey,kind,merchantId,items,costGwei,costDecimal,from,to,timezone\r\nbase,authorization,'-acme,3,100,0.0000001,2026-11-18T11:06:40Z,2026-11-30T00:53:20Z,UTC\r\n"
	for query, want := range map[string]string{
		"": lines, "&table=lines": lines, "&table=fees": fees,
		"&bom=1&separator=semicolon&decimal=comma": "\ufeff" + strings.ReplaceAll(strings.ReplaceAll(lines, ",", ";"), ".", ","),
		"&decimal=comma":                       head + `,base,USDC,6,4,4028,4000,0,28,0,0,0,0,0,4028,"0,004028","0,004","0,00","0,000028","0,00","0,00","0,00","0,00","0,004028",2026-11-18T11:06:40Z,2026-11-30T00:53:20Z,UTC` + "\r\n",
		"&bom=0&separator=comma&decimal=point": lines,
	} {
		w := do(h, "GET", path+query, "", "Accept", "text/csv")
		name := "settlement"
		if strings.Contains(query, "fees") {
			name += "-fees"
		}
		if w.Code != http.StatusOK || w.Body.String() != want || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/csv") ||
			w.Header().Get("Content-Disposition") != `attachment; filename="`+name+`-2026-11-18-2026-11-30.csv"` {
			t.Errorf("%q: %d %v\n%s\nwant\n%s", query, w.Code, w.Header(), w.Body, want)
		}
	}
	for query, field := range map[string]string{"&bom=yes": "bom", "&separator=tab": "separator", "&decimal=;": "decimal"} {
		wantProblem(t, do(h, "GET", path+strings.ReplaceAll(query, ";", "%3B"), "", "Accept", "text/csv"), http.StatusBadRequest, "invalid_field", field)
	}
	wantProblem(t, do(h, "GET", path+"&bom=1", ""), http.StatusBadRequest, "invalid_field", "bom")
	wantProblem(t, do(h, "GET", path+"&table=lines", ""), http.StatusBadRequest, "invalid_field", "table")
	wantProblem(t, do(h, "GET", path+"&table=totals", "", "Accept", "text/csv"), http.StatusBadRequest, "invalid_field", "table")
}

// TestSummaryRefusesParameters names the parameter that is wrong.
func TestSummaryRefusesParameters(t *testing.T) {
	h := newAPI(t, reported())
	tooEarly := testClock().Add(-api.MaxSummaryPeriod).Unix()
	for query, field := range map[string]string{
		"": "from", "from=yesterday": "from", "from=9999-01-01": "from", "from=" + fmt.Sprint(tooEarly): "from", "from=-1": "from",
		"from=1&timezone=Mars": "timezone", "from=1&merchantId=no%00body": "merchantId", "from=1&to=2": "to", "from=1&groupBy=day": "groupBy",
	} {
		wantProblem(t, do(h, "GET", "/api/reports/summary?"+query, ""), http.StatusBadRequest, "invalid_field", field)
	}
}
