package server

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/big"
	"net/http"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/devchain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/logtest"
	"github.com/quittance/quittance/internal/store/storetest"
)

// recoveryLimit is how long the service may take to recover from the loss of its
// database connections.
const recoveryLimit = 20 * time.Second

// faultyDatabaseService is a service whose database connections can be lost.
type faultyDatabaseService struct {
	*testing.T
	*running
	node  *devchain.Chain
	proxy *storetest.Proxy
	log   *logtest.Buffer
}

func startFaultyDatabase(t *testing.T) *faultyDatabaseService {
	node, err := devchain.Start(t.Context(), devchain.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := node.Close(); err != nil {
			t.Error(err)
		}
	})
	proxy, database, err := storetest.StartProxy(t.Context(), storetest.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			t.Error(err)
		}
	})
	local, _ := chain.Lookup(chain.Local)
	local.RPC = []string{node.RPCURL()}
	local.Tokens = []chain.Token{{Currency: chain.USDC, Address: invoice.Address(node.Token), Decimals: 6}}
	local.Registry = invoice.Address(node.Registry)
	log := new(logtest.Buffer)
	s := startServer(t, Config{
		Database: database, Merchants: Merchants{AcceptAll: true},
		Chains: []Chain{{Chain: local, OperatorKey: node.Keys.Operator, PollInterval: 100 * time.Millisecond}},
		Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	return &faultyDatabaseService{t, s, node, proxy, log}
}

// create creates an invoice. ok is false if the service is unavailable.
func (s *faultyDatabaseService) create(expires time.Duration) (made apitypes.CreateInvoiceResponse, ok bool) {
	s.Helper()
	a := ask(s.T, http.MethodPost, s.url+"/api/invoices", fmt.Sprintf(
		`{"merchantId": "m", "merchantAddress": %q, "amount": "1000000", "currency": "USDC", "chainKey": %q, "expiresAt": %d}`,
		devchain.Address(s.node.Keys.Merchant).Hex(), chain.Local, time.Now().Add(expires).Unix()))
	if a.status != http.StatusCreated && a.status != http.StatusServiceUnavailable {
		s.Fatalf("create: %d %s", a.status, a.body)
	}
	return made, a.status == http.StatusCreated && json.Unmarshal([]byte(a.body), &made) == nil
}

func (s *faultyDatabaseService) statusOf(made apitypes.CreateInvoiceResponse) string {
	s.Helper()
	a := ask(s.T, http.MethodGet, s.url+"/api/invoices/"+made.ID, "")
	if a.status != http.StatusOK && a.status != http.StatusServiceUnavailable {
		s.Fatalf("get: %d %s", a.status, a.body)
	}
	var got struct{ Invoice struct{ Status string } }
	if err := json.Unmarshal([]byte(a.body), &got); err != nil {
		s.Fatal(err)
	}
	return got.Invoice.Status
}

// awaitAll seals blocks until each condition holds, and returns when each was first
// met, measured from begun.
func (s *faultyDatabaseService) awaitAll(begun time.Time, wanted map[string]func() bool) map[string]time.Duration {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	came := make(map[string]time.Duration)
	for len(came) < len(wanted) {
		if err := s.node.Seal(ctx); err != nil {
			s.Fatal(err)
		}
		for what, there := range wanted {
			if _, already := came[what]; !already && there() {
				came[what] = time.Since(begun).Round(10 * time.Millisecond)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			s.Fatalf("of all that should come only this has: %v\n%s", came, s.log.String())
		}
	}
	return came
}

// TestHalfOpenConnections loses the service's database connections, in both
// ways, without a word to either end. Reading the chain, expiry, the API and
// writing to the registry resume by themselves, soon.
func TestHalfOpenConnections(t *testing.T) {
	t.Parallel()
	for _, how := range []storetest.Loss{storetest.Swallowed, storetest.Dropped} {
		t.Run(string(how), func(t *testing.T) {
			t.Parallel()
			s := startFaultyDatabase(t)
			paid, ok := s.create(24 * time.Hour)
			brief, ok2 := s.create(time.Hour)
			if !ok || !ok2 {
				t.Fatal("it creates nothing")
			}
			opened := func(made apitypes.CreateInvoiceResponse) bool {
				status, err := s.node.StatusOf(t.Context(), common.HexToHash(made.OnChainInvoiceID))
				return err == nil && status == contracts.StatusOpen
			}
			s.awaitAll(time.Now(), map[string]func() bool{"opening": func() bool { return opened(paid) && opened(brief) }})

			n, err := s.proxy.Lose(how)
			if err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			amount, _ := new(big.Int).SetString(paid.Invoice.TransferAmount, 10)
			if _, err := s.node.SendToken(t.Context(), s.node.Keys.Payer, devchain.Address(s.node.Keys.Merchant), amount, nil); err != nil {
				t.Fatal(err)
			}
			if err := s.node.Seal(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := s.node.SealAt(t.Context(), time.Unix(brief.Invoice.ExpiresAt+1, 0)); err != nil {
				t.Fatal(err)
			}
			var late apitypes.CreateInvoiceResponse
			came := s.awaitAll(begun, map[string]func() bool{
				"reading": func() bool { return s.statusOf(paid) == "paid" },
				"expiry":  func() bool { return s.statusOf(brief) == "expired" },
				"writing": func() bool {
					if late.ID == "" {
						late, _ = s.create(24 * time.Hour)
					}
					return late.ID != "" && opened(late)
				},
			})
			t.Logf("%s: %d connections lost; back after %v", how, n, came)
			for what, after := range came {
				if after > recoveryLimit {
					t.Errorf("%s was back after %s; want at most %s\n%s", what, after, recoveryLimit, s.log.String())
				}
			}
		})
	}
}
