package dev

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/config"
	"github.com/quittance/quittance/internal/dev/devchain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/server"
	"github.com/quittance/quittance/internal/web/api"
	"github.com/quittance/quittance/internal/web/dashboard"
	"github.com/quittance/quittance/internal/webhooks"
)

// ChainKey is the key of the embedded chain.
const ChainKey = "local"

// preferredRPCPort is the JSON-RPC port of the first run, where wallets and tools expect a local chain. Later runs try
// the port of the previous one.
const preferredRPCPort = 8545

// Limits of the time between blocks.
const (
	MinBlockTime = 50 * time.Millisecond
	MaxBlockTime = 10 * time.Minute
)

// Config is the configuration of a world. Only Program, RPCListen and WebhookURL are optional.
type Config struct {
	Program    string        // how the user calls the program, for the commands on the page; empty: quittance
	Dir        string        // folder of the database, the chain and the secrets; created if missing
	Listen     string        // of the API; a loopback address
	RPCListen  string        // of the chain; a loopback address; empty: the port of the last run, else 8545, else a free one
	BlockTime  time.Duration // see devchain.Config
	WebhookURL string        // receives the events; empty: no events are delivered
	NoGasless  bool          // the service does not send payers' authorizations
	// Player returns the player of scenarios in the world; nil without scenarios.
	Player func(Info) dashboard.Player
	Build  server.Build     // of the program; zero if unknown
	Now    func() time.Time // real time
	Rand   io.Reader
	Logger *slog.Logger
}

// Check returns an error for the first invalid field.
func (c Config) Check() error {
	if err := config.CheckLoopback(c.Listen); err != nil {
		return fmt.Errorf("--listen %w", err)
	}
	if c.RPCListen != "" {
		if err := config.CheckLoopback(c.RPCListen); err != nil {
			return fmt.Errorf("--rpc-listen %w", err)
		}
	}
	if c.WebhookURL != "" {
		if err := config.CheckWebhookURL(c.WebhookURL); err != nil {
			return fmt.Errorf("--webhook-url %w", err)
		}
	}
	if c.BlockTime < MinBlockTime || c.BlockTime > MaxBlockTime {
		return fmt.Errorf("--block-time is %s; want %s to %s", c.BlockTime, MinBlockTime, MaxBlockTime)
	}
	return nil
}

// World is a running development world.
type World struct {
	Info  Info
	Guide Guide
	Clock ClockInfo // when the world was ready
	Node  *devchain.Chain
}

// Run runs a world until ctx ends, and then stops it in an orderly way. It calls ready once when the world is ready;
// ready must not block.
func Run(ctx context.Context, cfg Config, ready func(*World)) (err error) {
	if err := cfg.Check(); err != nil {
		return err
	}
	listener, err := server.Listen(ctx, server.Address{Listen: cfg.Listen})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, listener.Close()) }()
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return fmt.Errorf("make the world's folder: %w", err)
	}
	kept, err := loadState(cfg.Dir, cfg.Rand)
	if err != nil {
		return err
	}
	masterKey, err := loadMasterKey(cfg.Dir, cfg.Rand)
	if err != nil {
		return err
	}
	clock := newWorldClock(cfg.Dir, kept, cfg.Now)
	node, err := startChain(ctx, cfg, clock.now, kept.RPCPort)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	if kept, err = cfg.prepare(ctx, clock, node, kept); err != nil {
		return err
	}
	local, err := localChain(node)
	if err != nil {
		return err
	}
	info := newInfo("http://"+listener.Addr().String(), kept, local, node)
	guide := newGuide(info, cfg)
	routes := landing{guide, clock}.routes()
	maps.Copy(routes, (&control{clock, node, info}).routes())
	routes["GET "+infoPath] = info
	endpoint := webhooks.Endpoint{URL: cfg.WebhookURL, Secret: kept.MerchantSecret}
	var player dashboard.Player
	if cfg.Player != nil {
		player = cfg.Player(info)
	}
	return server.Run(ctx, server.Config{
		Listeners: []*server.Listener{listener}, Database: cfg.database(),
		Chains:    []server.Chain{{Chain: local, OperatorKey: node.Keys.Operator, Gasless: cfg.gasless()}},
		Merchants: server.Merchants{AcceptAll: true, Fallback: endpoint},
		Providers: []api.Provider{provider(kept.ProviderSecret)},
		Access:    server.Access{Mode: access.Test, Open: true}, AllowListDelay: config.DefaultAllowListDelay,
		Keyring: access.NewKeyring(masterKey), KeepEvents: config.DefaultRetention, KeepAttempts: config.DefaultRetention,
		TestWallet: func(ctx context.Context, inv invoice.Invoice) (string, error) {
			return payFromTestWallet(ctx, node, inv)
		},
		WebhookAllow: webhooks.Loopback(), SMTP: mailLog{cfg.Logger},
		Now: clock.now, TestClock: clock.forServer(), Rand: cfg.Rand, Logger: cfg.Logger,
		Routes: routes, Build: cfg.Build, Player: player,
		Ready: func(string) { ready(&World{Info: info, Guide: guide, Clock: clock.info(), Node: node}) },
	})
}

