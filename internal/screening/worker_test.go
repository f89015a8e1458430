package screening

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/apiconv"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/webhooks"
	"github.com/quittance/quittance/webhook"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	start  = 1_700_000_000
	secret = "whsec_c2NyZWVuaW5nIHNjcmVlbmluZw"
)

var usdc, shop = invoice.Address{0x70}, invoice.Address{0xaa}

// world is a chain with an invoice that was paid in time, and the service that screens the payer.
type world struct {
	*Worker
	metrics *prometheus.Registry
	t       *testing.T
	store   *db.DB
	seconds atomic.Int64
	blocks  []ledger.Block
	invoice string
	payment string
}

// newWorld returns a world with a hook, or without one if handler is nil.
func newWorld(t *testing.T, store *db.DB, fallback invoice.Screening, handler http.HandlerFunc) *world {
	t.Helper()
	w := &world{t: t, store: store, metrics: prometheus.NewRegistry()}
	w.seconds.Store(start)
	now := func() time.Time { return time.Unix(w.seconds.Load(), 0) }
	settle := ledger.New(ledger.Config{
		Store: store, Chains: []chain.Chain{{Key: "base", ID: 8453, Tokens: []chain.Token{{Currency: "USDC", Address: usdc, Decimals: 6}}}},
		Merchants: known{}, Screens: true, Now: now,
	})
	conf := Config{
		Ledger: settle, Patience: 10 * time.Minute, Fallback: fallback, Schedule: now, Metrics: NewMetrics(w.metrics), Logger: slog.New(slog.DiscardHandler),
	}
	if handler != nil {
		receiver := httptest.NewServer(handler)
		t.Cleanup(receiver.Close)
		client := webhooks.NewClient(webhooks.ClientConfig{Guard: webhooks.NewGuard(webhooks.Loopback())})
		t.Cleanup(client.CloseIdleConnections)
		conf.Hook = &Hook{URL: receiver.URL + "/screen", Secret: secret, Client: client, Now: now}
	}
	w.Worker = New(conf)
	w.blocks = []ledger.Block{{Header: invoice.Header{Number: 100, Hash: sha256.Sum256([]byte("100")), Time: invoice.Unix(start)}}}
	must(t, settle.Start(t.Context(), "base", w.blocks[0].Header, 101))
	inv, err := settle.Create(t.Context(), ledger.CreateRequest{Draft: invoice.Draft{
		MerchantID: "acme", Merchant: shop, Amount: invoice.NewAmount(1_000_000), Currency: "USDC", ChainKey: "base", ExpiresAt: invoice.Unix(start + 900),
	}})
	must(t, err)
	w.invoice = inv.ID
	paying := invoice.Transfer{
		ChainKey: "base", TxHash: sha256.Sum256([]byte("tx")), Token: usdc, Currency: "USDC", From: invoice.Address{0xbb}, To: shop, Amount: invoice.NewAmount(1_000_000),
	}
	w.payment = invoice.TransferID(invoice.PrefixPayment, "base", paying.TxHash, 0)
	w.mine(start+10, paying)
	return w
}

// known knows every merchant.
type known struct{}

func (known) WantsEvents(context.Context, db.Querier, string) (bool, error) { return false, nil }

func (known) Find(context.Context, string) (m invoice.Merchant, ok bool, err error) {
	return m, true, nil
}

func must(t *testing.T, err error) {
	t.Helper()
	expect.OK(t, err)
}

// mine adds a block with the transfers, and makes it final.
func (w *world) mine(at int64, transfers ...invoice.Transfer) {
	w.t.Helper()
	parent := w.blocks[len(w.blocks)-1].Header
	b := ledger.Block{Header: invoice.Header{Number: parent.Number + 1, Parent: parent.Hash, Time: invoice.Unix(at), Hash: sha256.Sum256(fmt.Append(nil, parent.Number+1))}}
	for _, t := range transfers {
		t.Position = invoice.Position{BlockNumber: b.Number, BlockHash: b.Hash, BlockTime: b.Time}
		b.Transfers = append(b.Transfers, t)
	}
	w.blocks = append(w.blocks, b)
	must(w.t, w.conf.Ledger.Observe(w.t.Context(), "base", []ledger.Block{b}))
	_, revision, err := w.conf.Ledger.Pending(w.t.Context(), "base", b.Number)
	must(w.t, err)
	_, err = w.conf.Ledger.Confirm(w.t.Context(), "base", b.Header, revision, 1)
	must(w.t, err)
}

