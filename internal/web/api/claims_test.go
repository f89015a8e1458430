package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/apitest"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/web/api"
)

func (b *backend) NearInvoices(ctx context.Context, lookups []ledger.NearLookup, merchantID string) ([][]invoice.NearInvoice, error) {
	near := make([][]invoice.NearInvoice, len(lookups))
	for n, l := range lookups {
		for _, inv := range b.invoices {
			if (merchantID == "" || inv.MerchantID == merchantID) && inv.Merchant == l.Transfer.To {
				near[n] = append(near[n], invoice.NearInvoice{Invoice: inv, Covered: inv.Status == invoice.Paid})
			}
		}
	}
	return near, b.fail(ctx)
}

func (b *backend) Claims(ctx context.Context, f ledger.ClaimFilter) ([]ledger.ClaimRow, error) {
	return newest(b.claims, f.Limit, func(c ledger.ClaimRow) bool {
		return (f.MerchantID == "" || f.MerchantID == c.MerchantID) && (f.PaymentID == "" || f.PaymentID == c.PaymentID) && (f.Before == "" || c.ID < f.Before)
	}), b.fail(ctx)
}

func (b *backend) LostPayments(ctx context.Context, payments []invoice.Payment) (map[string]invoice.Hash, error) {
	found := make(map[string]invoice.Hash)
	for _, p := range payments {
		if id := p.Evidence.Calldata; slices.Contains(b.lost, id) {
			found[p.ID] = id
		}
	}
	return found, b.fail(ctx)
}

func (b *backend) ClaimsOfPayments(ctx context.Context, ids []string, merchantID string, limit int) (map[string][]ledger.ClaimRow, error) {
	found := make(map[string][]ledger.ClaimRow)
	for _, id := range ids {
		if claims, _ := b.Claims(ctx, ledger.ClaimFilter{PaymentID: id, MerchantID: merchantID, Limit: limit}); len(claims) > 0 {
			found[id] = claims
		}
	}
	return found, b.fail(ctx)
}

// ambiguous returns a backend with two invoices of two merchants over 34.00 at one
// address, a payment of 33.99 to it, and two claims.
func ambiguous() *backend {
	at := invoice.Address{0: 0xaa}
	b := &backend{}
	for i, merchant := range []string{"acme", "bean"} {
		b.invoices = append(b.invoices, invoice.Invoice{
			ID: invoiceID(i), MerchantID: merchant, ChainKey: "base", Currency: "USDC", Status: invoice.Open, CreatedAt: invoice.Unix(now),
			Terms: invoice.Terms{Merchant: at, Amount: invoice.NewAmount(34_000_000), ExpiresAt: invoice.Unix(now + 900)},
		})
		b.claims = append(b.claims, ledger.ClaimRow{
			ID: invoice.PrefixClaim + number(i), PaymentID: invoice.PrefixPayment + number(0), InvoiceID: invoiceID(i), MerchantID: merchant, Signed: i == 1, At: invoice.Unix(now),
		})
	}
	b.payments = []ledger.PaymentRow{{SeenID: number(0), Payment: invoice.Payment{
		ID: invoice.PrefixPayment + number(0), Status: invoice.Confirmed, ConfirmedAt: time.Unix(now, 0),
		Transfer: invoice.Transfer{
			Position: invoice.Position{BlockNumber: 5, BlockTime: invoice.Unix(now + 907)}, ChainKey: "base", Currency: "USDC", From: invoice.Address{7}, To: at, Amount: invoice.NewAmount(33_990_000),
		},
	}}}
	return b
}

func TestPaymentsWithoutInvoiceHaveCandidates(t *testing.T) {
	h := newAPI(t, ambiguous())
	candidate := func(i int, merchant string) apitypes.PaymentCandidate {
		return apitypes.PaymentCandidate{
			InvoiceID: invoiceID(i), MerchantID: merchant, Status: "open", Amount: "34000000", AmountDifference: "-10000", LateBy: 7,
		}
	}
	list := decode[apitypes.PaymentList](t, do(h, "GET", "/api/payments?include=unattributed", ""), http.StatusOK)
	expect.NoDiff(t, cmp.Diff([]apitypes.PaymentCandidate{candidate(1, "bean"), candidate(0, "acme")}, list.Payments[0].Candidates), "candidates")
	if got := len(list.Payments[0].Claims); got != 2 {
		t.Errorf("%d claims, want 2", got)
	}
	without := decode[apitypes.PaymentList](t, do(h, "GET", "/api/payments?include=unattributed&candidates=false", ""), http.StatusOK).Payments[0]
	want := list.Payments[0]
	want.Candidates, want.Claims = nil, nil
	expect.NoDiff(t, cmp.Diff(want, without), "without candidates")
	one := decode[apitypes.PaymentResponse](t, do(h, "GET", "/api/payments/"+list.Payments[0].ID, ""), http.StatusOK).Payment
	if diff := cmp.Diff(list.Payments[0], one); diff != "" {
		t.Errorf("fetched (-listed +fetched):\n%s", diff)
	}
}

