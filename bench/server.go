package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/server"
	"github.com/quittance/quittance/internal/webhooks"
)

const (
	serverRole = "server"
	// patience bounds the wait for a quick step of the server.
	patience = time.Minute
	// statusPoll is the interval at which the server's status is read.
	statusPoll = 5 * time.Millisecond
)

// serverConfig is the input of the server process.
type serverConfig struct {
	Database   string
	RPC        string
	Token      invoice.Address
	Registry   invoice.Address
	StartBlock *uint64
	Webhook    webhooks.Endpoint // without a URL no events are delivered
	// PollInterval is the wait between two looks at the chain; 0 means indexer.DefaultPollInterval.
	PollInterval time.Duration
}

// serve runs the server of a measurement until its standard input ends.
func serve(ctx context.Context, text string) (err error) {
	var c serverConfig
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadByte() // waits for the end
		stop()
	}()
	defer server.KeepHeap()()
	local, _ := chain.Lookup(chain.Local)
	local.RPC = []string{c.RPC}
	local.Tokens = []chain.Token{{Currency: chain.USDC, Address: c.Token, Decimals: 6}}
	local.Registry, local.StartBlock = c.Registry, c.StartBlock
	listeners, err := server.ListenAll(ctx, []server.Address{{Listen: "127.0.0.1:0"}})
	if err != nil {
		return err
	}
	return server.Run(ctx, server.Config{
		Listeners: listeners, Database: c.Database, Chains: []server.Chain{{Chain: local, PollInterval: c.PollInterval}},
		Merchants: server.Merchants{AcceptAll: true, Fallback: c.Webhook}, WebhookAllow: webhooks.Loopback(),
		Access: server.Access{Mode: access.Live, OperatorKey: operatorKey()},
		Now:    time.Now, Rand: rand.Reader,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
		Ready:  func(url string) { fmt.Println(url) }, // the parent reads it
	})
}

// operatorKey returns the key of the measured servers, which listen on the loopback interface.
func operatorKey() access.Key {
	key, err := access.NewKey(access.Live, bytes.NewReader(make([]byte, access.KeyLength)))
	if err != nil {
		panic(err) // the reader has enough bytes
	}
	return key
}

// service is a running server, and the node that it reads.
type service struct {
	*process
	url      string
	database string
	node     *node
	client   *http.Client
}

// startServer starts a server that reads a node, unless the configuration contains another address for it.
func (r *measurement) startServer(ctx context.Context, n *node, c serverConfig) (*service, error) {
	c.Token = n.Token
	if c.RPC == "" {
		c.RPC = n.HTTP
	}
	p, url, err := startProcess(ctx, r.program, serverRole, c)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients, MaxConnsPerHost: clients}}
	return &service{p, url, c.Database, n, client}, nil
}

func (s *service) stop() error {
	s.client.CloseIdleConnections()
	return s.process.stop()
}

// get requests a path, decodes the answer and returns how long it took.
func (s *service) get(ctx context.Context, path string, into any) (time.Duration, error) {
	began := time.Now()
	text, err := s.request(ctx, http.MethodGet, path, nil, http.StatusOK)
	took := time.Since(began)
	if err != nil {
		return took, err
	}
	return took, json.Unmarshal(text, into)
}

// request makes a request of the operator, and fails unless the answer has a status.
func (s *service) request(ctx context.Context, method, path string, body []byte, want int) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+operatorKey().Reveal())
	res, err := s.client.Do(req)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(res.Body)
	if err := errors.Join(err, res.Body.Close()); err != nil {
		return nil, err
	}
	if res.StatusCode != want {
		return nil, fmt.Errorf("%s %s: status %d: %.500s", method, path, res.StatusCode, text)
	}
	return text, nil
}

// poll repeats a query until it is done, and fails after a time.
func poll(ctx context.Context, what string, every, most time.Duration, done func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for {
		ok, err := done(ctx)
		if ok {
			return nil
		}
		if err != nil || !clock.Sleep(ctx, every, nil) {
			return fmt.Errorf("wait until %s: %w", what, errors.Join(err, ctx.Err()))
		}
	}
}

// waitCaughtUp waits until the server has read the node's newest block.
func (s *service) waitCaughtUp(ctx context.Context) error {
	return poll(ctx, "all blocks are read", statusPoll, patience, func(ctx context.Context) (bool, error) {
		var status struct{ Chains []struct{ Indexed uint64 } }
		_, err := s.get(ctx, "/status", &status)
		return err == nil && len(status.Chains) == 1 && status.Chains[0].Indexed >= s.node.Newest.Number, err
	})
}
