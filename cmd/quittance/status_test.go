package main

import (
	"encoding/json"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/admin"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/test/expect"
)

func TestPrintStatus(t *testing.T) {
	now := time.Unix(1_764_000_000, 0)
	running := admin.Status{Chains: []admin.Chain{{
		ChainKey: "base", Ready: true, Reading: true, Head: 38211203, Indexed: 38211203, Confirmed: 38211170,
		Providers: []admin.Provider{
			{Provider: "https://base.example", State: chain.StateOK, Health: apitypes.NodeOK, Head: 38211203, LatencyMs: 12.34, Calls: 1234},
			{Provider: "https://other.example", State: chain.StateBackoff, Health: apitypes.NodePaused, FailingSince: now.Unix() - 60, Head: 38211190, LatencyMs: 80, Calls: 12, Errors: 3,
				Limits: []admin.NodeLimit{{Kind: chain.KindReceiptsOfBlock, Refused: 1}, {Kind: chain.KindHeaders, Size: 12, Refused: 25}, {Kind: chain.KindLogs, Size: 1, Refused: 2}, {Kind: chain.KindRange, Refused: 1}}, Pace: 4, LeadingZeros: true,
				Until: now.Unix() + 7, Reason: "https://other.example: eth_getLogs: 429 Too Many Requests"},
		},
		Writer: &admin.Writer{Account: "0xA1", Working: true, Due: 3, InFlight: 1, NextNonce: 17,
			Spent: big.NewInt(20_000_000_000_000_000), Budget: big.NewInt(200_000_000_000_000_000)},
	}, {
		ChainKey: "polygon", Ready: true, Head: 61200000, Indexed: 61190000, Confirmed: 61189872, Lag: admin.Lag{Blocks: 10000, Seconds: 18000},
		CatchUp:   &admin.Progress{From: 61180000, To: 61199872, Next: 61190001, Percent: 50.3, BlocksPerSecond: 1234.4, SecondsLeft: 310},
		Backfill:  &admin.Progress{From: 60000000, To: 61180000, Next: 60000000},
		Providers: []admin.Provider{{Provider: "https://polygon.example", State: chain.StateUnknown, Health: apitypes.NodeUnused}},
		Writer:    &admin.Writer{Account: "0xA2", Error: "the operator's account has too little", Since: now.Unix() - 90, Balance: big.NewInt(1)},
	}, {
		ChainKey: "house", Reading: true, Halted: "block 20 was replaced", Error: "as above", Head: 120, Indexed: 100, Confirmed: 90, Lag: admin.Lag{Blocks: 20, Seconds: 240},
	}, {
		ChainKey: "moon", Reading: true, Error: "it serves chain id 1",
		Providers: []admin.Provider{{Provider: "http://moon.example", State: chain.StateMisconfigured, Health: apitypes.NodePaused, Until: now.Unix() - 1, Reason: "it serves chain id 1"},
			{Provider: "http://new.example", State: chain.StateUnknown, Health: apitypes.NodeFailing, FailingSince: now.Unix() - 5, Reason: "connection refused"},
			{Provider: "http://old.example", State: chain.StateLagging, Health: apitypes.NodeOK, LastError: "http://old.example: EOF", LastErrorAt: now.Unix() - 3600}},
	}}}
	const want = `CHAIN    HEAD      INDEXED   CONFIRMED  LAG             STATE
base     38211203  38211203  38211170   0               ready
polygon  61200000  61190000  61189872   10000 (5h0m0s)  ready, read by another replica, catching up 61180000 to 61199872: 50.3 %, 1234 blocks/s, 5m10s left, back-filling 60000000 to 61180000: 0.0 %
house    120       100       90         20 (4m0s)       halted
moon     0         0         0          0               not ready

CHAIN    NODE                     STATE                   HEAD      LATENCY  CALLS  PER DAY  ERRORS  REMARK
base     https://base.example     working                 38211203  12.3 ms  1234   0        0
base     https://other.example    paused                  38211190  80.0 ms  12     0        3       asked again in 7s: failing for 1m0s: eth_getLogs: 429 Too Many Requests
polygon  https://polygon.example  never tried             0         0.0 ms   0      0        0
moon     http://moon.example      paused (misconfigured)  0         0.0 ms   0      0        0       it serves chain id 1
moon     http://new.example       failing                 0         0.0 ms   0      0        0       failing for 5s: connection refused
moon     http://old.example       working (lagging)       0         0.0 ms   0      0        0       last error 1h0m0s ago: EOF

base: https://other.example is asked for at most 12 headers in a batch (it refused 25), 4 calls a second (it refused more), and is not asked for eth_getBlockReceipts or batches of questions for logs or ranges of logs, and writes numbers with leading zeros
base: the writer 0xA1 has 3 intents due and 1 transaction in flight; its next nonce is 17, and it spent 0.02 of 0.2 in 24 hours
polygon: the writer 0xA2 waits while another process writes; for 1m30s: the operator's account has too little
house: halted: block 20 was replaced
`
	var out strings.Builder
	expect.OK(t, printStatus(&out, running, now))
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, test := range []struct {
		st   admin.Status
		want string
	}{
		{admin.Status{Chains: running.Chains[:1]}, ""},
		{admin.Status{Chains: running.Chains[:2]}, "the registry of polygon is not written"},
		{running, "house is not ready"},
		{admin.Status{Offline: "no answer at http://127.0.0.1:1", Chains: running.Chains[:1]}, "no answer at http://127.0.0.1:1"},
	} {
		if err := statusError(test.st); (err == nil) != (test.want == "") || err != nil && err.Error() != test.want {
			t.Errorf("judge = %v, want %q", err, test.want)
		}
	}
}