// TestPaymentOfLostInvoice shows why a payment has no invoice: in lists with details, of one payment and in the inbox.
func TestPaymentOfLostInvoice(t *testing.T) {
	b := ambiguous()
	lost := invoice.Hash{0x77}
	b.lost, b.payments[0].Evidence.Calldata = []invoice.Hash{lost}, lost
	h := newAPI(t, b)
	list := decode[apitypes.PaymentList](t, do(h, "GET", "/api/payments?include=unattributed&candidates=false", ""), http.StatusOK)
	one := decode[apitypes.PaymentResponse](t, do(h, "GET", "/api/payments/"+list.Payments[0].ID, ""), http.StatusOK).Payment
	for _, p := range []apitypes.Payment{list.Payments[0], one} {
		if p.Exception != apitypes.PaymentOfLostInvoice || p.OnChainInvoiceID != lost.String() || p.InvoiceID != "" {
			t.Errorf("got %+v", p)
		}
	}
	b.lost = nil
	if p := decode[apitypes.PaymentResponse](t, do(h, "GET", "/api/payments/"+one.ID, ""), http.StatusOK).Payment; p.Exception != "" || p.OnChainInvoiceID != "" {
		t.Errorf("after the import: %+v", p)
	}
}

func TestCandidatesShowDifferences(t *testing.T) {
	b := ambiguous()
	b.invoices = b.invoices[:1]
	p := &b.payments[0]
	h := newAPI(t, b)
	for name, test := range map[string]struct {
		set  func()
		want apitypes.PaymentCandidate
	}{
		"too much": {func() {
			p.Amount, p.BlockTime, b.invoices[0].FromBlock = invoice.NewAmount(35_000_000), invoice.Unix(now), 0
		}, apitypes.PaymentCandidate{AmountDifference: "1000000"}},
		"early": {func() {
			p.Amount, p.BlockTime, b.invoices[0].FromBlock = invoice.NewAmount(34_000_000), invoice.Unix(now), 5
		},
			apitypes.PaymentCandidate{AmountDifference: "0", Early: true}},
	} {
		test.set()
		test.want.InvoiceID, test.want.MerchantID, test.want.Status, test.want.Amount = invoiceID(0), "acme", "open", "34000000"
		list := decode[apitypes.PaymentList](t, do(h, "GET", "/api/payments?include=unattributed", ""), http.StatusOK)
		expect.NoDiff(t, cmp.Diff([]apitypes.PaymentCandidate{test.want}, list.Payments[0].Candidates), "%s", name)
	}
}

func TestListClaims(t *testing.T) {
	b := ambiguous()
	h := newAPI(t, b)
	claim := func(i int) string { return invoice.PrefixClaim + number(i) }
	for query, want := range map[string][]string{
		"": {claim(1), claim(0)}, "?merchantId=acme": {claim(0)}, "?merchantId=none": {},
		"?paymentId=" + invoice.PrefixPayment + number(0): {claim(1), claim(0)}, "?paymentId=pay_none": {},
	} {
		got := []string{}
		for _, c := range decode[apitypes.ClaimList](t, do(h, "GET", "/api/claims"+query, ""), http.StatusOK).Claims {
			got = append(got, c.ID)
		}
		expect.NoDiff(t, cmp.Diff(want, got), "%q", query)
	}
	first := decode[apitypes.ClaimList](t, do(h, "GET", "/api/claims?limit=1", ""), http.StatusOK)
	next := decode[apitypes.ClaimList](t, do(h, "GET", "/api/claims?limit=1&cursor="+first.NextCursor, ""), http.StatusOK)
	if first.Claims[0].ID != claim(1) || next.Claims[0].ID != claim(0) || next.NextCursor != "" {
		t.Errorf("pages %+v and %+v", first, next)
	}
	b.claims[0].AttributedTo, b.claims[1].AttributedTo = invoiceID(0), invoiceID(0)
	list := decode[apitypes.ClaimList](t, do(h, "GET", "/api/claims", ""), http.StatusOK).Claims
	if list[0].Status != apitypes.ClaimDeclined || list[1].Status != apitypes.ClaimAccepted || !list[0].Signed || list[1].Signed {
		t.Errorf("decided claims %+v", list)
	}
	for query, field := range map[string]string{"?paymentId=x": "paymentId", "?paymentId=": "paymentId", "?limit=0": "limit", "?cursor=x": "cursor"} {
		wantProblem(t, do(h, "GET", "/api/claims"+query, ""), http.StatusBadRequest, "invalid_field", field)
	}
}

