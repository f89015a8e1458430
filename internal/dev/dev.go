// Package dev runs a whole development world in one process: the service on
// SQLite, an embedded EVM chain with a token and a registry, a merchant and a
// rich payer. Everything in it is real but the value of the money.
package dev

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/internal/api"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/config"
	"github.com/quittance/quittance/internal/devchain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/keyring"
	"github.com/quittance/quittance/internal/poster"
	"github.com/quittance/quittance/internal/server"
)

// ChainKey is the key of the embedded chain.
const ChainKey = "local"

// preferredRPCPort is tried on the first run: wallets and tools expect a local
// chain there. A later run tries the port of the one before.
const preferredRPCPort = 8545

// Limits of the time between blocks.
const (
	MinBlockTime = 50 * time.Millisecond
	MaxBlockTime = 10 * time.Minute
)

// Config says what world to run. All members but RPCListen and WebhookURL are
// required.
type Config struct {
	Dir        string        // holds the database, the chain and the secrets; made when missing
	Listen     string        // of the API; a loopback address
	RPCListen  string        // of the chain; a loopback address; empty for the port of the last run, else 8545, else a free one
	BlockTime  time.Duration // see devchain.Config
	WebhookURL string        // where events go; empty for nowhere
	Now        func() time.Time
	Rand       io.Reader
	Logger     *slog.Logger
}

// Check returns an error that names the first setting that is wrong.
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
	Info Info
	Node *devchain.Chain
}

// Run runs a world until the context ends and then ends it in order. ready is
// called once when the world can be used; it must not block.
func Run(ctx context.Context, cfg Config, ready func(*World)) (err error) {
	if err := cfg.Check(); err != nil {
		return err
	}
	listener, err := server.Listen(ctx, cfg.Listen)
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
	node, err := startChain(ctx, cfg, kept.RPCPort)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	if err := keepPort(cfg.Dir, kept, node); err != nil {
		return err
	}
	local, err := localChain(node)
	if err != nil {
		return err
	}
	info := newInfo("http://"+listener.Addr().String(), kept, local, node)
	endpoint := poster.Endpoint{URL: cfg.WebhookURL, Secret: kept.MerchantSecret}
	return server.Run(ctx, server.Config{
		Listener: listener, Database: "sqlite:" + filepath.Join(cfg.Dir, "quittance.db"),
		Chains:    []server.Chain{{Chain: local, OperatorKey: node.Keys.Operator}},
		Merchants: server.Merchants{AcceptAll: true, Fallback: endpoint},
		Providers: []api.Provider{provider(kept.ProviderSecret)},
		Keyring:   keyring.New(masterKey), KeepEvents: config.DefaultRetention, KeepAttempts: config.DefaultRetention,
		TestWallet: func(ctx context.Context, inv invoice.Invoice) (string, error) {
			return payFromTestWallet(ctx, node, inv)
		},
		WebhookAllow: poster.Loopback(),
		Now:          cfg.Now, Rand: cfg.Rand, Logger: cfg.Logger,
		Routes: map[string]http.Handler{"GET " + infoPath: info},
		Ready:  func(string) { ready(&World{Info: info, Node: node}) },
	})
}

// localChain is the embedded chain as the service is configured with it.
func localChain(node *devchain.Chain) (chain.Chain, error) {
	c, ok := chain.Lookup(ChainKey)
	if !ok {
		return chain.Chain{}, fmt.Errorf("the chain %s is not built in", ChainKey)
	}
	c.RPC = []string{node.WSURL()}
	c.Tokens = []chain.Token{{Currency: chain.USDC, Address: invoice.Address(node.Token), Decimals: 6}}
	c.Registry = invoice.Address(node.Registry)
	return c, nil
}

// provider is the transfer provider of the world. It knows the embedded chain
// beside those of the built-in mapping.
func provider(secret string) api.Provider {
	chains := config.CircleChains()
	chains["LOCAL"], chains[ChainKey] = ChainKey, ChainKey
	return api.Provider{Name: ProviderName, Secret: secret, Chains: chains, Currencies: config.CircleCurrencies()}
}

// payFromTestWallet pays an invoice as the world's payer: a plain transfer of
// the transfer amount whose calldata names the invoice too.
func payFromTestWallet(ctx context.Context, node *devchain.Chain, inv invoice.Invoice) (string, error) {
	amount := inv.TransferAmount
	if amount.IsZero() {
		amount = inv.Amount
	}
	word := amount.Bytes()
	hash, err := node.SendToken(ctx, node.Keys.Payer, common.Address(inv.Merchant), new(big.Int).SetBytes(word[:]), inv.CommitmentID[:])
	return hash.Hex(), err
}

// startChain starts the chain with its JSON-RPC where the configuration says.
// When it does not, that is at the port of the last run, so that what people
// configured stays good, or at another when that is taken.
func startChain(ctx context.Context, cfg Config, port int) (*devchain.Chain, error) {
	conf := devchain.Config{
		DataDir: filepath.Join(cfg.Dir, "chain"), BlockTime: cfg.BlockTime,
		RPCAddr: net.JoinHostPort("127.0.0.1", strconv.Itoa(cmp.Or(port, preferredRPCPort))),
		Logger:  cfg.Logger, Now: cfg.Now, Rand: cfg.Rand,
	}
	if cfg.RPCListen != "" {
		addr, err := net.ResolveTCPAddr("tcp", cfg.RPCListen) // the node wants an IP address, not localhost
		if err != nil {
			return nil, fmt.Errorf("--rpc-listen: %w", err)
		}
		conf.RPCAddr = addr.String()
		return devchain.Start(ctx, conf)
	}
	node, err := devchain.Start(ctx, conf)
	// Only trying tells: a port that is free now may be taken a moment later.
	var taken *net.OpError
	if errors.As(err, &taken) && taken.Op == "listen" {
		conf.RPCAddr = "" // any that is free
		node, err = devchain.Start(ctx, conf)
	}
	return node, err
}

// keepPort remembers where the chain's JSON-RPC listens.
func keepPort(dir string, kept state, node *devchain.Chain) error {
	addr, err := net.ResolveTCPAddr("tcp", trimScheme(node.RPCURL()))
	if err != nil || addr.Port == kept.RPCPort {
		return err
	}
	kept.RPCPort = addr.Port
	return kept.save(dir)
}

func trimScheme(url string) string { return url[len("http://"):] }
