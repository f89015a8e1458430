package e2e

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"math/big"
	"net/http"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/dev/devchain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/server"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/logtest"
)

// drainLimit is the time within which the service must stop without its database.
const drainLimit = 20 * time.Second

// faultyDatabaseService is a service in this process with database connections that a test can cut.
type faultyDatabaseService struct {
	*testing.T
	api   *client.Client
	stop  context.CancelFunc
	ended chan error // what server.Run returned
	node  *devchain.Chain
	proxy *dbtest.Proxy
	log   *logtest.Buffer
}

func startFaultyDatabase(t *testing.T) *faultyDatabaseService {
	s := &faultyDatabaseService{T: t, ended: make(chan error, 1), log: new(logtest.Buffer)}
	var err error
	if s.node, err = devchain.Start(t.Context(), devchain.Config{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.node.Close(); err != nil {
			t.Error(err)
		}
	})
	var database string
	if s.proxy, database, err = dbtest.StartProxy(t.Context(), dbtest.MigratedPostgres(t), 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.proxy.Close(); err != nil {
			t.Error(err)
		}
	})
	listeners, err := server.ListenAll(t.Context(), []server.Address{{Listen: "127.0.0.1:0"}})
	if err != nil {
		t.Fatal(err)
	}
	ready := make(chan string, 1)
	ctx, stop := context.WithCancel(t.Context())
	s.stop = stop
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		s.ended <- server.Run(ctx, server.Config{
			Listeners: listeners, Database: database, Merchants: server.Merchants{AcceptAll: true},
			Access: server.Access{Mode: access.Test, Open: true},
			Chains: []server.Chain{{Chain: s.chain(), OperatorKey: s.node.Keys.Operator, PollInterval: 100 * time.Millisecond}},
			Now:    time.Now, Rand: rand.Reader, Logger: slog.New(slog.NewTextHandler(s.log, nil)),
			Ready: func(url string) { ready <- url },
		})
	}()
	t.Cleanup(func() {
		stop()
		<-stopped
	})
	select {
	case url := <-ready:
		s.api = client.Must(client.New(url, client.WithRetries(0)))
	case err := <-s.ended:
		t.Fatalf("it ended: %v", err)
	}
	return s
}

func (s *faultyDatabaseService) chain() chain.Chain {
	local, _ := chain.Lookup(chain.Local)
	local.RPC = []string{s.node.RPCURL()}
	local.Tokens = []chain.Token{{Currency: chain.USDC, Address: invoice.Address(s.node.Token), Decimals: 6}}
	local.Registry = invoice.Address(s.node.Registry)
	return local
}

// create creates an invoice. ok is false if the service is unavailable.
func (s *faultyDatabaseService) create(expires time.Duration) (made apitypes.CreateInvoiceResponse, ok bool) {
	s.Helper()
	made, err := s.api.CreateInvoice(s.Context(), apitypes.CreateInvoiceRequest{
		MerchantID: "m", MerchantAddress: devchain.Address(s.node.Keys.Merchant).Hex(),
		Amount: "1000000", Currency: chain.USDC, ChainKey: chain.Local, ExpiresAt: time.Now().Add(expires).Unix(),
	})
	return made, s.answered(err)
}

// answered reports whether the service answered. It fails the test on any error other than
// unavailability.
func (s *faultyDatabaseService) answered(err error) bool {
	s.Helper()
	var refused *client.Error
	if err != nil && (!errors.As(err, &refused) || refused.Status != http.StatusServiceUnavailable) {
		s.Fatal(err)
	}
	return err == nil
}

// statusOf returns an invoice's status, or "" if the service is unavailable.
func (s *faultyDatabaseService) statusOf(made apitypes.CreateInvoiceResponse) apitypes.InvoiceStatus {
	s.Helper()
	inv, err := s.api.Invoice(s.Context(), made.ID)
	s.answered(err)
	return inv.Status
}

// opened reports whether the invoice is open in the registry.
func (s *faultyDatabaseService) opened(made apitypes.CreateInvoiceResponse) bool {
	status, err := s.node.StatusOf(s.Context(), common.HexToHash(made.OnChainInvoiceID))
	return err == nil && status == contracts.StatusOpen
}

// awaitAll seals blocks until each condition holds, and returns for each the time since
// begun at which it first held.
func (s *faultyDatabaseService) awaitAll(begun time.Time, wanted map[string]func() bool) map[string]time.Duration {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
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

// TestExtraHalfOpenConnections cuts the service's database connections in both ways, without an
// error at either end. Indexing, expiry, the API and registry writes must resume without help. The log has the times.
func TestExtraHalfOpenConnections(t *testing.T) {
	t.Parallel()
	for _, how := range []dbtest.Loss{dbtest.Swallowed, dbtest.Dropped} {
		t.Run(string(how), func(t *testing.T) {
			t.Parallel()
			s := startFaultyDatabase(t)
			paid, ok := s.create(24 * time.Hour)
			brief, ok2 := s.create(time.Hour)
			if !ok || !ok2 {
				t.Fatal("it creates nothing")
			}
			s.awaitAll(time.Now(), map[string]func() bool{"opening": func() bool { return s.opened(paid) && s.opened(brief) }})

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
					return late.ID != "" && s.opened(late)
				},
			})
			t.Logf("%s: %d connections lost; back after %v", how, n, came)
		})
	}
}

// TestExtraStopWithLostDatabase stops a service after its database connections died. It must stop without
// an error within drainLimit.
func TestExtraStopWithLostDatabase(t *testing.T) {
	t.Parallel()
	s := startFaultyDatabase(t)
	made, ok := s.create(time.Hour)
	if !ok {
		t.Fatal("it creates nothing")
	}
	s.awaitAll(time.Now(), map[string]func() bool{"opening": func() bool { return s.opened(made) }})
	if _, err := s.proxy.Lose(dbtest.Swallowed); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	s.stop()
	if err := <-s.ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
	t.Logf("it took %s to stop", time.Since(begun).Round(10*time.Millisecond))
	if took := time.Since(begun); took > drainLimit {
		t.Errorf("it took %s to stop; want at most %s", took, drainLimit)
	}
}