// silentMerchants are merchants without endpoints.
type silentMerchants struct{ *access.MerchantManager }

func (silentMerchants) WantsEvents(context.Context, db.Querier, string) (bool, error) {
	return false, nil
}

// newLinkAPI returns the API with payment links in a database, and a function that sends
// requests on behalf of a principal. The merchant acme is known.
func newLinkAPI(t *testing.T) func(by access.Principal, method, path, body string, header ...string) (int, string) {
	t.Helper()
	store := dbtest.Open(t, dbtest.SQLite(t))
	base, _ := chain.Lookup("base")
	manager := access.NewMerchants(access.MerchantConfig{Store: store, Chains: []string{"base"}, Now: testClock})
	name := "Acme"
	expect.Success(t)(manager.Create(t.Context(), access.Open(), "acme", invoice.MerchantChange{Name: &name}))
	service := ledger.New(ledger.Config{Store: store, Chains: []chain.Chain{base}, Merchants: silentMerchants{manager}, Now: testClock})
	links := ledger.NewPaymentLinks(ledger.PaymentLinkConfig{Store: store, Ledger: service, Holders: manager, Now: testClock})
	rest := api.New(api.Config{
		Reader: api.NewReader(store), Links: links, PublicURL: "https://pay.example", Now: testClock, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}).Handler()
	return func(by access.Principal, method, path, body string, header ...string) (int, string) {
		t.Helper()
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			rest.ServeHTTP(w, r.WithContext(access.WithPrincipal(r.Context(), by)))
		})
		answer := do(apitest.Check(t, h), method, path, body, header...)
		return answer.Code, answer.Body.String()
	}
}

