package api_test

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
)

// nodes report that all accounts are contracts, and report the configured state of transactions. asked
// counts the questions about accounts.
type nodes struct {
	asked int
	state chain.TransactionState // of each transaction; empty if no node answers
	mined uint64                 // the block of a mined transaction; zero if it is not final
	waits bool
	fails bool // one of them does not answer
	// safe is the state of each hash, no contract's if it is empty, for a chain that is read through the block
	// readThrough.
	safe        chain.SafeReport
	readThrough invoice.Header
	signed      invoice.Hash // the last hash they were asked about
}

func (n *nodes) Account(context.Context, string, invoice.Address) invoice.AccountKind {
	n.asked++
	return invoice.AccountContract
}

func (n *nodes) RefundTransaction(_ context.Context, _ string, _ invoice.Hash, through uint64) (chain.TransactionState, error) {
	switch {
	case n.state == "":
		return "", chain.ErrUnavailable
	case n.fails && n.state == chain.Unknown:
		return n.state, chain.ErrIncomplete
	case n.state == chain.Mined && 0 < n.mined && n.mined <= through:
		return chain.Settled, nil
	}
	return n.state, nil
}

func (n *nodes) SafeTransaction(_ context.Context, _ invoice.RefundRecord, signed invoice.Hash, through invoice.Header) (chain.SafeAnswers, error) {
	if n.state == "" {
		return chain.SafeAnswers{}, chain.ErrUnavailable
	}
	n.readThrough, n.signed = through, signed
	return chain.SafeAnswers{Nodes: 1, Reports: []chain.SafeReport{{State: cmp.Or(n.safe.State, chain.SafeNone), Nonce: n.safe.Nonce}}}, nil
}

func (n *nodes) HasWaiting(context.Context, string, invoice.Address) (bool, error) {
	if n.state == "" {
		return false, chain.ErrUnavailable
	}
	if n.fails && !n.waits {
		return false, chain.ErrIncomplete
	}
	return n.waits, nil
}

// confirmedPayment creates an invoice and has it paid. It returns the payment's id and the header of its block.
func (s integration) confirmedPayment(t *testing.T) (id string, at invoice.Header) {
	t.Helper()
	genesis := invoice.Header{Number: 100, Hash: invoice.Hash{1}, Time: invoice.Unix(now)}
	must(t, s.service.Start(t.Context(), "base", genesis, 101))
	inv, err := s.CreateInvoice(t.Context(), asked)
	must(t, err)
	base, _ := chain.Lookup("base")
	commitment, err := invoice.ParseHash(inv.OnChainInvoiceID)
	must(t, err)
	to, err := chain.ParseAddress(address)
	must(t, err)
	at = invoice.Header{Number: 101, Hash: invoice.Hash{2}, Parent: genesis.Hash, Time: invoice.Unix(now + 1)}
	transfer := invoice.Transfer{
		ChainKey: "base", TxHash: invoice.Hash{3}, Token: base.Tokens[0].Address, Currency: "USDC", From: invoice.Address{0xbb}, To: to,
		Position: invoice.Position{BlockNumber: 101, BlockHash: at.Hash, BlockTime: at.Time},
		Amount:   invoice.NewAmount(4_900_000), Evidence: invoice.Evidence{Calldata: commitment},
	}
	s.observe(t, at, transfer)
	return invoice.TransferID(invoice.PrefixPayment, "base", transfer.TxHash, 0), at
}

// observe adds a block with a transfer, and makes it final.
func (s integration) observe(t *testing.T, at invoice.Header, transfer invoice.Transfer) {
	t.Helper()
	must(t, s.service.Observe(t.Context(), "base", []ledger.Block{{Header: at, Transfers: []invoice.Transfer{transfer}}}))
	_, revision, err := s.service.Pending(t.Context(), "base", at.Number)
	must(t, err)
	_, err = s.service.Confirm(t.Context(), "base", at, revision, 0)
	must(t, err)
}

func must(t *testing.T, err error) {
	t.Helper()
	expect.OK(t, err)
}

