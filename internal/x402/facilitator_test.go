package x402_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/webhooks"
	"github.com/quittance/quittance/internal/x402"
)

func TestMain(m *testing.M) {
	// The development chain leaves the workers of its package.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/ethereum/go-ethereum/core.(*txSenderCacher).cache"))
}

const (
	chainKey = "base"
	chainID  = 8453
	start    = 1_700_000_000
	price    = 10_000
)

var (
	usdc   = invoice.Address{0x70}
	payer  = invoice.Address{0xbb}
	till   = invoice.Address{0xaa} // of acme
	sender = invoice.Address{0xdd}
	domain = x402.Domain{Name: "USD Coin", Version: "2"}
)

// world is a facilitator with a chain that a test mines. It implements
// ledger.AuthorizationChecker, Merchants, Chains and Feed.
type world struct {
	*x402.Service
	t       *testing.T
	store   *db.DB
	ledger  *flaky
	conf    ledger.Config // of the ledger
	seconds atomic.Int64
	head    invoice.Header
	nonces  byte
	txs     int

	replica func() *x402.Service // returns another facilitator on the same database
	mu      sync.Mutex           // guards fields that concurrent requests of a test count

	budgets  map[string]ledger.AuthorizationBudget
	refusal  invoice.Refusal // of the next checks; empty without a refusal
	checks   atomic.Int64
	sendsOff bool
	waited   func() // called when a request waits for news
	stop     context.CancelFunc
}

// flaky is a ledger and a store that can fail after each step of a settlement, as if the process was killed there.
type flaky struct {
	*ledger.Service
	ledger.Tables
	failAfter string
}

var errKilled = errors.New("killed")

func (f *flaky) killed(step string, err error) error {
	if err == nil && f.failAfter == step {
		return errKilled
	}
	return err
}

func (f *flaky) Purchase(ctx context.Context, p ledger.Purchase) (ledger.Authorization, error) {
	accepted, err := f.Service.Purchase(ctx, p)
	return accepted, f.killed("purchase", err)
}

func (f *flaky) Authorize(ctx context.Context, id string, a invoice.Authorization) (ledger.Authorization, error) {
	accepted, err := f.Service.Authorize(ctx, id, a)
	return accepted, f.killed("purchase", err)
}

func (f *flaky) CountX402Answer(ctx context.Context, key ledger.AuthorizationKey, most int, request string) (bool, error) {
	counted, err := f.Tables.CountX402Answer(ctx, key, most, request)
	return counted, f.killed("count", err)
}

// each runs a test on each database.
func each(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		w := &world{t: t, store: s, waited: func() {}, budgets: map[string]ledger.AuthorizationBudget{chainKey: {PerMerchant: 100, PerPayer: 100, PerDay: 100}}}
		w.seconds.Store(start)
		network := chain.Chain{Key: chainKey, ID: chainID, Tokens: []chain.Token{{Currency: "USDC", Address: usdc, Decimals: 6}}, DepositFactory: invoice.Address{0x61},
			Registry: invoice.Address{0x62}, AuthorizationRelay: invoice.Address{0x63}}
		now := func() time.Time { return time.Unix(w.seconds.Load(), 0).UTC() }
		w.conf = ledger.Config{
			Store: s, Chains: []chain.Chain{network}, Merchants: w, Now: now,
			Gasless: ledger.Gasless{Checker: w, Budgets: w.budgets},
		}
		w.ledger = &flaky{Tables: ledger.NewTables(s), Service: ledger.New(w.conf)}
		stopping, stop := context.WithCancel(t.Context())
		w.stop = stop
		t.Cleanup(stop)
		w.replica = func() *x402.Service {
			return x402.New(x402.Config{
				Ledger: w.ledger, Store: w.ledger, Merchants: w, Networks: []chain.Chain{network, {Key: "silent", ID: 7}}, Chains: w, Feed: w, Stopping: stopping, Now: now,
			})
		}
		w.Service = w.replica()
		w.head = invoice.Header{Number: 100, Hash: invoice.Hash{1}, Time: invoice.Unix(start)}
		w.must(w.ledger.Start(t.Context(), chainKey, w.head, 101))
		test(t, w)
	})
}

func (w *world) must(err error) {
	w.t.Helper()
	expect.OK(w.t, err)
}