// rounds plays rounds of the worker, with some seconds between them.
func (w *world) rounds(n int, pause int64) {
	w.t.Helper()
	for range n {
		for more := true; more; {
			var err error
			more, err = w.round(w.t.Context())
			must(w.t, err)
		}
		w.seconds.Add(pause)
	}
}

// want checks the payment and the invoice.
func (w *world) want(what string, status invoice.PaymentStatus, s invoice.Screening, reason string, of invoice.Status) {
	w.t.Helper()
	p, err := ledger.NewReader(w.store).Payment(w.t.Context(), w.payment)
	must(w.t, err)
	inv, err := ledger.NewReader(w.store).Invoice(w.t.Context(), w.invoice)
	must(w.t, err)
	if p.Status != status || p.Screening != s || p.ScreeningReason != reason || inv.Status != of {
		w.t.Errorf("%s: the payment is %s, %q, because %q, and the invoice is %s", what, p.Status, p.Screening, p.ScreeningReason, inv.Status)
	}
}

// restart starts the service again.
func (w *world) restart() { w.Worker = New(w.conf) }

// unasked has the hook asked about no payment, as if it were asked about many others.
func (w *world) unasked() {
	w.lease = func(context.Context) ([]ledger.PaymentRow, int64, error) { return nil, 1, nil }
}

// counted returns the sum of a metric, or its value with a label.
func (w *world) counted(name string, label ...string) (sum float64) {
	w.t.Helper()
	families, err := w.metrics.Gather()
	must(w.t, err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && (len(label) == 0 || m.GetLabel()[0].GetValue() == label[0]) {
				sum += m.GetCounter().GetValue()
			}
		}
	}
	return sum
}

// answering returns a hook with an answer.
func answering(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body) // the caller may have gone
	}
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, store *db.DB) {
		var question atomic.Pointer[string]
		w := newWorld(t, store, invoice.ScreeningAccepted, func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err == nil {
				err = webhook.Verify(secret, r.Header.Get(webhook.HeaderSignature), body, time.Unix(start, 0))
			}
			if err != nil || r.Header.Get(webhook.HeaderEvent) != EventType {
				t.Errorf("%v, headers %v", err, r.Header)
			}
			text := string(body)
			question.Store(&text)
			answering(200, `{"verdict":"quarantine","reason":"on list A"}`)(w, r)
		})
		w.want("before", invoice.Held, invoice.ScreeningWaiting, "", invoice.Open)
		w.rounds(1, 1)
		w.want("after", invoice.Held, invoice.ScreeningQuarantined, "on list A", invoice.Open)
		o, err := apiconv.Object([]byte(*question.Load()))
		must(t, err)
		for name, want := range map[string]string{
			"paymentId": w.payment, "invoiceId": w.invoice, "merchantId": "acme", "chainKey": "base", "amount": "1000000", "currency": "USDC",
			"from": chain.Checksum(invoice.Address{0xbb}), "to": chain.Checksum(shop), "txHash": invoice.Hash(sha256.Sum256([]byte("tx"))).String(),
		} {
			if o[name] != want {
				t.Errorf("%s is %v, want %s", name, o[name], want)
			}
		}
		expect.Equal(t, w.counted("quittance_screening_verdicts_total"), 1, "verdicts were counted:")
	})
}

