package chain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/rpc"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/quittance/quittance/internal/tracing"
)

// Limits of requests to a node and of its answers.
const (
	// CallTimeout is how long one call may take, from dialing to the last byte of the answer.
	CallTimeout = 10 * time.Second
	// MaxResponse is the size of the largest accepted answer, in bytes.
	MaxResponse = 32 << 20
	// maxErrorText is how much of a node's error text is shown, in bytes.
	maxErrorText = 300
)

// Errors of a Client's calls, in addition to errors of the network and the node.
var (
	// ErrNotFound: the node lacks the requested block, receipt or transaction.
	ErrNotFound = errors.New("the node does not have it")
	// ErrUnsupported: the node does not offer the method.
	ErrUnsupported = errors.New("the node does not offer this method")
	// ErrResponseTooLarge: the answer is longer than the client's MaxAnswer.
	ErrResponseTooLarge = errors.New("the node's answer is longer than is read, which maxAnswerMiB can raise")
	// ErrTimeout: the node took longer than the client's Timeout. If the caller's context ended first, the context's
	// error is returned.
	ErrTimeout = errors.New("the node did not answer in time")
	// ErrContradiction: the node's answer contradicts the request or another of its answers.
	ErrContradiction = errors.New("the node contradicts itself")
	// ErrRedirected: the node answered with a redirect. It is not followed,
	// because it would send the URL's access key to an unknown host.
	ErrRedirected = errors.New("the node's address redirects, and redirects are not followed; configure the address that it leads to")
)

// Client calls one node over JSON-RPC. The node may be down when the service starts. It is safe for concurrent use.
type Client struct {
	conf     ClientConfig
	name     string
	redactor *strings.Replacer // in the URL

	onRequest      func(class Class, calls int, took time.Duration, err error) // set by the pool; nil without one
	limits         nodeLimits
	pace           *pace               // set by the pool; nil without one
	leadingZeros   atomic.Bool         // an answer contained a number with leading zeros
	onLeadingZeros func(method string) // called once, the first time; nil without a pool

	http   *http.Transport
	rpc    *rpc.Client
	closed atomic.Bool

	reading, readingForRequests atomic.Int64 // bytes of the answers in flight

	mu       sync.Mutex
	inFlight map[*exchange]time.Time // start of each request in progress
}

// ClientConfig configures a Client. URL is required.
type ClientConfig struct {
	URL       string        // of scheme http or https
	Timeout   time.Duration // for each call; 0 means CallTimeout
	MaxAnswer int64         // for each answer, in bytes; 0 means MaxResponse
	Dial      DialFunc      // connects to the node; nil means over the network
	NodeSettings
}

// NewClient returns a client that is not connected yet. It fails if the URL has another scheme or no host.
func NewClient(conf ClientConfig) (*Client, error) {
	u, err := url.Parse(conf.URL)
	if err != nil {
		return nil, fmt.Errorf("RPC URL cannot be read: %w", sanitize(err))
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("RPC URL has the scheme %q; want http or https", u.Scheme)
	}
	if u.Host == "" {
		return nil, errors.New("RPC URL names no host")
	}
	conf.Timeout, conf.MaxAnswer = cmp.Or(conf.Timeout, CallTimeout), cmp.Or(conf.MaxAnswer, MaxResponse)
	c := &Client{
		conf: conf, name: u.Scheme + "://" + u.Host, redactor: redactorOf(u, conf.Headers),
		http: newHTTPTransport(u.Hostname(), conf.Dial), inFlight: map[*exchange]time.Time{},
		limits: nodeLimits{settings: conf.NodeSettings, now: time.Now, all: map[Kind]*Limit{}},
	}
	if c.rpc, err = rpc.DialOptions(context.Background(), conf.URL, c.options()...); err != nil { // it connects with each call
		return nil, sanitize(err)
	}
	return c, nil
}

// String returns the scheme and host of the client's URL. The rest may contain an access key and is never shown.
func (c *Client) String() string { return c.name }

// Close closes the connections. Later calls fail.
func (c *Client) Close() {
	c.closed.Store(true)
	c.http.CloseIdleConnections()
}

// call makes one call and decodes its answer into result. A JSON null sets a pointer that result points to to nil.
func (c *Client) call(ctx context.Context, result any, method string, args ...any) error {
	elems := []*rpc.BatchElem{{Method: method, Args: args, Result: result}}
	_, _, err := c.request(ctx, elems, nil)
	return err
}