func TestIntegrationRefund(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, store *db.DB) {
		s := newIntegration(t, store)
		payment, at := s.confirmedPayment(t)
		path := "/api/payments/" + payment + "/refunds"

		w := do(s.handler, "POST", path, `{"amount":"900000","reason":"Returned"}`, "Idempotency-Key", "a")
		made := decode[apitypes.RefundResponse](t, w, http.StatusCreated)
		r, tx := made.Refund, made.Transaction
		if r.Status != apitypes.RefundPending || r.Amount != "900000" || r.Reason != "Returned" || !r.Prepared || tx == nil || r.ExpiresAt != now+14*24*3600 {
			t.Fatalf("prepared %s", w.Body)
		}
		if got := w.Header().Get("Location"); got != "/api/refunds/"+r.ID {
			t.Errorf("Location %s", got)
		}
		if len(r.Warnings) != 1 || r.Warnings[0].Code != apitypes.WarnContract || r.Warnings[0].Text == "" {
			t.Errorf("warnings %+v", r.Warnings)
		}
		tag, err := invoice.RefundTag(r.PaymentID, r.ID)
		must(t, err)
		if tx.ChainID != 8453 || tx.From != r.From || tx.Value != "0" || !strings.HasPrefix(tx.Data, "0xa9059cbb") || !strings.HasSuffix(tx.Data, tag.String()[2:]) ||
			!strings.HasPrefix(tx.Link, "ethereum:"+tx.To+"@8453/transfer?address="+r.To+"&uint256=900000") {
			t.Errorf("transaction %+v", tx)
		}
		var batch struct {
			Transactions []struct{ To, Data, Value string }
		}
		if err := json.Unmarshal(tx.Safe, &batch); err != nil || len(batch.Transactions) != 1 || batch.Transactions[0].Data != tx.Data || batch.Transactions[0].To != tx.To {
			t.Errorf("Safe's file is %s, %v", tx.Safe, err)
		}
		repeat := do(s.handler, "POST", path, `{"reason":"Returned","amount":"900000"}`, "Idempotency-Key", `"a"`)
		again := decode[apitypes.RefundResponse](t, repeat, http.StatusCreated)
		if w.Header().Get("Idempotency-Replayed") != "" || repeat.Header().Get("Idempotency-Replayed") != "true" {
			t.Errorf("the headers are %v and then %v", w.Header(), repeat.Header())
		}
		if again.Refund.ID != r.ID {
			t.Errorf("repeated: %s, want %s", again.Refund.ID, r.ID)
		}
		wantProblem(t, do(s.handler, "POST", path, `{}`, "Idempotency-Key", "a"), http.StatusUnprocessableEntity, "idempotency_mismatch", "")
		wantProblem(t, do(s.handler, "POST", path, `{"amount":"4000001"}`), http.StatusConflict, "refund_exceeds_payment", "")

		all := decode[apitypes.RefundResponse](t, do(s.handler, "POST", path, `{"to":"ask_payer"}`), http.StatusCreated)
		if all.Refund.Status != apitypes.RefundAwaitingAddress || all.Transaction != nil || !strings.HasPrefix(all.ClaimURL, "/refunds/") || all.Refund.Amount != "4000000" {
			t.Errorf("the payer is asked: %+v", all)
		}
		wantProblem(t, do(s.handler, "POST", "/api/refunds/"+all.Refund.ID+"/approve", `{"to":"`+address+`"}`), http.StatusConflict, "refund_not_open", "")
		_, err = s.service.NameRefundAddress(t.Context(), ledger.RefundClaim{Token: strings.TrimPrefix(all.ClaimURL, "/refunds/"), To: invoice.Address{0xcc}, Account: invoice.AccountWithKey})
		must(t, err)
		approved := decode[apitypes.RefundResponse](t, do(s.handler, "POST", "/api/refunds/"+all.Refund.ID+"/approve", `{"to":"`+chain.Checksum(invoice.Address{0xcc})+`"}`), http.StatusOK)
		if approved.Transaction == nil || approved.Refund.Status != apitypes.RefundPending || approved.ClaimURL != "" {
			t.Errorf("approved: %+v", approved)
		}
		for range 2 {
			canceled := decode[apitypes.RefundResponse](t, do(s.handler, "POST", "/api/refunds/"+all.Refund.ID+"/cancel", ""), http.StatusOK)
			if canceled.Refund.Status != apitypes.RefundCanceled || canceled.Refund.CanceledAt == 0 || canceled.Transaction != nil {
				t.Errorf("canceled: %+v", canceled)
			}
		}

		record, err := ledger.NewReader(store).RefundRecord(t.Context(), r.ID)
		must(t, err)
		next := invoice.Header{Number: 102, Hash: invoice.Hash{4}, Parent: at.Hash, Time: invoice.Unix(now + 2)}
		s.observe(t, next, invoice.Transfer{
			ChainKey: "base", TxHash: invoice.Hash{5}, Token: record.Token, Currency: "USDC", From: record.From, To: record.To, Amount: record.Amount,
			Position: invoice.Position{BlockNumber: 102, BlockHash: next.Hash, BlockTime: next.Time}, Evidence: invoice.Evidence{Calldata: tag},
		})
		sent := decode[apitypes.RefundResponse](t, do(s.handler, "GET", "/api/refunds/"+r.ID, ""), http.StatusOK)
		if sent.Refund.Status != apitypes.RefundConfirmed || sent.Refund.TxHash != (invoice.Hash{5}).String() || sent.Refund.BlockNumber != 102 || sent.Transaction != nil ||
			sent.Refund.AmountTransferred != "900000" || sent.Refund.ConfirmedAt != now {
			t.Errorf("sent: %+v", sent)
		}
		byTransfer := decode[apitypes.RefundResponse](t, do(s.handler, "GET", "/api/refunds/"+sent.Refund.TransferID, ""), http.StatusOK)
		if byTransfer.Refund.ID != r.ID {
			t.Errorf("the transfer's id gives %s", byTransfer.Refund.ID)
		}
		wantProblem(t, do(s.handler, "POST", "/api/refunds/"+r.ID+"/cancel", ""), http.StatusConflict, "refund_not_open", "")
		s.checkRefundLists(t, payment, r, all.Refund)
	})
}