func (w *world) CheckAuthorization(context.Context, string, invoice.Address, invoice.Authorization) (ledger.AuthorizationCheck, error) {
	w.checks.Add(1)
	if w.refusal != "" {
		return ledger.AuthorizationCheck{}, invoice.Refuse(w.refusal, "As the node says.")
	}
	return ledger.AuthorizationCheck{Time: w.head.Time, Gas: 60_000}, nil
}

func (w *world) WantsEvents(context.Context, db.Querier, string) (bool, error) { return false, nil }

// Find knows the merchants acme, rival and listed. Invoices of acme are paid to deposit addresses by default, and
// listed may only be paid at another address.
func (w *world) Find(_ context.Context, id string) (m invoice.Merchant, known bool, err error) {
	m.ID = id
	switch id {
	case "acme":
		m.Collection = invoice.Deposit
	case "rival":
	case "listed":
		m.Allowed = []invoice.AllowedAddress{{ChainKey: chainKey, Address: invoice.Address{0x11}}}
	default:
		return m, false, nil
	}
	return m, true, nil
}

func (w *world) Domain(context.Context, string, invoice.Address) (x402.Domain, error) {
	return domain, nil
}

func (w *world) Sender(key string) (invoice.Address, bool) {
	return sender, key == chainKey && !w.sendsOff
}

func (w *world) Head(context.Context) (webhooks.Position, error) { return webhooks.Position{}, nil }

func (w *world) NextMatching(ctx context.Context, after webhooks.Position, _ time.Duration, _ func(webhooks.News) bool) (webhooks.Position, error) {
	w.waited()
	return after, ctx.Err()
}

// request returns a payment for a resource, with a new nonce and the client's secret.
func (w *world) request(resource string) x402.Request {
	w.nonces++
	want := x402.Requirements{
		ChainID: chainID, Token: usdc, PayTo: till, Amount: invoice.NewAmount(price), Timeout: time.Minute, Domain: domain, ClientSecret: "of the payer",
	}
	return x402.Request{Requirements: want, Payment: x402.Payment{Resource: resource, Accepted: want, Authorization: invoice.Authorization{
		From: payer, To: till, Value: want.Amount, ValidAfter: invoice.Unix(0), ValidBefore: invoice.Unix(w.seconds.Load() + 300),
		Nonce: invoice.Hash{0xee, w.nonces}, Signature: []byte{1, 2, 3},
	}}}
}

// mine mines a block with the transfers of authorizations.
func (w *world) mine(all ...invoice.Authorization) {
	w.t.Helper()
	w.seconds.Add(1)
	next := invoice.Header{Number: w.head.Number + 1, Parent: w.head.Hash, Time: invoice.Unix(w.seconds.Load())}
	next.Hash = sha256.Sum256(fmt.Append(nil, "block", next.Number))
	block := ledger.Block{Header: next}
	for i, a := range all {
		w.txs++
		block.Transfers = append(block.Transfers, invoice.Transfer{
			Position: invoice.Position{BlockNumber: next.Number, BlockHash: next.Hash, BlockTime: next.Time, LogIndex: i},
			ChainKey: chainKey, TxHash: sha256.Sum256(fmt.Append(nil, "tx", w.txs)), Ordinal: i, Token: usdc, Currency: "USDC",
			From: a.From, To: a.To, Amount: a.Value, Evidence: invoice.Evidence{Authorization: a.Nonce},
		})
	}
	w.must(w.ledger.Observe(w.t.Context(), chainKey, []ledger.Block{block}))
	w.head = next
}

// sendBack mines a block with a transfer from the merchant to the payer.
func (w *world) sendBack(amount uint64) {
	w.t.Helper()
	w.mine(invoice.Authorization{From: till, To: payer, Value: invoice.NewAmount(amount)})
}

// mineOnWait mines the transfer of an authorization when a request waits for it.
func (w *world) mineOnWait(a invoice.Authorization) {
	w.waited = func() { w.waited = func() {}; w.mine(a) }
}

// confirm makes the blocks final.
func (w *world) confirm() {
	w.t.Helper()
	_, revision, err := w.ledger.Pending(w.t.Context(), chainKey, w.head.Number)
	w.must(err)
	_, err = w.ledger.Confirm(w.t.Context(), chainKey, w.head, revision, 1)
	w.must(err)
}

