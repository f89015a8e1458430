package apiconv_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/apiconv"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/apitest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/webhook"
)

const (
	createdAt = 1_764_000_000
	eventID   = "evt_06ajrm4k5xwqz8v3d0n7c2b9hr"
)

var (
	merchant = invoice.Address{0x5a, 0xae, 0xb6, 0x05, 0x3f, 0x3e, 0x94, 0xc9, 0xb9, 0xa0, 0x9f, 0x33, 0x66, 0x94, 0x35, 0xe7, 0xef, 0x1b, 0xea, 0xed}

	open = invoice.Invoice{
		Terms: invoice.Terms{Merchant: merchant, Amount: invoice.NewAmount(4_900_000), ExpiresAt: invoice.Unix(createdAt + 60)},
		ID:    "inv_06ajrm4k5xwqz8v3d0n7c2b9hr", CommitmentID: invoice.Hash{0xab}, MerchantID: "acme", Currency: "USDC", ChainKey: "base",
		Status: invoice.Open, CreatedAt: invoice.Unix(createdAt), TransferAmount: invoice.NewAmount(4_900_123),
		LineItems: []invoice.LineItem{{Label: "A <b> & é", Amount: invoice.NewAmount(4_900_000)}},
	}
	payment = invoice.Payment{
		ID: "pay_3t9f0w6k2m5xq8r1v4z7b0n3hc", InvoiceID: open.ID, MerchantID: "acme", Method: invoice.ByTransferAmount,
		Status: invoice.Pending, ObservedAt: time.Unix(createdAt, 0),
		Transfer: invoice.Transfer{
			Position: invoice.Position{BlockNumber: 77}, ChainKey: "base", TxHash: invoice.Hash{0xcd}, Currency: "USDC",
			From: invoice.Address{1}, To: merchant, Amount: invoice.NewAmount(4_900_123),
		},
	}
	refund = invoice.Refund{
		ID: "ref_5x9f0w6k2m5xq8r1v4z7b0n3hc", PaymentID: payment.ID, InvoiceID: open.ID, MerchantID: "acme", Status: invoice.Confirmed, ConfirmedAt: time.Unix(createdAt+90, 0),
		Transfer: invoice.Transfer{
			Position: invoice.Position{BlockNumber: 99}, ChainKey: "base", TxHash: invoice.Hash{0xef}, Currency: "USDC",
			From: merchant, To: invoice.Address{1}, Amount: invoice.NewAmount(900_000),
		},
	}
)

func paid() invoice.Invoice {
	inv := open
	inv.Status, inv.SettledTx, inv.SettledAt, inv.AmountPaid = invoice.Paid, payment.TxHash, invoice.Unix(createdAt+30), payment.Amount
	return inv
}

func confirmed() invoice.Payment {
	p := payment
	p.Status, p.ConfirmedAt = invoice.Confirmed, time.Unix(createdAt+40, 0)
	return p
}

// names returns the sorted names of a value's JSON members.
func names(t *testing.T, v any) []string {
	t.Helper()
	text := expect.Must(json.Marshal(v))
	var members map[string]any
	expect.OK(t, json.Unmarshal(text, &members))
	return slices.Sorted(maps.Keys(members))
}