// TestReplicas: two replicas ask about one payment, because the first answer takes longer than the lease. The verdict that
// comes first counts. Of many payments, each has one verdict.
func TestReplicas(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, store *db.DB) {
		asked, release, calls := make(chan struct{}), make(chan struct{}), atomic.Int64{}
		w := newWorld(t, store, invoice.ScreeningAccepted, func(w http.ResponseWriter, r *http.Request) {
			if calls.Add(1) == 1 {
				close(asked)
				<-release
				answering(200, `{"verdict":"accept"}`)(w, r)
				return
			}
			answering(200, `{"verdict":"quarantine"}`)(w, r)
		})
		other, first := New(w.conf), make(chan error)
		go func() {
			_, err := w.round(context.WithoutCancel(t.Context()))
			first <- err
		}()
		<-asked
		w.seconds.Add(11)
		_, err := other.round(t.Context())
		must(t, err)
		close(release)
		must(t, <-first)
		w.want("after two verdicts", invoice.Held, invoice.ScreeningQuarantined, "", invoice.Open)
		const many = 40
		w.many(many)
		var all sync.WaitGroup
		for _, replica := range []*Worker{w.Worker, other} {
			all.Go(func() {
				for waiting := int64(1); waiting > 0; {
					_, err := replica.round(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					_, waiting, err = replica.lease(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					w.seconds.Add(11) // what the line above has leased is due again
				}
			})
		}
		all.Wait()
		if n := w.counted("quittance_screening_verdicts_total", "quarantined"); n != many+1 || w.counted("quittance_screening_verdicts_total") != n {
			t.Errorf("%v verdicts were counted about %d payments", n, many+1)
		}
	})
}