// settle settles a payment with a key of a merchant.
func (w *world) settle(merchantID string, r x402.Request) apitypes.X402SettleResponse {
	w.t.Helper()
	answer, err := w.Settle(w.t.Context(), merchantID, r)
	w.must(err)
	return answer
}

// wantReason requires that a payment is neither verified nor settled, for a reason.
func (w *world) wantReason(merchantID string, r x402.Request, want x402.Reason) {
	w.t.Helper()
	verified, err := w.Verify(w.t.Context(), merchantID, r)
	if err != nil || verified.IsValid || verified.InvalidReason != string(want) || verified.InvalidMessage == "" {
		w.t.Errorf("verified as %+v, %v; want %s", verified, err, want)
	}
	if got := w.settle(merchantID, r); got.Success || got.ErrorReason != string(want) || got.ErrorMessage == "" || got.Transaction != "" {
		w.t.Errorf("settled as %+v, want %s", got, want)
	}
}

// invoices returns the invoices of acme.
func (w *world) invoices() []invoice.Invoice {
	w.t.Helper()
	all, _, err := ledger.NewReader(w.store).Invoices(w.t.Context(), ledger.InvoiceFilter{MerchantID: "acme", Limit: 50})
	w.must(err)
	return all
}

func TestSupported(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		got := w.Supported()
		if len(got.Kinds) != 1 || got.Kinds[0] != (apitypes.X402Kind{X402Version: 2, Scheme: "exact", Network: "eip155:8453"}) ||
			len(got.Signers) != 1 || got.Signers["eip155:8453"][0] != chain.Checksum(sender) {
			t.Errorf("supported is %+v", got)
		}
		w.sendsOff = true
		if got := w.Supported(); len(got.Kinds)+len(got.Signers) != 0 || got.Kinds == nil || got.Signers == nil {
			t.Errorf("without gasless payments %+v", got)
		}
	})
}

// TestSettle settles a payment: it becomes an invoice with the resource as its reference, and success is answered three
// times.
func TestSettle(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		const resource = "https://api.shop.example/forecast/oslo"
		r := w.request(resource)
		verified, err := w.Verify(t.Context(), "acme", r)
		if err != nil || !verified.IsValid || verified.Payer != chain.Checksum(payer) {
			t.Errorf("verified as %+v, %v", verified, err)
		}
		if all := w.invoices(); len(all) > 0 {
			t.Errorf("verifying made %d invoices", len(all))
		}
		w.mineOnWait(r.Payment.Authorization)
		first := w.settle("acme", r)
		if !first.Success || first.Transaction == "" || first.Amount != fmt.Sprint(price) || first.Payer != chain.Checksum(payer) || first.Network != "eip155:8453" {
			t.Fatalf("settled as %+v", first)
		}
		for range 2 {
			if verified, err := w.Verify(t.Context(), "acme", r); err != nil || !verified.IsValid {
				t.Errorf("verified again as %+v, %v", verified, err)
			}
			expect.Equal(t, w.settle("acme", r), first, "settled again as")
		}
		w.wantReason("acme", r, x402.NonceUsed)
		all := w.invoices()
		if len(all) != 1 || all[0].Details.Reference != resource || all[0].Amount != invoice.NewAmount(price) || all[0].Collection != invoice.Direct || all[0].Merchant != till {
			t.Errorf("the invoices are %+v", all)
		}
		if n := w.checks.Load(); n != 2 { // one to verify and one to settle
			t.Errorf("the nodes were asked %d times", n)
		}
	})
}

// TestSettleWhileHeld settles a payment that waits for a verdict. The buyer is served, and the invoice is not paid until the
// payment is accepted.
func TestSettleWhileHeld(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.conf.Screens = true
		w.ledger.Service = ledger.New(w.conf)
		r := w.request("https://api.shop.example/held")
		w.mineOnWait(r.Payment.Authorization)
		first := w.settle("acme", r)
		if again := w.settle("acme", r); !first.Success || again != first {
			t.Errorf("settled as %+v, then as %+v", first, again)
		}
		w.confirm()
		due, _, err := w.ledger.LeaseScreenings(t.Context())
		w.must(err)
		if len(due) != 1 || due[0].Status != invoice.Held || w.invoices()[0].Status != invoice.Open {
			t.Fatalf("%+v waits, for %+v", due, w.invoices())
		}
		_, err = w.ledger.Screen(t.Context(), chainKey, []ledger.Verdict{{Payment: due[0], To: invoice.ScreeningAccepted}})
		w.must(err)
		if got := w.invoices()[0]; got.Status != invoice.Paid {
			t.Errorf("the invoice is %s", got.Status)
		}
	})
}