// Limit returns the limit of requests of a kind to the node.
func (c *Client) Limit(kind Kind) *Limit { return c.limits.of(kind) }

// batch makes calls, in as few requests as the node accepts. It fails if one of them fails; each call's error is in its
// element. isNull reports whether the result of an element is null although it should not be; a nil isNull accepts any
// result.
//
// If a batch fails, for any reason, it is repeated in smaller ones, down to single calls without a list. Answered calls
// are not repeated. A batch has failed if all its answers are null; if only one answer is null, that call is repeated
// as a single call. A timeout, and a node that asks for a pause, end the batch immediately, and the next one is
// smaller.
func (c *Client) batch(ctx context.Context, kind Kind, elems []rpc.BatchElem, isNull func(rpc.BatchElem) bool) error {
	limit := c.Limit(kind)
	rest := make([]*rpc.BatchElem, len(elems))
	for i := range elems {
		rest[i] = &elems[i]
	}
	var alone []*rpc.BatchElem
	for len(rest) > 0 {
		n := min(len(rest), int(limit.Next()), c.pace.most())
		failed, null, err := c.request(ctx, rest[:n], isNull)
		switch few := n <= 2; { // a new transaction has neither receipt nor input
		case n == 1 && err != nil:
			return err
		case err == nil && (few || len(null) < n):
			limit.Answered(uint64(n))
			if n > 1 {
				alone = append(alone, null...)
			}
		default:
			limit.Refused(uint64(n))
			failed = append(failed, null...)
		}
		if err != nil && (ctx.Err() != nil || errors.Is(err, ErrTimeout) || classify(err).retryAfter > 0) {
			return err
		}
		rest = append(failed, rest[n:]...)
	}
	for i := range alone {
		if _, _, err := c.request(ctx, alone[i:i+1], nil); err != nil {
			return err
		}
	}
	return nil
}

// request makes calls in one request. It returns the calls that failed, with their errors in the elements, and the
// calls with an unexpected null result.
func (c *Client) request(
	ctx context.Context, elems []*rpc.BatchElem, isNull func(rpc.BatchElem) bool,
) (failed, null []*rpc.BatchElem, err error) {
	sent := make([]rpc.BatchElem, len(elems))
	for i, elem := range elems {
		sent[i] = *elem
		sent[i].Error = errUnanswered
	}
	single := len(sent) == 1
	defer func() { c.noteLeadingZeros(sent) }()
	err = c.do(ctx, sent, &exchange{batch: !single}, func(ctx context.Context, client *rpc.Client) error {
		if single {
			sent[0].Error = client.CallContext(ctx, sent[0].Result, sent[0].Method, sent[0].Args...)
		} else if err := client.BatchCallContext(ctx, sent); err != nil {
			return err
		}
		return firstError(sent)
	})
	for i, elem := range elems {
		if elem.Error = sent[i].Error; elem.Error != nil {
			failed = append(failed, elem)
		} else if isNull != nil && isNull(*elem) {
			null = append(null, elem)
		}
	}
	return failed, null, err
}

// noteLeadingZeros records that a number in an answer had leading zeros.
func (c *Client) noteLeadingZeros(elems []rpc.BatchElem) {
	for _, elem := range elems {
		if elem.Error == nil && hasLeadingZeros(elem.Result) && c.leadingZeros.CompareAndSwap(false, true) && c.onLeadingZeros != nil {
			c.onLeadingZeros(elem.Method)
		}
	}
}

// hasLeadingZeros reports whether a number in a result, or in a list of results, had leading zeros.
func hasLeadingZeros(result any) bool {
	v := reflect.ValueOf(result)
	for ; v.Kind() == reflect.Pointer && !v.IsNil(); v = v.Elem() {
		if number, ok := v.Interface().(interface{ HasLeadingZeros() bool }); ok {
			return number.HasLeadingZeros()
		}
	}
	for i := 0; v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Pointer && i < v.Len(); i++ {
		if hasLeadingZeros(v.Index(i).Interface()) {
			return true
		}
	}
	return false
}

// errUnanswered is the error of each call in a batch that got no answer.
var errUnanswered = errors.New("the batch with this call was not answered")

// firstError returns the error of the first call that failed, or nil.
func firstError(elems []rpc.BatchElem) error {
	for _, elem := range elems {
		if elem.Error != nil {
			return elem.Error
		}
	}
	return nil
}