// TestIntegrationRefundsAtASharedAddress: two merchants share an address. One does not see the refund that the other one
// prepared of a payment without an invoice, nor the link that names its recipient.
func TestIntegrationRefundsAtASharedAddress(t *testing.T) {
	s := newIntegration(t, dbtest.Open(t, dbtest.SQLite(t)))
	_, at := s.confirmedPayment(t)
	partners := asked
	partners.MerchantID = "globex"
	expect.Success(t)(s.CreateInvoice(t.Context(), partners))
	to, err := chain.ParseAddress(address)
	must(t, err)
	base, _ := chain.Lookup("base")
	next := invoice.Header{Number: 102, Hash: invoice.Hash{4}, Parent: at.Hash, Time: invoice.Unix(now + 2)}
	transfer := invoice.Transfer{
		ChainKey: "base", TxHash: invoice.Hash{5}, Token: base.Tokens[0].Address, Currency: "USDC", From: invoice.Address{0xbb}, To: to,
		Position: invoice.Position{BlockNumber: 102, BlockHash: next.Hash, BlockTime: next.Time}, Amount: invoice.NewAmount(77),
	}
	s.observe(t, next, transfer)
	path := "/api/payments/" + invoice.TransferID(invoice.PrefixPayment, "base", transfer.TxHash, 0) + "/refunds"
	as := func(merchantID string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			by := access.Principal{KeyID: "key_" + merchantID, MerchantID: merchantID, Scopes: access.Open().Scopes}
			s.handler.ServeHTTP(w, r.WithContext(access.WithPrincipal(r.Context(), by)))
		})
	}
	made := decode[apitypes.RefundResponse](t, do(as("acme"), "POST", path, `{"to":"ask_payer","reason":"Chargeback"}`), http.StatusCreated)
	for merchantID, want := range map[string]int{"acme": 1, "globex": 0} {
		list := decode[apitypes.RefundList](t, do(as(merchantID), "GET", path, ""), http.StatusOK)
		expect.Equal(t, len(list.Refunds), want, "refunds that %s sees:", merchantID)
	}
	wantProblem(t, do(as("globex"), "GET", "/api/refunds/"+made.Refund.ID, ""), http.StatusNotFound, "not_found", "")
	decode[apitypes.RefundResponse](t, do(as("acme"), "GET", "/api/refunds/"+made.Refund.ID, ""), http.StatusOK)
}