// TestSettlementIsOfOnePurchase uses a settled payment for another resource, with the key of another merchant, and
// without the client's secret.
func TestSettlementIsOfOnePurchase(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		r := w.request("https://api.shop.example/1")
		w.mineOnWait(r.Payment.Authorization)
		if got := w.settle("acme", r); !got.Success {
			t.Fatalf("settled as %+v", got)
		}
		for name, change := range map[string]func(*x402.Request){
			"resource": func(r *x402.Request) { r.Payment.Resource = "https://api.shop.example/2" },
			"none":     func(r *x402.Request) { r.Payment.Resource = "" },
			"secret":   func(r *x402.Request) { setSecrets(r, "of somebody else", "of somebody else") },
			"public":   func(r *x402.Request) { setSecrets(r, "", "") },
		} {
			other := r
			change(&other)
			t.Log(name)
			w.wantReason("acme", other, x402.NonceUsed)
		}
		w.wantReason("rival", r, x402.NonceUsed)
		if got := w.settle("acme", r); !got.Success {
			t.Errorf("the payer's repetition is settled as %+v", got)
		}
		expect.Len(t, w.invoices(), 1, "there are … invoices:")
	})
}

// setSecrets sets the secrets in the server's requirements and in the payment.
func setSecrets(r *x402.Request, required, accepted string) {
	r.Requirements.ClientSecret, r.Payment.Accepted.ClientSecret = required, accepted
}

// TestOnePaymentBuysOneResource has a client present one payment three times to a server that passes the client's
// messages on. The client may name a secret, which the server's requirements do not.
func TestOnePaymentBuysOneResource(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		for _, secret := range []string{"", "of the client"} {
			r := w.request("https://api.shop.example/" + secret)
			setSecrets(&r, "", secret)
			w.mineOnWait(r.Payment.Authorization)
			if got := w.settle("acme", r); !got.Success {
				t.Fatalf("with the secret %q settled as %+v", secret, got)
			}
			for range 2 {
				w.wantReason("acme", r, x402.NonceUsed)
			}
		}
		r := w.request("https://api.shop.example/secret")
		setSecrets(&r, "of the server", "of the client")
		w.wantReason("acme", r, x402.InvalidRequirements)
	})
}

// TestSettleIsKilled ends the process after each step. A repeated request continues: there is one invoice and one
// payment.
func TestSettleIsKilled(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		for n, step := range []string{"purchase", "count"} {
			r := w.request("https://api.shop.example/" + step)
			w.mineOnWait(r.Payment.Authorization)
			w.ledger.failAfter = step
			if got, err := w.Settle(t.Context(), "acme", r); !errors.Is(err, errKilled) {
				t.Fatalf("killed after %s: %+v, %v", step, got, err)
			}
			w.ledger.failAfter = ""
			if verified, err := w.Verify(t.Context(), "acme", r); err != nil || !verified.IsValid {
				t.Errorf("killed after %s, it is verified as %+v, %v", step, verified, err)
			}
			other := r
			other.Payment.Resource = "https://api.shop.example/other"
			if got := w.settle("acme", other); got.Success || got.ErrorReason != string(x402.NonceUsed) {
				t.Errorf("killed after %s, it is settled for another resource as %+v", step, got)
			}
			if got := w.settle("acme", r); !got.Success {
				t.Errorf("killed after %s, it is settled as %+v", step, got)
			}
			expect.Len(t, w.invoices(), n+1, "killed after %s, there are … invoices:", step)
		}
	})
}