// The set of members is part of the contract: a merchant may check whether one is present.
func TestMembers(t *testing.T) {
	bare := open
	bare.TransferAmount, bare.LineItems = invoice.Amount{}, nil
	part := open
	part.Remaining, part.RemainingTransfer = invoice.NewAmount(900_000), invoice.NewAmount(900_321)
	unsuffixed := part
	unsuffixed.RemainingTransfer = invoice.Amount{}
	odd := paid()
	odd.Exception = invoice.Overpaid
	lenient := open
	lenient.Tolerance = invoice.NewAmount(1)
	expired := open
	expired.Status, expired.Remaining = invoice.Expired, invoice.NewAmount(1)
	byHand := payment
	byHand.Method, byHand.AttributedBy, byHand.AttributedAt = invoice.ByHand, "maria", time.Unix(createdAt, 0)
	unattributed := payment
	unattributed.InvoiceID, unattributed.MerchantID, unattributed.Method = "", "", ""

	const all = "amount amountPaid amountRefunded chainKey createdAt currency expiresAt id lineItems merchantAddress merchantId status"
	const transfer = "amount blockNumber chainKey currency from id invoiceId to txHash"
	for name, test := range map[string]struct {
		value any
		want  string
	}{
		"bare":                          {apiconv.Invoice(bare), all},
		"open":                          {apiconv.Invoice(open), all + " transferAmount"},
		"tolerant":                      {apiconv.Invoice(lenient), all + " transferAmount tolerance"},
		"partly paid":                   {apiconv.Invoice(part), all + " transferAmount amountRemaining remainingTransferAmount"},
		"without a suffix for the rest": {apiconv.Invoice(unsuffixed), all + " transferAmount amountRemaining"},
		"expired":                       {apiconv.Invoice(expired), all + " transferAmount"},
		"paid":                          {apiconv.Invoice(paid()), all + " transferAmount settledAt settledTxHash"},
		"overpaid":                      {apiconv.Invoice(odd), all + " transferAmount settledAt settledTxHash exception amountExcess"},
		"eight":                         {apiconv.PaidInvoice(odd), "id merchantId amount currency chainKey status settledTxHash settledAt"},
		"created":                       {apiconv.CreateInvoiceResponse(open, ""), "id onChainInvoiceId checkoutUrl invoice"},
		"created, with a public URL":    {apiconv.CreateInvoiceResponse(open, "https://pay.example.com"), "id onChainInvoiceId checkoutUrl checkoutPage invoice"},
		"pending":                       {apiconv.Payment(payment, true), transfer + " status attribution"},
		"by hand":                       {apiconv.Payment(byHand, true).Attribution, "method by at"},
		"by itself":                     {apiconv.Payment(payment, true).Attribution, "method"},
		"confirmed":                     {apiconv.Payment(confirmed(), true), transfer + " status attribution confirmedAt"},
		"plain":                         {apiconv.Payment(confirmed(), false), transfer + " confirmedAt"},
		"unattributed":                  {apiconv.Payment(unattributed, true), strings.Replace(transfer, " invoiceId", "", 1) + " status"},
		"refund":                        {apiconv.Refund(refund), transfer + " paymentId confirmedAt"},
	} {
		want := strings.Fields(test.want)
		slices.Sort(want)
		expect.NoDiff(t, cmp.Diff(want, names(t, test.value)), "%s", name)
	}
}

func TestInvoice(t *testing.T) {
	got := expect.Must(json.Marshal(apiconv.Invoice(paid())))
	want := map[string]any{
		"id": open.ID, "merchantId": "acme", "merchantAddress": "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
		"amount": "4900000", "currency": "USDC", "chainKey": "base", "status": "paid",
		"lineItems": []any{map[string]any{"label": "A <b> & é", "amount": "4900000"}},
		"createdAt": float64(createdAt), "expiresAt": float64(createdAt + 60), "transferAmount": "4900123",
		"settledTxHash": "0xcd" + strings.Repeat("0", 62), "settledAt": float64(createdAt + 30),
		"amountPaid": "4900123", "amountRefunded": "0",
	}
	var members map[string]any
	expect.OK(t, json.Unmarshal(got, &members))
	if diff := cmp.Diff(want, members); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestNoLineItemsAreAnEmptyArray(t *testing.T) {
	inv := open
	inv.LineItems = nil
	if text, err := json.Marshal(apiconv.Invoice(inv)); err != nil || !bytes.Contains(text, []byte(`"lineItems":[]`)) {
		t.Errorf("encoded %s (%v)", text, err)
	}
}

func TestBlockNumberBeyondInt64(t *testing.T) {
	p := payment
	p.BlockNumber = math.MaxUint64
	if got := apiconv.Payment(p, false).BlockNumber; got != math.MaxInt64 {
		t.Errorf("blockNumber is %d", got)
	}
}

// The answer to a repeated create shows the current state of the invoice.
func TestCreateInvoiceResponseIsPresent(t *testing.T) {
	later := paid()
	later.Exception, later.AmountRefunded = invoice.Duplicate, invoice.NewAmount(1)
	if diff := cmp.Diff(apiconv.Invoice(later), apiconv.CreateInvoiceResponse(later, "").Invoice); diff != "" {
		t.Errorf("-present +answered:\n%s", diff)
	}
}

func TestEventsAreAsSpecified(t *testing.T) {
	for typ, data := range map[invoice.EventType]any{
		invoice.EventCreated:  apiconv.InvoiceData(open),
		invoice.EventPaid:     apiconv.PaidInvoiceData(paid()),
		invoice.EventExpired:  apiconv.InvoiceData(open),
		invoice.EventReceived: apiconv.PaymentData(payment),
		invoice.EventRefunded: apiconv.RefundData(refund, confirmed()),
	} {
		body, err := apiconv.EventBody(eventID, typ, invoice.Unix(createdAt), data)
		expect.OK(t, err)
		if err := apitest.Event(t, body); err != nil {
			t.Errorf("%s: %v\n%s", typ, err, body)
		}
		expect.NoDiff(t, cmp.Diff([]string{"createdAt", "data", "id", "type"}, names(t, json.RawMessage(body))), "%s", typ)
		event, err := webhook.ParseEvent(body)
		if err != nil || event.ID != eventID || event.Type != string(typ) || event.CreatedAt != createdAt {
			t.Errorf("%s: parsed as %+v (%v)", typ, event, err)
		}
	}
}

// TestEventBodyEscapesNoMore expects the characters that encoding/json escapes for HTML unchanged.
func TestEventBodyEscapesNoMore(t *testing.T) {
	inv := open
	inv.Details.Description = `Fish & chips <large> "hot"`
	body, err := apiconv.EventBody(eventID, invoice.EventCreated, invoice.Unix(createdAt), apiconv.InvoiceData(inv))
	if err != nil || !strings.Contains(string(body), `"description":"Fish & chips <large> \"hot\""`) || strings.HasSuffix(string(body), "\n") {
		t.Errorf("%s, %v", body, err)
	}
	expect.NoError(t, apitest.Event(t, body))
}

func TestEventBodyRefusesWhatIsNoJSON(t *testing.T) {
	if body, err := apiconv.EventBody(eventID, invoice.EventPaid, invoice.Unix(createdAt), func() {}); err == nil {
		t.Errorf("encoded %s", body)
	}
}

// Amounts keep every digit.
func TestAmountsAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		inv := open
		inv.Amount = invoice.AmountFromBytes([32]byte(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "amount")))
		text := expect.Must(json.Marshal(apiconv.Invoice(inv)))
		var back apitypes.Invoice
		expect.OK(t, json.Unmarshal(text, &back))
		if got, err := invoice.ParseAmount(back.Amount); err != nil || got != inv.Amount {
			t.Fatalf("%s came back as %s (%v)", inv.Amount, back.Amount, err)
		}
	})
}

