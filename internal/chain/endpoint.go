package chain

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/rpc"
)

// Limits of what is asked of a node, and of what it may answer.
const (
	// CallTimeout is how long one call may take, from dialling to the last
	// byte of the answer.
	CallTimeout = 10 * time.Second
	// MaxResponse is the size of the largest answer that is read, in bytes.
	MaxResponse = 32 << 20
	// MaxBatch is how many calls go out in one JSON-RPC batch.
	MaxBatch = 100
	// maxErrorBody is how much of an answer with an HTTP error is kept, in
	// bytes.
	maxErrorBody = 300
)

// Errors of an Endpoint's calls, beside those of the network and the node.
var (
	// ErrNotFound: the node does not have what it was asked for, such as a
	// block beyond its head or a receipt that a reorg removed.
	ErrNotFound = errors.New("the node does not have it")
	// ErrNoSubscription: the endpoint's transport cannot push; use polling.
	ErrNoSubscription = errors.New("the endpoint has no subscriptions; give a ws:// or wss:// URL to have them")
	// ErrResponseTooLarge: the answer is longer than MaxResponse.
	ErrResponseTooLarge = fmt.Errorf("the node's answer is longer than %d bytes", MaxResponse)
)

// Endpoint asks one node over JSON-RPC. It connects at the first call, and
// again when the connection was lost, so a node may be down when the service
// starts. It is safe for concurrent use.
type Endpoint struct {
	url  string
	name string

	// Observe, when set, is told of every call that was made: a method, or
	// the method of a batch's calls once for each of them.
	Observe func(method string, took time.Duration, err error)

	mu     sync.Mutex
	client *rpc.Client
	http   *http.Transport
	closed bool
}

// NewEndpoint returns the endpoint at an http, https, ws or wss URL. It does
// not connect yet.
func NewEndpoint(rawURL string) (*Endpoint, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, fmt.Errorf("RPC URL cannot be read: %w", presentable(err))
	}
	switch u.Scheme {
	case "http", "https", "ws", "wss":
	default:
		return nil, fmt.Errorf("RPC URL has the scheme %q; want http, https, ws or wss", u.Scheme)
	}
	if u.Host == "" {
		return nil, errors.New("RPC URL names no host")
	}
	return &Endpoint{
		url: rawURL, name: u.Scheme + "://" + u.Host,
		http: http.DefaultTransport.(*http.Transport).Clone(),
	}, nil
}

// String names the endpoint by scheme and host. The rest of its URL often
// holds an access key, and is never shown.
func (e *Endpoint) String() string { return e.name }

// Close ends the endpoint's connection. Calls fail from then on.
func (e *Endpoint) Close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	if e.client != nil {
		e.client.Close()
	}
	e.http.CloseIdleConnections()
}

// connect returns the client of the node, dialling it if there is none.
func (e *Endpoint) connect(ctx context.Context) (*rpc.Client, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, rpc.ErrClientQuit
	}
	if e.client == nil {
		ctx, cancel := context.WithTimeout(ctx, CallTimeout)
		defer cancel()
		c, err := rpc.DialOptions(ctx, e.url,
			rpc.WithHTTPClient(&http.Client{Transport: limitedTransport{e.http, MaxResponse}}),
			rpc.WithWebsocketMessageSizeLimit(MaxResponse),
		)
		if err != nil {
			return nil, err
		}
		e.client = c
	}
	return e.client, nil
}

// call makes one call and decodes its answer into result. A JSON null sets a
// pointer that result points to to nil.
func (e *Endpoint) call(ctx context.Context, result any, method string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	began := time.Now()
	client, err := e.connect(ctx)
	if err == nil {
		err = client.CallContext(ctx, result, method, args...)
	}
	return e.done(method, 1, began, err)
}

// batch makes the same call for each argument list. Answers and errors are
// those of the elements.
func (e *Endpoint) batch(ctx context.Context, elems []rpc.BatchElem) error {
	for len(elems) > 0 {
		n := min(len(elems), MaxBatch)
		if err := e.batchOnce(ctx, elems[:n]); err != nil {
			return err
		}
		elems = elems[n:]
	}
	return nil
}

func (e *Endpoint) batchOnce(ctx context.Context, elems []rpc.BatchElem) error {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	began := time.Now()
	client, err := e.connect(ctx)
	if err == nil {
		err = client.BatchCallContext(ctx, elems)
	}
	for i := 0; err == nil && i < len(elems); i++ {
		err = elems[i].Error
	}
	return e.done(elems[0].Method, len(elems), began, err)
}

// done names the endpoint and the method in a call's error, and reports the
// call to Observe.
func (e *Endpoint) done(method string, calls int, began time.Time, err error) error {
	if err != nil {
		err = fmt.Errorf("%s: %s: %w", e.name, method, presentable(err))
	}
	if e.Observe != nil {
		took := time.Since(began)
		for range calls {
			e.Observe(method, took, err)
		}
	}
	return err
}

// presentable makes an error fit for logs: without the URL, which may hold an
// access key, and without a long page that came with an HTTP status.
func presentable(err error) error {
	var withURL *url.Error
	if errors.As(err, &withURL) {
		return withURL.Err
	}
	var withBody rpc.HTTPError
	if errors.As(err, &withBody) && len(withBody.Body) > maxErrorBody {
		withBody.Body = append(withBody.Body[:maxErrorBody:maxErrorBody], "…"...)
		return withBody
	}
	return err
}