// TestFailingHooks: a hook without a valid answer delays a payment by the patience, and then the mode decides.
func TestFailingHooks(t *testing.T) {
	t.Parallel()
	for name, hook := range map[string]http.HandlerFunc{
		"500":                 answering(500, `{"verdict":"accept"}`),
		"201":                 answering(201, `{"verdict":"accept"}`),
		"redirect":            answering(307, `{"verdict":"accept"}`),
		"no JSON":             answering(200, `accept`),
		"more than an object": answering(200, `{"verdict":"accept"} {}`),
		"twice":               answering(200, `{"verdict":"quarantine","verdict":"accept"}`),
		"other name":          answering(200, `{"Verdict":"accept"}`),
		"other verdict":       answering(200, `{"verdict":"released"}`),
		"no verdict":          answering(200, `{}`),
		"long reason":         answering(200, `{"verdict":"accept","reason":"`+strings.Repeat("é", 201)+`"}`),
		"line in reason":      answering(200, `{"verdict":"accept","reason":"a\nb"}`),
		"order in reason":     answering(200, `{"verdict":"accept","reason":"a\u202eb"}`),
		"number as reason":    answering(200, `{"verdict":"accept","reason":1}`),
		"huge":                answering(200, `{"verdict":"accept"}`+strings.Repeat(" ", MaxAnswer)),
		"cut off": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"verdict":"accept"}`)
			panic(http.ErrAbortHandler)
		},
	} {
		for _, fallback := range []invoice.Screening{invoice.ScreeningAccepted, invoice.ScreeningQuarantined} {
			t.Run(fmt.Sprint(name, " ", fallback), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, dbtest.Open(t, dbtest.Migrated(t)), fallback, hook)
				w.rounds(59, 10) // 590 s
				w.mine(start + 901)
				w.want("within the patience", invoice.Held, invoice.ScreeningWaiting, "", invoice.Open)
				if n := w.counted("quittance_screening_failures_total"); n < 5 || n > 20 {
					t.Errorf("the hook was asked %v times", n)
				}
				w.rounds(7, 11) // it is asked again after a minute
				if fallback == invoice.ScreeningAccepted {
					w.want("after it", invoice.Confirmed, fallback, invoice.ReasonNoAnswer, invoice.Paid)
					return
				}
				w.want("after it", invoice.Held, fallback, invoice.ReasonNoAnswer, invoice.Open)
				w.mine(start + 902)
				w.want("after the invoice's time", invoice.Held, fallback, invoice.ReasonNoAnswer, invoice.Expired)
			})
		}
	}
}

// TestSilentHook: a call ends in time. The patience begins again when the service starts.
func TestSilentHook(t *testing.T) {
	t.Parallel()
	w := newWorld(t, dbtest.Open(t, dbtest.Migrated(t)), invoice.ScreeningQuarantined, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // so that the server notices that the caller goes
		<-r.Context().Done()
	})
	w.seconds.Add(1000)
	w.restart()
	w.rounds(1, 600)
	w.want("after a call", invoice.Held, invoice.ScreeningWaiting, "", invoice.Open)
	w.rounds(1, 1)
	w.want("after the patience and a call", invoice.Held, invoice.ScreeningQuarantined, invoice.ReasonNoAnswer, invoice.Open)
}

// TestSlowHook: a payment whose turn does not come within twice the patience is decided without the hook.
func TestSlowHook(t *testing.T) {
	t.Parallel()
	w := newWorld(t, dbtest.Open(t, dbtest.Migrated(t)), invoice.ScreeningAccepted, answering(200, `{"verdict":"quarantine"}`))
	w.unasked()
	w.seconds.Add(1200)
	w.rounds(1, 0)
	w.want("after twice the patience", invoice.Held, invoice.ScreeningWaiting, "", invoice.Open)
	w.seconds.Add(1)
	w.rounds(1, 0)
	w.want("later", invoice.Confirmed, invoice.ScreeningAccepted, invoice.ReasonNoAnswer, invoice.Paid)
}

// many mines payments without an invoice.
func (w *world) many(n int) {
	w.t.Helper()
	var many []invoice.Transfer
	for i := range n {
		many = append(many, invoice.Transfer{
			ChainKey: "base", TxHash: sha256.Sum256(fmt.Append(nil, "many", i)), Token: usdc, Currency: "USDC", From: invoice.Address{0xbb, byte(i)}, To: shop,
			Amount: invoice.NewAmount(77),
		})
	}
	w.mine(start+11, many...)
}

// TestLongAbsence: what waits while the service or its database is off is asked about, all of it, also if one call
// fails.
func TestLongAbsence(t *testing.T) {
	t.Parallel()
	for _, fallback := range []invoice.Screening{invoice.ScreeningAccepted, invoice.ScreeningQuarantined} {
		for _, down := range []string{"service", "database"} {
			t.Run(fmt.Sprint(fallback, " ", down), func(t *testing.T) {
				t.Parallel()
				var calls atomic.Int64
				w := newWorld(t, dbtest.Open(t, dbtest.Migrated(t)), fallback, func(rw http.ResponseWriter, r *http.Request) {
					if calls.Add(1) == 5 {
						answering(500, "")(rw, r)
						return
					}
					answering(200, `{"verdict":"quarantine","reason":"asked"}`)(rw, r)
				})
				w.many(50)
				w.seconds.Add(3000)
				if down == "service" {
					w.restart()
				} else {
					lease := w.lease
					w.lease = func(context.Context) ([]ledger.PaymentRow, int64, error) { return nil, 0, errors.New("no database") }
					if _, err := w.round(t.Context()); err == nil {
						t.Error("a round succeeded without a database")
					}
					w.lease = lease
				}
				w.rounds(3, 60)
				if all, unasked := w.counted("quittance_screening_verdicts_total"), w.counted("quittance_screening_verdicts_total", noAnswer); all != 51 || unasked != 0 {
					t.Errorf("%v verdicts, of which the mode gave %v", all, unasked)
				}
			})
		}
	}
}

// TestFailingVerdict: a verdict that cannot be recorded delays no other one.
func TestFailingVerdict(t *testing.T) {
	t.Parallel()
	store := dbtest.Open(t, dbtest.Migrated(t))
	w := newWorld(t, store, invoice.ScreeningAccepted, answering(200, `{"verdict":"accept"}`))
	w.many(9)
	must(t, store.Update(t.Context(), func(tx *db.Tx) error {
		_, err := tx.Exec(t.Context(), "UPDATE payments SET screening_since = screening_since - 1 WHERE id = $1", w.payment)
		if err == nil {
			_, err = tx.Exec(t.Context(), "CREATE TRIGGER broken BEFORE UPDATE ON payments WHEN NEW.id = '"+w.payment+"' BEGIN SELECT RAISE(ABORT, 'broken'); END")
		}
		return err
	}))
	w.unasked()
	w.seconds.Add(1201)
	if _, err := w.round(t.Context()); err == nil {
		t.Error("the payment got a verdict")
	}
	expect.Equal(t, w.counted("quittance_screening_verdicts_total", noAnswer), 9, "verdicts:")
}

// TestDownHook: a hook that refuses everything is asked once in a pause, and logged once.
func TestDownHook(t *testing.T) {
	t.Parallel()
	var status atomic.Int64
	status.Store(500)
	w := newWorld(t, dbtest.Open(t, dbtest.Migrated(t)), invoice.ScreeningAccepted, func(rw http.ResponseWriter, r *http.Request) {
		answering(int(status.Load()), `{"verdict":"accept"}`)(rw, r)
	})
	var log strings.Builder
	w.conf.Logger = slog.New(slog.NewTextHandler(&log, nil))
	w.many(50)
	for range 3 {
		if more, err := w.round(t.Context()); more || err != nil {
			t.Errorf("the next round follows at once: %v", err)
		}
	}
	expect.Equal(t, w.counted("quittance_screening_failures_total"), 24, "calls failed:")
	status.Store(200)
	w.rounds(2, 10)
	if failed, again := strings.Count(log.String(), "hook failed"), strings.Count(log.String(), "answers again"); failed != 1 || again != 1 {
		t.Errorf("the log is %s", &log)
	}
}

// TestTurnedOff: what waits when the hook is taken away is accepted.
func TestTurnedOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t, dbtest.Open(t, dbtest.Migrated(t)), "", nil)
	w.rounds(1, 0)
	w.want("without a hook", invoice.Confirmed, invoice.ScreeningAccepted, ReasonTurnedOff, invoice.Paid)
}

// TestStates: the JSON interface has the same words.
func TestStates(t *testing.T) {
	t.Parallel()
	for is, want := range map[invoice.Screening]apitypes.PaymentScreening{
		invoice.ScreeningWaiting: apitypes.ScreeningWaiting, invoice.ScreeningAccepted: apitypes.ScreeningAccepted,
		invoice.ScreeningQuarantined: apitypes.ScreeningQuarantined, invoice.ScreeningReleased: apitypes.ScreeningReleased,
		invoice.ScreeningRejected: apitypes.ScreeningRejected,
	} {
		w := apiconv.Payment(invoice.Payment{Status: invoice.Held, Screening: is, ScreeningReason: "r"}, true)
		if w.Screening != want || w.Status != apitypes.PaymentPending || w.ScreeningReason != "r" {
			t.Errorf("%s: %+v", is, w)
		}
		if w := apiconv.Payment(invoice.Payment{Status: invoice.Held, Screening: is, ScreeningReason: "r"}, false); w.Screening != "" || w.ScreeningReason != "" {
			t.Errorf("%s, in an event: %+v", is, w)
		}
	}
}

// TestHookAddresses: a hook on the public internet is reached by TLS only, and one on a private address not unless it is
// allowed, as webhooks are.
func TestHookAddresses(t *testing.T) {
	t.Parallel()
	errDialed := errors.New("dialed")
	for target, want := range map[string]error{
		"https://8.8.8.8/ask": errDialed, "http://8.8.8.8/ask": webhooks.ErrPlain,
		"https://10.0.0.1/ask": webhooks.ErrForbidden, "http://127.0.0.1/ask": errDialed,
	} {
		hook := Hook{URL: target, Secret: secret, Now: time.Now, Client: webhooks.NewClient(webhooks.ClientConfig{
			Guard: webhooks.NewGuard(webhooks.Loopback()), Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errDialed },
		})}
		expect.Error(t, want, "%s", target)(hook.ask(t.Context(), ledger.PaymentRow{}))
	}
}