// TestEraseEvent replaces only the texts that the merchant wrote. Members that this version does not know stay.
func TestEraseEvent(t *testing.T) {
	inv := open
	inv.Details = invoice.Details{
		Reference: "order-1", UniqueReference: true, Description: "Ada", Customer: invoice.Customer{ID: "Ada", Email: "Ada@example.com"},
		ReturnURL: "https://shop.example/Ada", CancelURL: "https://shop.example/Ada", Metadata: map[string]string{"Ada": "Ada"},
	}
	inv.LineItems = []invoice.LineItem{{Label: "For Ada", Amount: inv.Amount}}
	body, err := apiconv.EventBody(eventID, invoice.EventExpired, invoice.Unix(createdAt), apiconv.InvoiceData(inv))
	expect.OK(t, err)
	future := strings.Replace(string(body), `"status":`, `"later":12345678901234567890,"status":`, 1)
	got, err := apiconv.EraseEvent([]byte(future), inv.Erase())
	if err != nil || bytes.Contains(got, []byte("Ada")) || !bytes.Contains(got, []byte("12345678901234567890")) {
		t.Fatalf("the event is %s, %v", got, err)
	}
	want, err := apiconv.EventBody(eventID, invoice.EventExpired, invoice.Unix(createdAt), apiconv.InvoiceData(inv.Erase()))
	expect.OK(t, err)
	var gotMembers, wantMembers map[string]any
	expect.OK(t, errors.Join(json.Unmarshal(bytes.Replace(got, []byte(`"later":12345678901234567890,`), nil, 1), &gotMembers), json.Unmarshal(want, &wantMembers)))
	expect.NoDiff(t, cmp.Diff(wantMembers, gotMembers), "")
	for _, wrong := range []string{"", "{", "null", `{"data":{}}`} {
		if _, err := apiconv.EraseEvent([]byte(wrong), inv); err == nil {
			t.Errorf("%q is no error", wrong)
		}
	}
}

// TestRemainingOfAHeldInvoice expects no remaining amount for an invoice that ended in a lost past.
func TestRemainingOfAHeldInvoice(t *testing.T) {
	inv := invoice.Invoice{Remaining: invoice.NewAmount(5), RemainingTransfer: invoice.NewAmount(6)}
	inv.Status = invoice.Open
	for closed, want := range map[uint64]string{0: "5 6", 7: " "} {
		inv.ClosedBlock = closed
		w := apiconv.Invoice(inv)
		if got := w.AmountRemaining + " " + w.RemainingTransferAmount; got != want {
			t.Errorf("closed in block %d: %q remain, want %q", closed, got, want)
		}
	}
}