// TestLostAnswerIsRepeated settles a payment without a client's secret, which is answered with success once. The answer to
// a request that is repeated with its key counts once; no other request gets one.
func TestLostAnswerIsRepeated(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		r := w.request("https://api.shop.example/")
		setSecrets(&r, "", "")
		r.Key = "a"
		w.mineOnWait(r.Payment.Authorization)
		for range 5 {
			if got := w.settle("acme", r); !got.Success {
				t.Fatalf("settled with the same key as %+v", got)
			}
		}
		for _, key := range []string{"", "b"} {
			r.Key = key
			w.wantReason("acme", r, x402.NonceUsed)
		}
		known, err := ledger.NewReader(w.store).X402Settlement(t.Context(), ledger.AuthorizationKey{
			ChainKey: chainKey, Token: usdc, Authorizer: payer, Nonce: r.Payment.Authorization.Nonce,
		})
		w.must(err)
		expect.Equal(t, known.Answers, 1, "the answers are")
		expect.Equal(t, known.AnsweredKey, "a", "the last key is")
	})
}

// TestRefusedSettlementsLeaveNoInvoice settles more payments at the same time than the budget allows.
func TestRefusedSettlementsLeaveNoInvoice(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		const requests, budget = 40, 20
		w.budgets[chainKey] = ledger.AuthorizationBudget{PerMerchant: budget, PerPayer: requests, PerDay: requests}
		w.stop() // so that no request waits for the block
		replicas := []*x402.Service{w.Service, w.replica()}
		var group sync.WaitGroup
		accepted := 0
		for n := range requests {
			r := w.request(fmt.Sprintf("https://api.shop.example/%d", n))
			group.Go(func() {
				got, err := replicas[n%2].Settle(t.Context(), "acme", r)
				w.mu.Lock()
				defer w.mu.Unlock()
				if err == nil && got.ErrorReason == string(x402.Pending) {
					accepted++
				} else if err != nil || got.ErrorReason != string(x402.ReasonOf(invoice.RefusedBudget)) {
					t.Errorf("request %d is answered %+v, %v", n, got, err)
				}
			})
		}
		group.Wait()
		all := w.invoices()
		if accepted != budget || len(all) != budget {
			t.Errorf("%d settlements are accepted and %d invoices made, want %d of each", accepted, len(all), budget)
		}
		for _, inv := range all {
			if _, err := ledger.NewReader(w.store).PendingAuthorization(t.Context(), inv.ID); err != nil {
				t.Errorf("invoice %s has no authorization: %v", inv.ID, err)
			}
		}
	})
}

// TestSettleAtOnce settles a payment with two replicas at the same time: it has one invoice.
func TestSettleAtOnce(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.stop() // so that no request waits for the block
		r := w.request("https://api.shop.example/")
		replicas := []*x402.Service{w.Service, w.replica()}
		var group sync.WaitGroup
		for n := range 8 {
			group.Go(func() {
				if got, err := replicas[n%2].Settle(t.Context(), "acme", r); err != nil || got.ErrorReason != string(x402.Pending) {
					t.Errorf("request %d is answered %+v, %v", n, got, err)
				}
			})
		}
		group.Wait()
		w.mine(r.Payment.Authorization)
		successes := 0
		for n := range 8 {
			group.Go(func() {
				got, err := replicas[n%2].Settle(t.Context(), "acme", r)
				w.mu.Lock()
				defer w.mu.Unlock()
				if got.Success {
					successes++
				} else if err != nil || got.ErrorReason != string(x402.NonceUsed) {
					t.Errorf("request %d is answered %+v, %v", n, got, err)
				}
			})
		}
		group.Wait()
		expect.Equal(t, successes, x402.MaxAnswers, "answers have success:")
		expect.Len(t, w.invoices(), 1, "there are … invoices:")
	})
}