func TestPaymentLinks(t *testing.T) {
	send := newLinkAPI(t)
	operator := access.Open()
	acme := access.Principal{KeyID: "key_1", MerchantID: "acme", Scopes: access.Standard}
	globex := access.Principal{KeyID: "key_2", MerchantID: "globex", Scopes: access.Standard}
	const espresso = `{"slug":"espresso","title":"An espresso","amount":"4900000","currency":"USDC","chainKey":"base","merchantAddress":"0x0100000000000000000000000000000000000000"}`
	status, body := send(acme, "POST", "/api/payment-links", espresso, "Idempotency-Key", "k")
	if want := `"merchantId":"acme","slug":"espresso","url":"https://pay.example/pay/acme/espresso","title":"An espresso","amount":"4900000","currency":"USDC",` +
		`"chainKey":"base","merchantAddress":"0x0100000000000000000000000000000000000000","expiresIn":3600,"archived":false,`; status != http.StatusCreated || !strings.Contains(body, want) {
		t.Fatalf("%d %s, want %s", status, body, want)
	}
	var made apitypes.PaymentLinkResponse
	expect.OK(t, json.Unmarshal([]byte(body), &made))
	path := "/api/payment-links/" + made.Link.ID
	change := func(from, to string) string { return strings.Replace(espresso, from, to, 1) }
	for _, c := range []struct {
		what         string
		by           access.Principal
		method, path string
		body         string
		key          string
		status       int
		want         string // in the response
	}{
		{"again with the key", acme, "POST", "/api/payment-links", espresso, "k", 201, made.Link.ID},
		{"another with the key", acme, "POST", "/api/payment-links", change("An", "Another"), "k", 422, "idempotency_mismatch"},
		{"the slug again", acme, "POST", "/api/payment-links", espresso, "", 409, "slug_taken"},
		{"by the operator without a merchant", operator, "POST", "/api/payment-links", espresso, "", 400, `"field":"merchantId"`},
		{"for another merchant", globex, "POST", "/api/payment-links", change("{", `{"merchantId":"acme",`), "", 403, "forbidden"},
		{"without a title", acme, "POST", "/api/payment-links", change(`"title":"An espresso",`, ""), "", 400, `"field":"title"`},
		{"without a chain", acme, "POST", "/api/payment-links", change(`"chainKey":"base",`, ""), "", 400, `"field":"chainKey"`},
		{"without a currency", acme, "POST", "/api/payment-links", change(`"currency":"USDC",`, ""), "", 400, `"field":"currency"`},
		{"a bad slug", acme, "POST", "/api/payment-links", change(`"espresso"`, `"An espresso"`), "", 400, `"field":"slug"`},
		{"amount 0", acme, "POST", "/api/payment-links", change("4900000", "0"), "", 400, `"field":"amount"`},
		{"amount null", acme, "POST", "/api/payment-links", change(`"4900000"`, "null"), "", 400, `"field":"amount"`},
		{"a decimal amount", acme, "POST", "/api/payment-links", change("4900000", "4.90"), "", 400, `"field":"amount"`},
		{"a zero address", acme, "POST", "/api/payment-links", change("0x01", "0x00"), "", 400, `"field":"merchantAddress"`},
		{"a lifetime as text", acme, "POST", "/api/payment-links", change("{", `{"expiresIn":"60",`), "", 400, `"field":"expiresIn"`},
		{"a short lifetime", acme, "POST", "/api/payment-links", change("{", `{"expiresIn":59,`), "", 400, `"field":"expiresIn"`},
		{"a fraction", acme, "POST", "/api/payment-links", change("{", `{"expiresIn":60.5,`), "", 400, `"field":"expiresIn"`},
		{"a list", acme, "GET", "/api/payment-links?slug=espresso&archived=false&limit=1", "", "", 200, made.Link.ID},
		{"a list of archived ones", acme, "GET", "/api/payment-links?archived=true", "", "", 200, `{"links":[]}`},
		{"a list of another", globex, "GET", "/api/payment-links", "", "", 200, `{"links":[]}`},
		{"archived is no text", acme, "GET", "/api/payment-links?archived=1", "", "", 400, `"field":"archived"`},
		{"a bad slug in the list", acme, "GET", "/api/payment-links?slug=%00", "", "", 400, `"field":"slug"`},
		{"read", acme, "GET", path, "", "", 200, made.Link.ID},
		{"read by another", globex, "GET", path, "", "", 404, "not_found"},
		{"change", acme, "PATCH", path, `{"title":"A cup","amount":null,"minAmount":"1000000","description":"Hot"}`, "", 200, `"title":"A cup","description":"Hot","minAmount":"1000000"`},
		{"remove", acme, "PATCH", path, `{"description":null}`, "", 200, `"title":"A cup","minAmount"`},
		{"an empty description", acme, "PATCH", path, `{"description":""}`, "", 400, `"field":"description"`},
		{"the title removed", acme, "PATCH", path, `{"title":null}`, "", 400, `"field":"title"`},
		{"the same slug", acme, "PATCH", path, `{"slug":"espresso","archived":false}`, "", 200, `"archived":false`},
		{"another slug", acme, "PATCH", path, `{"slug":"tea"}`, "", 400, `"field":"slug"`},
		{"change by another", globex, "PATCH", path, `{"title":"Mine"}`, "", 404, "not_found"},
		{"archive", acme, "PATCH", path, `{"archived":true}`, "", 200, `"archived":true`},
		{"archive again", acme, "PATCH", path, `{"archived":true}`, "", 200, `"archived":true`},
		{"take it back", acme, "PATCH", path, `{"archived":false}`, "", 400, `"field":"archived"`},
		{"change an archived one", acme, "PATCH", path, `{"title":"Tea"}`, "", 409, "link_archived"},
	} {
		header := []string{"Content-Type", "application/json"}
		if c.key != "" {
			header = append(header, "Idempotency-Key", c.key)
		}
		status, body := send(c.by, c.method, c.path, c.body, header...)
		if status != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s: %d %s, want %d %s", c.what, status, body, c.status, c.want)
		}
	}
}

// The tests of package dashboard cover decisions about items; this backend has no items.