// TestPrintOffline prints where the figures are from, and reports no chain as ready.
func TestPrintOffline(t *testing.T) {
	st := admin.Status{Offline: "no answer at http://127.0.0.1:1", Chains: []admin.Chain{{
		ChainKey: "base", Head: 9, Indexed: 9, Confirmed: 8, Checks: admin.Checks(chain.Chain{CompareLogs: true}, "on", admin.LogsNone),
		Providers: []admin.Provider{{Provider: "https://base.example", State: chain.StateOK, Health: apitypes.NodeOK, Head: 9, LatencyMs: 1, Calls: 4}},
	}}}
	const want = `There is no answer at http://127.0.0.1:1. This is what the database and the nodes say.

CHAIN  HEAD  INDEXED  CONFIRMED  LAG  STATE
base   9     9        8          0

CHAIN  NODE                  STATE    HEAD  LATENCY  CALLS  PER DAY  ERRORS  REMARK
base   https://base.example  working  9     1.0 ms   4      0        0

base: checks: receipts on, bloom on, logs none, witness off, agree off
base: a log that the node leaves out of a block goes unnoticed: it is the only node, and returns no receipts of whole blocks; add a node
`
	var out strings.Builder
	expect.OK(t, printStatus(&out, st, time.Unix(0, 0)))
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestLogsNote warns that omitted logs go unnoticed, with one node and with two of which one is down.
func TestLogsNote(t *testing.T) {
	for providers, want := range map[int]string{1: "it is the only node", 2: "no other node is ok"} {
		c := admin.Chain{Checks: admin.Checks(chain.Chain{CompareLogs: true}, "on", admin.LogsNone), Providers: make([]admin.Provider, providers)}
		if got := logsNote(c); len(got) != 1 || !strings.Contains(got[0], want) {
			t.Errorf("%d nodes: %q", providers, got)
		}
	}
	for _, by := range []string{admin.LogsNode, admin.LogsReceipts} {
		if got := logsNote(admin.Chain{Checks: admin.Checks(chain.Chain{CompareLogs: true}, "on", by)}); len(got) != 0 {
			t.Errorf("%s: %q", by, got)
		}
	}
}

func TestInUnits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		sum      string
		decimals int
		want     string
	}{
		{"0", 6, "0.00"}, {"1", 6, "0.000001"}, {"4900000", 6, "4.90"}, {"-4900001", 6, "-4.900001"}, {"12", 0, "12"}, {"12", 1, "1.2"},
		{"123456789012345678901234567890", 18, "123456789012.34567890123456789"}, {"12", -1, "12"}, {"x", 6, "x"},
	} {
		if got := inUnits(c.sum, &c.decimals); got != c.want {
			t.Errorf("%s with %d decimals is %s, want %s", c.sum, c.decimals, got, c.want)
		}
	}
	if got := inUnits("12", nil); got != "12" {
		t.Errorf("without decimals it is %s", got)
	}
}