// do sends one request with the calls of elems, within the timeout. It returns a *callError.
func (c *Client) do(ctx context.Context, elems []rpc.BatchElem, x *exchange, send func(context.Context, *rpc.Client) error) error {
	if err := c.pace.admit(ctx, len(elems)); err != nil {
		return c.wrapError(elems, 0, err)
	}
	ctx, span := tracing.StartChild(ctx, elems[0].Method, trace.SpanKindClient)
	began := time.Now()
	if x.reading, x.most = &c.reading, maxAnswers*c.conf.MaxAnswer; classOf(ctx) == ClassRequest {
		x.reading, x.most = &c.readingForRequests, c.conf.MaxAnswer
	}
	c.begin(x, began)
	defer c.end(ctx, x)
	limited, cancel := context.WithTimeout(context.WithValue(ctx, exchangeKey{}, x), c.conf.Timeout)
	defer cancel()
	err := rpc.ErrClientQuit
	if !c.closed.Load() {
		err = send(limited, c.rpc)
	}
	if err == nil && limited.Err() != nil {
		// The answer was not complete in time, although the needed part of it arrived.
		err = limited.Err()
	}
	if err != nil {
		awaitDeadline(limited, err)
		if limited.Err() != nil && ctx.Err() == nil {
			err = ErrTimeout
		}
		err = c.wrapError(elems, x.retryAfter, err)
		c.notePace(ctx, elems, err)
	}
	if c.onRequest != nil && ctx.Err() == nil {
		c.onRequest(classOf(ctx), len(elems), time.Since(began), err)
	}
	if span.IsRecording() {
		span.SetAttributes(attribute.String("rpc.system", "jsonrpc"), attribute.String("rpc.method", elems[0].Method),
			attribute.Int("quittance.rpc.calls", len(elems)), attribute.String("quittance.node", c.name))
	}
	tracing.End(span, err)
	return err
}

// notePace slows the node's pace after it failed to answer a call that cannot be divided. Calls on behalf of requests
// never slow it. Neither does a broadcast, which nodes refuse and lose for other reasons, unless the node reports that
// the rate was too high. Transactions are few, so if the rate is too high, other calls fail as well.
func (c *Client) notePace(ctx context.Context, elems []rpc.BatchElem, err error) {
	lost := elems[0].Method == broadcast && !classify(err).rateLimited()
	if len(elems) == 1 && !lost && !asksRange(elems[0]) && !mayLack(elems[0]) && isNodeFailure(err) && classOf(ctx) != ClassRequest && !isOfSimulation(ctx, err) {
		c.pace.refused()
	}
}

// awaitDeadline waits for the end of ctx if a connection reported a timeout just before ctx's deadline, so that ctx.Err
// shows which context expired.
func awaitDeadline(ctx context.Context, err error) {
	const early = 20 * time.Millisecond
	var timeout net.Error
	if at, ok := ctx.Deadline(); ok && errors.As(err, &timeout) && timeout.Timeout() && time.Until(at) < early {
		<-ctx.Done()
	}
}

// wrapError returns a request's error with the client's name and the method of the failed call, without access keys.
func (c *Client) wrapError(elems []rpc.BatchElem, retryAfter time.Duration, err error) error {
	method := elems[0].Method
	for _, elem := range elems {
		if elem.Error != nil {
			method = elem.Method
			break
		}
	}
	return (&callError{node: c.name, method: method, redactor: c.redactor, retryAfter: retryAfter, err: sanitize(err)}).withSentinel()
}

type onRequestDoneKey struct{}

// OnRequestDone returns a context in which done is called after every request to a node, whatever its outcome.
func OnRequestDone(ctx context.Context, done func()) context.Context {
	return context.WithValue(ctx, onRequestDoneKey{}, done)
}

// begin records the start of a request.
func (c *Client) begin(x *exchange, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inFlight[x] = at
}

// end records the end of a request.
func (c *Client) end(ctx context.Context, x *exchange) {
	c.mu.Lock()
	delete(c.inFlight, x)
	c.mu.Unlock()
	x.reading.Add(-x.read)
	if done, ok := ctx.Value(onRequestDoneKey{}).(func()); ok {
		done()
	}
}

// OldestRequest returns the age of the oldest request in flight, or 0.
func (c *Client) OldestRequest() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	var longest time.Duration
	for _, began := range c.inFlight {
		longest = max(longest, time.Since(began))
	}
	return longest
}