// TestSettleRefused expects the protocol's reasons, and no stored rows.
func TestSettleRefused(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		expect.Success(t)(w.ledger.Create(t.Context(), ledger.CreateRequest{ByMerchant: true, Draft: invoice.Draft{
			MerchantID: "rival", Merchant: invoice.Address{0x99}, Amount: invoice.NewAmount(1), Currency: "USDC", ChainKey: chainKey, ExpiresAt: invoice.Unix(start + 60),
		}}))
		deposited, err := w.ledger.Create(t.Context(), ledger.CreateRequest{ByMerchant: true, Draft: invoice.Draft{
			MerchantID: "acme", Merchant: till, Amount: invoice.NewAmount(1), Currency: "USDC", ChainKey: chainKey, ExpiresAt: invoice.Unix(start + 60),
		}})
		w.must(err)
		payTo := func(a invoice.Address) func(*x402.Request) {
			return func(r *x402.Request) { r.Requirements.PayTo, r.Payment.Authorization.To = a, a }
		}
		for want, changes := range map[x402.Reason][]func(*x402.Request){
			x402.InvalidNetwork: {
				func(r *x402.Request) { r.Requirements.ChainID = 1 },
				func(r *x402.Request) { r.Payment.Accepted.ChainID = 1 },
			},
			x402.InvalidRequirements: {
				func(r *x402.Request) { r.Requirements.Token = invoice.Address{1} },
				func(r *x402.Request) { r.Payment.Accepted.Token = invoice.Address{1} },
				payTo(invoice.Address{0x99}), // of rival
				payTo(deposited.PayTo()),
				payTo(invoice.Address{0x61}), payTo(invoice.Address{0x62}), payTo(invoice.Address{0x63}), payTo(usdc),
			},
			x402.RecipientMismatch: {func(r *x402.Request) { r.Requirements.PayTo = invoice.Address{1} }},
			x402.ValueMismatch:     {func(r *x402.Request) { r.Payment.Authorization.Value = invoice.NewAmount(price - 1) }},
			x402.DomainMismatch:    {func(r *x402.Request) { r.Requirements.Domain.Name = "USDC" }},
			x402.NoLongerValid: {
				func(r *x402.Request) { r.Payment.Authorization.ValidBefore = invoice.Unix(start + 19) },
				func(r *x402.Request) { r.Payment.Authorization.ValidBefore = invoice.Unix(start + 3601) },
			},
			x402.NotYetValid:    {func(r *x402.Request) { r.Payment.Authorization.ValidAfter = invoice.Unix(start) }},
			x402.InvalidPayload: {payTo(payer)},
		} {
			for i, change := range changes {
				r := w.request("https://api.shop.example/")
				change(&r)
				t.Log(want, i)
				w.wantReason("acme", r, want)
			}
		}
		w.wantReason("listed", w.request(""), x402.InvalidRequirements)
		w.wantReason("stranger", w.request(""), x402.InvalidRequirements)
		for refusal, want := range map[invoice.Refusal]x402.Reason{
			invoice.RefusedBalance: x402.InsufficientFunds, invoice.RefusedSignature: x402.InvalidSignature, invoice.RefusedNonceUsed: x402.NonceUsed,
		} {
			w.refusal = refusal
			w.wantReason("acme", w.request(""), want)
		}
		expect.Len(t, w.invoices(), 1, "there are … invoices:")
	})
}

// TestSettleWhatOthersSubmitted settles a payment that is stored because another account has made its transfer. The
// node answers from an older block.
func TestSettleWhatOthersSubmitted(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		first := w.request("https://api.shop.example/") // so that the address is known
		w.mineOnWait(first.Payment.Authorization)
		w.settle("acme", first)
		known := len(w.invoices())
		r := w.request("https://api.shop.example/")
		w.mine(r.Payment.Authorization)
		w.wantReason("acme", r, x402.NonceUsed)
		expect.Len(t, w.invoices(), known, "there are … invoices:")
	})
}

// TestSettleAfterRefund refunds a settled payment. Once all of it is on its way back, the answer is no longer success.
func TestSettleAfterRefund(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		r := w.request("https://api.shop.example/")
		w.mineOnWait(r.Payment.Authorization)
		if got := w.settle("acme", r); !got.Success {
			t.Fatalf("settled as %+v", got)
		}
		w.sendBack(price - 1)
		if got := w.settle("acme", r); !got.Success {
			t.Errorf("after a refund in part it is %+v", got)
		}
		w.sendBack(1)
		w.wantReason("acme", r, x402.InvalidState)
	})
}