func TestPrintReport(t *testing.T) {
	t.Parallel()
	six := 6
	line := apitypes.ReportLine{ChainKey: "base", Currency: "USDC", Decimals: &six, Payments: 2, Gross: "4900856", Settled: "4900000", Underpaid: "0", Suffixes: "856", Overpaid: "0",
		Late: "0", Duplicate: "0", Refunded: "900000", Net: "4000856"}
	for name, c := range map[string]struct {
		made apitypes.SettlementReport
		want string
	}{
		"nothing": {apitypes.SettlementReport{}, "Nothing was confirmed in this period.\n"},
		"by chain": {apitypes.SettlementReport{GroupBy: apitypes.ReportByChain, Lines: []apitypes.ReportLine{line}, Fees: []apitypes.TransactionFee{
			{ChainKey: "base", Kind: apitypes.FeeCommitment, CostGwei: "7"}, {ChainKey: "base", Kind: apitypes.FeeSweep, MerchantID: "cafe", Items: 61, CostGwei: "41873000"},
		}}, `CHAIN  CURRENCY  PAYMENTS  GROSS     SETTLED  UNDERPAID  SUFFIXES  OVERPAID  LATE  DUPLICATE  REFUNDED  NET
base   USDC      2         4.900856  4.90     0.00       0.000856  0.00      0.00  0.00       0.90      4.000856

FEES ON  KIND        MERCHANT  ITEMS  COST
base     commitment  -         0      0.000000007 coin
base     sweep       cafe      61     0.041873 coin
`},
	} {
		var out strings.Builder
		err := environment{stdout: &out}.printReport(apitypes.SettlementReportResponse{Report: c.made})
		if err != nil || out.String() != c.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", name, err, &out, c.want)
		}
	}
}