func (b *backend) Inbox(ctx context.Context, _ ledger.InboxFilter) ([]ledger.InboxItem, string, error) {
	return nil, "", b.fail(ctx)
}

func (b *backend) InboxCounts(ctx context.Context, _ string) ([]ledger.InboxCount, error) {
	return nil, b.fail(ctx)
}

func (b *backend) Decide(context.Context, ledger.DecisionRequest) (invoice.Decision, error) {
	return invoice.Decision{}, db.ErrNotFound
}

func (b *backend) UndoDecision(context.Context, string, string) (invoice.Decision, error) {
	return invoice.Decision{}, db.ErrNotFound
}

func (b *backend) Decisions(ctx context.Context, _ ledger.DecisionFilter) ([]invoice.Decision, error) {
	return nil, b.fail(ctx)
}

// TestIntegrationInbox dismisses an approval twice, and undoes the decision.
func TestIntegrationInbox(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, store *db.DB) {
		s := newIntegration(t, store)
		payment, _ := s.confirmedPayment(t)
		asked := decode[apitypes.RefundResponse](t, do(s.handler, "POST", "/api/payments/"+payment+"/refunds", `{"to":"ask_payer"}`), http.StatusCreated)
		if list := decode[apitypes.InboxList](t, do(s.handler, "GET", "/api/inbox", ""), http.StatusOK); len(list.Items) != 0 {
			t.Errorf("the inbox has %+v", list.Items)
		}
		_, err := s.service.NameRefundAddress(t.Context(), ledger.RefundClaim{Token: strings.TrimPrefix(asked.ClaimURL, "/refunds/"), To: invoice.Address{0xcc}, Account: invoice.AccountWithKey})
		must(t, err)
		list := decode[apitypes.InboxList](t, do(s.handler, "GET", "/api/inbox?kind=approval", ""), http.StatusOK)
		if len(list.Items) != 1 || list.Items[0].Refund == nil || list.Items[0].Refund.ID != asked.Refund.ID {
			t.Fatalf("the inbox has %+v", list.Items)
		}
		item := list.Items[0]
		body := fmt.Sprintf(`{"kind":"approval","objectId":%q,"version":%q,"decision":"dismissed","reason":"Not our customer"}`, item.Refund.ID, item.Version)

		made := decode[apitypes.DecisionResponse](t, do(s.handler, "POST", "/api/inbox/decisions", body), http.StatusCreated).Decision
		p := wantProblem(t, do(s.handler, "POST", "/api/inbox/decisions", body), http.StatusConflict, "already_decided", "")
		if !strings.Contains(p.Detail, " has dismissed this at 20") || !strings.Contains(p.Detail, "Not our customer") {
			t.Errorf("the refusal says %q", p.Detail)
		}
		counts := decode[apitypes.InboxCounts](t, do(s.handler, "GET", "/api/inbox/counts", ""), http.StatusOK)
		for _, c := range counts.Counts {
			if c.Count != 0 {
				t.Errorf("after the decision, %+v", c)
			}
		}
		for range 2 {
			undone := decode[apitypes.DecisionResponse](t, do(s.handler, "POST", "/api/inbox/decisions/"+made.ID+"/undo", ""), http.StatusOK).Decision
			if undone.UndoneBy == "" || undone.UndoneAt != now {
				t.Errorf("taken back: %+v", undone)
			}
		}
		if again := decode[apitypes.InboxList](t, do(s.handler, "GET", "/api/inbox", ""), http.StatusOK); len(again.Items) != 1 {
			t.Errorf("the inbox has %+v", again.Items)
		}
		stale := strings.Replace(body, item.Version, invoice.Address{0xdd}.String(), 1)
		wantProblem(t, do(s.handler, "POST", "/api/inbox/decisions", stale), http.StatusConflict, "item_changed", "")
		wantProblem(t, do(s.handler, "POST", "/api/inbox/decisions", strings.Replace(body, "dismissed", "accepted", 1)), http.StatusBadRequest, "invalid_field", "decision")
		all := decode[apitypes.DecisionList](t, do(s.handler, "GET", "/api/inbox/decisions?objectId="+item.Refund.ID, ""), http.StatusOK)
		if len(all.Decisions) != 1 || all.Decisions[0].ID != made.ID {
			t.Errorf("the decisions are %+v", all.Decisions)
		}
	})
}