// database returns the URL of the world's database.
func (c Config) database() string { return "sqlite:" + filepath.Join(c.Dir, "quittance.db") }

// prepare makes the world's merchant, and stores its key and the port of the chain's JSON-RPC. It returns the new state.
func (c Config) prepare(ctx context.Context, clock *worldClock, node *devchain.Chain, kept state) (state, error) {
	addr, err := net.ResolveTCPAddr("tcp", trimScheme(node.RPCURL()))
	if err != nil {
		return kept, err
	}
	key, err := c.prepareMerchant(ctx, clock.now, invoice.Address(devchain.Address(node.Keys.Merchant)), kept.MerchantKey)
	if err != nil {
		return kept, err
	}
	return clock.keep(addr.Port, key)
}

// gasless returns the budget of authorizations, or nil if authorizations are not sent.
func (c Config) gasless() *ledger.AuthorizationBudget {
	if c.NoGasless {
		return nil
	}
	return new(ledger.AuthorizationBudget(config.DefaultGasless()))
}

// localChain returns the service's configuration of the embedded chain.
func localChain(node *devchain.Chain) (chain.Chain, error) {
	c, ok := chain.Lookup(ChainKey)
	if !ok {
		return chain.Chain{}, fmt.Errorf("the chain %s is not built in", ChainKey)
	}
	c.RPC = []string{node.RPCURL()}
	c.Tokens = []chain.Token{{Currency: chain.USDC, Address: invoice.Address(node.Token), Decimals: 6}}
	c.Registry = invoice.Address(node.Registry)
	c.DepositFactory = invoice.Address(node.DepositFactory)
	c.AuthorizationRelay = invoice.Address(node.AuthorizationRelay)
	return c, nil
}

// provider returns the transfer provider of the world. It maps the embedded chain too.
func provider(secret string) api.Provider {
	chains := chain.CircleChains()
	chains["LOCAL"], chains[ChainKey] = ChainKey, ChainKey
	return api.Provider{Name: ProviderName, Secret: secret, Chains: chains, Currencies: config.CircleCurrencies()}
}

// payFromTestWallet pays an invoice from the payer's account by a plain transfer, with the invoice's tag in the
// calldata. It transfers the transfer amount or, to a deposit address, the amount.
func payFromTestWallet(ctx context.Context, node *devchain.Chain, inv invoice.Invoice) (string, error) {
	amount := inv.TransferAmount
	if amount.IsZero() {
		amount = inv.Amount
	}
	word := amount.Bytes()
	hash, err := node.SendToken(ctx, node.Keys.Payer, common.Address(inv.PayTo()), new(big.Int).SetBytes(word[:]), inv.CommitmentID[:])
	return hash.Hex(), err
}

// startChain starts the chain with JSON-RPC at RPCListen. If that is empty, it uses the
// port of the last run, so that configured wallets keep working, or a free port if
// that one is in use.
func startChain(ctx context.Context, cfg Config, now func() time.Time, port int) (*devchain.Chain, error) {
	conf := devchain.Config{
		DataDir: filepath.Join(cfg.Dir, "chain"), BlockTime: cfg.BlockTime,
		RPCAddr: net.JoinHostPort("127.0.0.1", strconv.Itoa(cmp.Or(port, preferredRPCPort))),
		Logger:  cfg.Logger, Now: now, Rand: cfg.Rand,
	}
	if cfg.RPCListen != "" {
		addr, err := net.ResolveTCPAddr("tcp", cfg.RPCListen) // the node needs an IP address, not localhost
		if err != nil {
			return nil, fmt.Errorf("--rpc-listen: %w", err)
		}
		conf.RPCAddr = addr.String()
		return devchain.Start(ctx, conf)
	}
	node, err := devchain.Start(ctx, conf)
	var taken *net.OpError
	if errors.As(err, &taken) && taken.Op == "listen" {
		conf.RPCAddr = "" // a free port
		node, err = devchain.Start(ctx, conf)
	}
	return node, err
}

func trimScheme(url string) string { return url[len("http://"):] }