// serveLists serves a state and lists of one element a page, as a service does. It accepts only reads with the key.
func serveLists(t *testing.T, status apitypes.ServiceStatus, invoices []apitypes.Invoice, payments []apitypes.Payment, refunds []apitypes.RefundRecord) string {
	t.Helper()
	page := func(r *http.Request, n int) (at int, next string) {
		at = len(r.URL.Query().Get("cursor"))
		if at+1 < n {
			next = strings.Repeat("x", at+1)
		}
		return at, next
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.Header.Get("Authorization") != "Bearer the-key" {
			t.Errorf("%s %s with %q", r.Method, r.URL, r.Header.Get("Authorization"))
		}
		var body any
		switch r.URL.Path {
		case "/api/operator/status":
			status.Stalled, status.Limits = []apitypes.StalledWork{}, []apitypes.LimitInForce{}
			status.Chains = append([]apitypes.ChainStatus{}, status.Chains...)
			body = status
		case "/api/invoices":
			at, next := page(r, len(invoices))
			body = apitypes.InvoiceList{Invoices: invoices[at : at+1], NextCursor: next}
		case "/api/payments":
			at, next := page(r, len(payments))
			body = apitypes.PaymentList{Payments: payments[at : at+1], NextCursor: next}
		case "/api/refunds":
			at, next := page(r, len(refunds))
			body = apitypes.RefundList{Refunds: refunds[at : at+1], NextCursor: next}
		}
		w.Header().Set("Content-Type", "application/json")
		expect.NoError(t, json.NewEncoder(w).Encode(body))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// TestCompare compares lists that differ in each way: an object is in only one service, or in another state, and the
// age of the copy, of 1000, explains it or does not.
func TestCompare(t *testing.T) {
	t.Parallel()
	inv := func(id string, created int64, status apitypes.InvoiceStatus) apitypes.Invoice {
		return apitypes.Invoice{ID: id, CreatedAt: created, Status: status, Amount: "5", AmountPaid: "0", AmountRefunded: "0", Currency: "USDC"}
	}
	pay := func(id, invoiceID, refunded string) apitypes.Payment {
		return apitypes.Payment{ID: id, InvoiceID: invoiceID, Amount: "5", Currency: "USDC", AmountRefunded: refunded}
	}
	ref := func(id string, created int64, status apitypes.RefundStatus) apitypes.RefundRecord {
		return apitypes.RefundRecord{ID: id, PaymentID: "pay_a", CreatedAt: created, Prepared: true, Status: status, Amount: "5", Currency: "USDC"}
	}
	copied := apitypes.ServiceStatus{Isolated: true, CopiedAt: 1000}
	common := []apitypes.Invoice{inv("inv_a", 900, "paid"), inv("inv_b", 999, "open")}
	for name, c := range map[string]struct {
		status   apitypes.ServiceStatus
		live, in []apitypes.Invoice
		pl, pc   []apitypes.Payment
		rl, rc   []apitypes.RefundRecord
		code     int
		want     string
	}{
		"equal": {status: copied, live: common, in: common, pl: []apitypes.Payment{pay("pay_a", "inv_a", "")}, pc: []apitypes.Payment{pay("pay_a", "inv_a", "0")}, want: `"differences":[],"unexplained":0`},
		"newer": {
			status: copied, live: append([]apitypes.Invoice{inv("inv_c", 1001, "paid")}, common...), in: common,
			pl: []apitypes.Payment{pay("pay_a", "inv_c", "")}, pc: []apitypes.Payment{pay("pay_a", "", "")},
			rl: []apitypes.RefundRecord{ref("ref_a", 1001, "pending")}, rc: []apitypes.RefundRecord{ref("ref_b", 10, "expired")}, code: 1, want: `"unexplained":1`,
		},
		"only newer": {status: copied, live: append([]apitypes.Invoice{inv("inv_c", 1001, "paid")}, common...), in: common, want: `"reason":"newer than the copy"}],"unexplained":0`},
		"its second": {status: copied, live: append([]apitypes.Invoice{inv("inv_c", 1000, "paid")}, common...), in: common, want: `"reason":"newer than the copy"}],"unexplained":0`},
		"lost":       {status: copied, live: common, in: common[:1], pl: []apitypes.Payment{pay("pay_a", "inv_a", "2")}, pc: []apitypes.Payment{pay("pay_a", "inv_a", "1")}, code: 1, want: `"unexplained":2`},
		"state":      {status: copied, live: common[:1], in: []apitypes.Invoice{inv("inv_a", 900, "expired")}, code: 1, want: `"copy":"expired, amount 5, paid 0, refunded 0 USDC"}],"unexplained":1`},
		"no copy":    {status: apitypes.ServiceStatus{}, live: common, in: common, code: 2, want: "is no isolated copy"},
		"behind": {
			status: apitypes.ServiceStatus{Isolated: true, CopiedAt: 1000, Chains: []apitypes.ChainStatus{{ChainKey: "base", Ready: true, CatchUp: new(apitypes.BlockProgress)}}},
			live:   common, in: common, code: 2, want: "has not read the chain base",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			orOne := func(all []apitypes.RefundRecord) []apitypes.RefundRecord {
				return append(all, ref("ref_same", 5, "confirmed"))
			}
			orPaid := func(all []apitypes.Payment) []apitypes.Payment { return append(all, pay("pay_same", "inv_a", "")) }
			live, in := serveLists(t, c.status, c.live, orPaid(c.pl), orOne(c.rl)), serveLists(t, c.status, c.in, orPaid(c.pc), orOne(c.rc))
			var out strings.Builder
			code := run(t.Context(), environment{stdout: &out, stderr: &out, key: "the-key"}, []string{"compare", "--url", live, "--copy", in, "--json"})
			if code != c.code || !strings.Contains(out.String(), c.want) {
				t.Errorf("%d, want %d and %s: %s", code, c.code, c.want, &out)
			}
			out.Reset()
			if got := run(t.Context(), environment{stdout: &out, stderr: &out, key: "the-key"}, []string{"compare", "--url", live, "--copy", in}); got != code || code < 2 && !strings.Contains(out.String(), "of the live service: ") {
				t.Errorf("as a table: %d %s", got, &out)
			}
		})
	}
	if code := run(t.Context(), environment{stdout: io.Discard, stderr: io.Discard}, []string{"compare", "--url", "http://127.0.0.1:1", "--config", "missing.yaml"}); code != 2 {
		t.Errorf("without its configuration it ends with %d, want 2", code)
	}
}
