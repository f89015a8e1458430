package e2e

import (
	"context"
	"crypto/rand"
	"log/slog"
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
	"github.com/quittance/quittance/internal/test/expect"
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
	t.Cleanup(func() { expect.NoError(t, s.node.Close()) })
	var database string
	if s.proxy, database, err = dbtest.StartProxy(t.Context(), dbtest.MigratedPostgres(t), 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { expect.NoError(t, s.proxy.Close()) })
	listeners, err := server.ListenAll(t.Context(), []server.Address{{Listen: "127.0.0.1:0"}})
	expect.OK(t, err)
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

// opened creates an invoice, and seals blocks until it is open in the registry.
func (s *faultyDatabaseService) opened() {
	s.Helper()
	made, err := s.api.CreateInvoice(s.Context(), apitypes.CreateInvoiceRequest{
		MerchantID: "m", MerchantAddress: devchain.Address(s.node.Keys.Merchant).Hex(),
		Amount: "1000000", Currency: chain.USDC, ChainKey: chain.Local, ExpiresAt: time.Now().Add(time.Hour).Unix(),
	})
	expect.OK(s, err)
	if err := await(within(s, patience), func() bool {
		expect.OK(s, s.node.Seal(s.Context()))
		status, err := s.node.StatusOf(s.Context(), common.HexToHash(made.OnChainInvoiceID))
		return err == nil && status == contracts.StatusOpen
	}); err != nil {
		s.Fatalf("the invoice was not opened:\n%s", s.log.String())
	}
}

// TestExtraStopWithLostDatabase stops a service after its database connections died. It must stop without
// an error within drainLimit.
func TestExtraStopWithLostDatabase(t *testing.T) {
	t.Parallel()
	s := startFaultyDatabase(t)
	s.opened()
	expect.Success(t)(s.proxy.Lose(dbtest.Swallowed))
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