// checkRefundLists lists two refunds of a payment with all filters.
func (s integration) checkRefundLists(t *testing.T, payment string, sent, canceled apitypes.RefundRecord) {
	t.Helper()
	for query, want := range map[string][]string{
		"":                                     {canceled.ID, sent.ID},
		"merchantId=acme&chainKey=base":        {canceled.ID, sent.ID},
		"merchantId=nobody":                    {},
		"paymentId=" + payment:                 {canceled.ID, sent.ID},
		"paymentId=pay_x":                      {},
		"invoiceId=" + sent.InvoiceID:          {canceled.ID, sent.ID},
		"status=confirmed":                     {sent.ID},
		"status=canceled&merchantId=acme":      {canceled.ID},
		"status=pending":                       {},
		"txHash=" + (invoice.Hash{5}).String(): {sent.ID},
		"txHash=" + (invoice.Hash{6}).String(): {},
	} {
		s.wantRefunds(t, "/api/refunds?"+query, want)
		if strings.HasPrefix(query, "status=c") {
			s.wantRefunds(t, "/api/payments/"+payment+"/refunds?"+strings.TrimSuffix(query, "&merchantId=acme"), want)
		}
	}
	first := decode[apitypes.RefundList](t, do(s.handler, "GET", "/api/refunds?limit=1", ""), http.StatusOK)
	if len(first.Refunds) != 1 || first.NextCursor == "" {
		t.Fatalf("the first page is %+v", first)
	}
	s.wantRefunds(t, "/api/refunds?limit=1&cursor="+first.NextCursor, []string{sent.ID})
	for query, field := range map[string]string{"paymentId=inv_1": "paymentId", "invoiceId=%00": "invoiceId", "txHash=0x1": "txHash", "limit=0": "limit"} {
		wantProblem(t, do(s.handler, "GET", "/api/refunds?"+query, ""), http.StatusBadRequest, "invalid_field", field)
	}
	wantProblem(t, do(s.handler, "GET", "/api/refunds?status=paid", ""), http.StatusBadRequest, "invalid_status", "")
	wantProblem(t, do(s.handler, "GET", "/api/refunds?chainKey=mars", ""), http.StatusBadRequest, "invalid_chain", "")
	wantProblem(t, do(s.handler, "GET", "/api/payments/pay_none/refunds", ""), http.StatusNotFound, "not_found", "")
	wantProblem(t, do(s.handler, "GET", "/api/refunds/ref_none", ""), http.StatusNotFound, "not_found", "")
}

func (s integration) wantRefunds(t *testing.T, path string, want []string) {
	t.Helper()
	list := decode[apitypes.RefundList](t, do(s.handler, "GET", path, ""), http.StatusOK)
	var got []string
	for _, r := range list.Refunds {
		got = append(got, r.ID)
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("%s lists %v, want %v", path, got, want)
	}
}