// TestNoSuccessForAVoidInvoice has another account submit an authorization that was refused before it was sent. Its
// invoice is void by then.
func TestNoSuccessForAVoidInvoice(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		r := w.request("https://api.shop.example/")
		w.waited = func() {
			w.waited = func() {}
			accepted, err := ledger.NewReader(w.store).AuthorizationByNonce(t.Context(), chainKey, usdc, payer, r.Payment.Authorization.Nonce)
			w.must(err)
			if _, err := w.ledger.Void(t.Context(), access.Principal{MerchantID: "acme", Scopes: access.Admin}, accepted.InvoiceID); !errors.Is(err, ledger.ErrOutcomeUnknown) {
				t.Errorf("void while a payment is being made: %v", err)
			}
			lease := db.WorkLease{Name: "writer", Holder: "holder"}
			_, err = w.store.AcquireWorkLease(t.Context(), lease, invoice.Unix(start), invoice.Unix(start+3600))
			w.must(err)
			w.must(ledger.RefuseAuthorization(t.Context(), w.store, lease, accepted.ID, invoice.RefusedReverts, invoice.Unix(start)))
			_, err = w.ledger.Void(t.Context(), access.Principal{MerchantID: "acme", Scopes: access.Admin}, accepted.InvoiceID)
			w.must(err)
		}
		if got := w.settle("acme", r); got.Success || got.ErrorReason != string(x402.InvalidState) {
			t.Errorf("refused, it is %+v", got)
		}
		w.mine(r.Payment.Authorization)
		w.wantReason("acme", r, x402.InvalidState)
		inv := w.invoices()[0]
		if got, err := w.Pay(t.Context(), inv, r.Payment); err != nil || got.Success || inv.Status != invoice.Void {
			t.Errorf("the invoice is %s, and its payment %+v, %v", inv.Status, got, err)
		}
	})
}

// TestPending has a payment to a deposit address that is not mined while a request waits: its outcome is open, and no
// other payment is accepted. A repeated request succeeds.
func TestPending(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		inv, err := w.ledger.Create(t.Context(), ledger.CreateRequest{Draft: invoice.Draft{
			MerchantID: "acme", Merchant: till, Amount: invoice.NewAmount(price), Currency: "USDC", ChainKey: chainKey, ExpiresAt: invoice.Unix(start + 3600),
		}})
		w.must(err)
		if inv.Collection != invoice.Deposit || inv.PayTo() == till {
			t.Errorf("the invoice is paid to %s", inv.PayTo())
		}
		if _, ok, err := w.Pending(t.Context(), inv); ok || err != nil {
			t.Errorf("before a payment one is pending: %v, %v", ok, err)
		}
		want, err := w.Requirements(t.Context(), inv)
		if err != nil || want.Amount != inv.Amount || want.PayTo != inv.PayTo() || want.Timeout != x402.Timeout || want.Domain != domain {
			t.Errorf("required is %+v, %v", want, err)
		}
		p, other := w.request("").Payment, w.request("").Payment
		p.Authorization.To, other.Authorization.To = inv.PayTo(), inv.PayTo()
		w.waited = w.stop
		got, err := w.Pay(t.Context(), inv, p)
		if err != nil || got.Success || got.ErrorReason != string(x402.Pending) {
			t.Errorf("not mined, it is %+v, %v", got, err)
		}
		wrong := other
		wrong.Authorization.Value = invoice.NewAmount(1)
		same := p
		same.Authorization.Signature = []byte{9}
		for name, refused := range map[string]x402.Payment{"another": other, "a wrong one": wrong, "one with its nonce": same} {
			if got, err := w.Pay(t.Context(), inv, refused); err != nil || got.ErrorReason != string(x402.Pending) {
				t.Errorf("%s meanwhile is %+v, %v", name, got, err)
			}
		}
		if got, ok, err := w.Pending(t.Context(), inv); err != nil || !ok || got.ErrorReason != string(x402.Pending) {
			t.Errorf("asked without a payment: %+v, %v, %v", got, ok, err)
		}
		w.mine(p.Authorization)
		if got, err := w.Pay(t.Context(), inv, p); err != nil || !got.Success {
			t.Errorf("mined, it is %+v, %v", got, err)
		}
		paid, err := ledger.NewReader(w.store).Invoice(t.Context(), inv.ID)
		w.must(err)
		if got, err := w.Pay(t.Context(), paid, other); err != nil || got.ErrorReason != string(x402.InvalidState) {
			t.Errorf("another afterwards is %+v, %v", got, err)
		}
		expect.Error(t, x402.ErrNotPayable, "required afterwards")(w.Requirements(t.Context(), paid))
		// Another transfer with the same nonce and a smaller value pays nothing.
		second := w.request("https://api.shop.example/")
		less := second.Payment.Authorization
		less.Value = invoice.NewAmount(1)
		w.settle("acme", second)
		w.mine(less)
		if got := w.settle("acme", second); got.Success || got.ErrorReason != string(x402.Pending) {
			t.Errorf("a payment of which 1 was transferred is %+v", got)
		}
	})
}
