package devchain

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/rpc"
)

// Limits of JSON-RPC, equal to geth's.
const (
	maxBatch         = 1000       // requests
	maxBatchResponse = 25_000_000 // bytes
)

// portTimeout bounds how long closing the port waits for requests that are being answered.
const portTimeout = 5 * time.Second

// rpcPort serves JSON-RPC over HTTP at one port. It can be closed and reopened.
type rpcPort struct {
	addr    string // IP address and port
	methods http.Handler
	logger  *slog.Logger

	mu     sync.Mutex
	server *http.Server // nil while the port is closed
	served sync.WaitGroup
}

// newRPCServer returns a JSON-RPC server with methods by their prefix.
func newRPCServer(apis map[string]any) (*rpc.Server, error) {
	server := rpc.NewServer()
	server.SetBatchLimits(maxBatch, maxBatchResponse)
	for prefix, api := range apis {
		if err := server.RegisterName(prefix, api); err != nil {
			return nil, fmt.Errorf("register the methods of %s: %w", prefix, err)
		}
	}
	return server, nil
}

// listen opens a TCP port. Errors about the address say what to change.
func listen(ctx context.Context, addr string) (net.Listener, error) {
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("RPC address %q: %w; want IP:PORT", addr, err)
	}
	if _, err := strconv.ParseUint(text, 10, 16); err != nil || net.ParseIP(host) == nil {
		return nil, fmt.Errorf("RPC address %q: want an IP address and a port, such as 127.0.0.1:8545", addr)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("RPC address %s cannot be used: %w; stop what listens there or choose another", addr, err)
	}
	return listener, nil
}

// serve answers requests from a listener, which it closes when it fails and when the port is closed.
func (p *rpcPort) serve(listener net.Listener) {
	limits := rpc.DefaultHTTPTimeouts
	server := &http.Server{
		Handler:           portHandler(p.methods),
		ReadTimeout:       limits.ReadTimeout,
		ReadHeaderTimeout: limits.ReadHeaderTimeout,
		WriteTimeout:      limits.WriteTimeout,
		IdleTimeout:       limits.IdleTimeout,
		ErrorLog:          slog.NewLogLogger(p.logger.Handler(), slog.LevelDebug),
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.server = server
	p.served.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			p.logger.Error("development chain: JSON-RPC has stopped", "err", err)
		}
	})
}

// close closes the port with its connections. Closing a closed port does nothing.
func (p *rpcPort) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.server == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), portTimeout)
	defer cancel()
	err := p.server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = p.server.Close()
	}
	p.served.Wait()
	p.server = nil
	return err
}

// portHandler serves JSON-RPC at the path /.
func portHandler(methods http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/":
			http.NotFound(w, r)
		case !isLocalName(r.Host):
			http.Error(w, "invalid host specified", http.StatusForbidden)
		default:
			methods.ServeHTTP(w, r)
		}
	})
}

// isLocalName reports whether the Host header of a request is localhost or an IP address. A page of another site that
// resolves its own name to this machine sends its own name.
func isLocalName(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host // it has no port
	}
	return name == "" || strings.EqualFold(name, "localhost") || net.ParseIP(strings.Trim(name, "[]")) != nil
}