// TestRefundsExpireByTheClock reads refunds that are stored as pending: one that has expired, and one that was sent.
func TestRefundsExpireByTheClock(t *testing.T) {
	pending := func(id string, expires int64) invoice.RefundRecord {
		return invoice.RefundRecord{
			ID: id, PaymentID: invoice.PrefixPayment + number(1), Tag: invoice.Hash{1}, Amount: invoice.NewAmount(1), Left: invoice.NewAmount(1), To: invoice.Address{2},
			Status: invoice.RefundPending, CreatedAt: invoice.Unix(now - 9), ExpiresAt: invoice.Unix(expires), ChainKey: "base", Currency: "USDC",
		}
	}
	sent := pending(invoice.PrefixRefund+number(3), now)
	sent.Transfer = invoice.Refund{ID: invoice.PrefixRefund + number(5), Status: invoice.Pending, Transfer: invoice.Transfer{Amount: invoice.NewAmount(1)}}
	asked := pending(invoice.PrefixRefund+number(4), now)
	asked.Status, asked.To, asked.ClaimToken = invoice.RefundAwaitingAddress, invoice.Address{}, "token"
	b := newListBackend(1)
	b.refunds = []invoice.RefundRecord{pending(invoice.PrefixRefund+number(1), now), pending(invoice.PrefixRefund+number(2), now+1), sent, asked}
	b.history.Refunds = b.refunds
	h := newAPI(t, b)
	want := []apitypes.RefundStatus{apitypes.RefundExpired, apitypes.RefundPending, apitypes.RefundPending, apitypes.RefundExpired}
	records, _ := exported(t, h, "/api/refunds")
	for i, r := range decode[apitypes.RefundList](t, do(h, "GET", "/api/refunds", ""), http.StatusOK).Refunds {
		one := decode[apitypes.RefundResponse](t, do(h, "GET", "/api/refunds/"+r.ID, ""), http.StatusOK)
		if r.Status != want[i] || one.Refund.Status != want[i] || records[i+1][1] != string(want[i]) {
			t.Errorf("%s is %s in the list, %s by itself and %s in CSV, want %s", r.ID, r.Status, one.Refund.Status, records[i+1][1], want[i])
		}
		if (one.Transaction != nil) != (i == 1) || one.ClaimURL != "" {
			t.Errorf("%s has the transaction %v and the page %q", r.ID, one.Transaction, one.ClaimURL)
		}
	}
	expired := 0
	for _, e := range decode[apitypes.Timeline](t, do(h, "GET", "/api/invoices/"+invoiceID(0)+"/timeline", ""), http.StatusOK).Entries {
		if e.Kind == "refund.expired" && e.At == now {
			expired++
		}
	}
	if expired != 2 {
		t.Errorf("the timeline has %d expired refunds, want 2", expired)
	}
}

func TestPrepareRefundRefusesBodies(t *testing.T) {
	b := newListBackend(5)
	h := newAPI(t, b)
	path := "/api/payments/" + invoice.PrefixPayment + number(4) + "/refunds"
	for body, field := range map[string]string{
		`{"amount":"0"}`:    "amount",
		`{"amount":5}`:      "amount",
		`{"amount":null}`:   "amount",
		`{"amount":"1.5"}`:  "amount",
		`{"to":"somebody"}`: "to",
		`{"to":null}`:       "to",
		`{"to":7}`:          "to",
		`{"to":""}`:         "to",
		`{"to":"0x0000000000000000000000000000000000000000"}`: "to",
		`{"reason":""}`:     "reason",
		`{"reason":"a\nb"}`: "reason",
		`{"reason":"` + strings.Repeat("x", invoice.MaxLabel+1) + `"}`: "reason",
	} {
		wantProblem(t, do(h, "POST", path, body), http.StatusBadRequest, "invalid_field", field)
	}
	wantProblem(t, do(h, "POST", path, `[]`), http.StatusBadRequest, "invalid_json", "")
	wantProblem(t, do(h, "POST", path, `{}`, "Idempotency-Key", " "), http.StatusBadRequest, "invalid_field", "Idempotency-Key")
	wantProblem(t, do(h, "POST", path, `{}`, "Content-Type", "text/plain"), http.StatusUnsupportedMediaType, "unsupported_media_type", "")
	wantProblem(t, do(h, "POST", "/api/payments/pay_none/refunds", `{}`), http.StatusNotFound, "not_found", "")
	wantProblem(t, do(h, "POST", "/api/refunds/ref_1/approve", `{}`), http.StatusBadRequest, "invalid_field", "to")
}
