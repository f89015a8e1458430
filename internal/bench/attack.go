package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/clientip"
	"github.com/quittance/quittance/internal/wait"
)

const (
	// guessConnections is how many connections guess keys.
	guessConnections = 64
	// guessedKeys is how many different keys a connection guesses.
	guessedKeys = 500
	// refusalLength is about the length of the body of a refusal.
	refusalLength = 250
	// slowPause is how long a slow client waits before each byte.
	slowPause = time.Second
	// slowSpread is the time in which the slow connections are opened. It equals the
	// service's limit for a header, so that the service closes them evenly.
	slowSpread = 5 * time.Second
)

// attack is the input of the attacker's process.
type attack struct {
	Guessed string   // URL of the service whose keys are guessed; empty for none
	Bare    bool     // guess instead at a bare server in this process, which answers 429
	Slow    []string // addresses of slow connections
	Streams string   // address of a door over HTTPS to which bodies are sent without an end
	Bodies  string   // address of a door where slow bodies hold all connections
}

// attackResult is what the attacker's process prints at its end.
type attackResult struct {
	Guesses  map[int]int // by status
	Duration time.Duration
	// Opened and Closed are how many slow connections were opened, and how many of them
	// the server closed.
	Opened, Closed int64
	// Streams is how many requests over HTTP/2 were begun.
	Streams int64
}

// add adds the result of another turn.
func (r *attackResult) add(other attackResult) {
	if r.Guesses == nil {
		r.Guesses = make(map[int]int)
	}
	for status, n := range other.Guesses {
		r.Guesses[status] += n
	}
	r.Duration += other.Duration
	r.Opened += other.Opened
	r.Closed += other.Closed
	r.Streams += other.Streams
}

// String returns the note of a row.
func (r *attackResult) String() string {
	if r.Streams > 0 {
		return fmt.Sprintf("%d requests on %d connections, of which the server closed %d", r.Streams, r.Opened, r.Closed)
	}
	if r.Opened > 0 {
		return fmt.Sprintf("a byte of the header each %v; opened %d, of which the server closed %d", slowPause, r.Opened, r.Closed)
	}
	total := 0
	for _, n := range r.Guesses {
		total += n
	}
	refused, limited := r.Guesses[http.StatusUnauthorized], r.Guesses[http.StatusTooManyRequests]
	return fmt.Sprintf("reached %.0f/s: %d answered 401, %d 429, %d else", float64(total)/r.Duration.Seconds(), refused, limited, total-refused-limited)
}

// attacker is a running attack.
type attacker struct{ *process }

// startAttack starts an attack, and returns when all its connections are open.
func startAttack(ctx context.Context, a attack) (*attacker, error) {
	p, _, err := startProcess(ctx, "attacker", a)
	if err != nil {
		return nil, err
	}
	return &attacker{p}, nil
}

// finish ends the attack and returns its result.
func (a *attacker) finish() (r attackResult, err error) {
	err = a.stdin.Close()
	line, err2 := a.lines.ReadBytes('\n')
	if err := errors.Join(err, err2, a.cmd.Wait()); err != nil {
		return attackResult{}, err
	}
	return r, json.Unmarshal(line, &r)
}

// serveAttack guesses keys and holds slow connections until its standard input ends.
func serveAttack(ctx context.Context, text string) error {
	var a attack
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if a.Bare {
		url, stop, err := serveRefusals(ctx)
		if err != nil {
			return err
		}
		defer stop() //nolint:errcheck // the process ends
		a.Guessed = url
	}
	r := attackRun{errs: make(chan error, guessConnections)}
	if a.Guessed != "" {
		r.guess(ctx, strings.TrimPrefix(a.Guessed, "http://"))
	}
	for _, address := range a.Slow {
		r.holdSlowly(ctx, address)
	}
	if a.Streams != "" {
		r.flood(ctx, a.Streams)
	}
	if a.Bodies != "" {
		r.holdBodies(ctx, a.Bodies)
	}
	r.ready.Wait()
	began := time.Now()
	fmt.Println("ready")
	_, err := io.Copy(io.Discard, os.Stdin)
	r.result.Duration = time.Since(began)
	stop()
	r.group.Wait()
	close(r.errs)
	for e := range r.errs {
		err = errors.Join(err, e)
	}
	r.result.Opened, r.result.Closed, r.result.Streams = r.opened.Load(), r.closed.Load(), r.streams.Load()
	return errors.Join(err, json.NewEncoder(os.Stdout).Encode(r.result))
}

// attackRun is an attack in progress.
type attackRun struct {
	ready          sync.WaitGroup // of connections
	group          sync.WaitGroup
	errs           chan error
	opened, closed atomic.Int64 // slow connections
	streams        atomic.Int64

	mu     sync.Mutex
	result attackResult // guarded by mu until group has ended
}

// guess starts guessConnections connections that guess keys.
func (r *attackRun) guess(ctx context.Context, address string) {
	for range guessConnections {
		r.ready.Add(1)
		r.group.Go(func() {
			guesses, err := guess(ctx, address, sync.OnceFunc(r.ready.Done))
			r.mu.Lock()
			defer r.mu.Unlock()
			r.result.add(attackResult{Guesses: guesses})
			r.errs <- err
		})
	}
}

// holdSlowly starts slowPerDoor slow connections.
func (r *attackRun) holdSlowly(ctx context.Context, address string) {
	for i := range slowPerDoor {
		r.ready.Add(1)
		r.group.Go(func() {
			wait.Sleep(ctx, time.Duration(i)*slowSpread/slowPerDoor, nil)
			holdSlowly(ctx, address, sync.OnceFunc(r.ready.Done), &r.opened, &r.closed)
		})
	}
}

// serveRefusals answers all requests 429 with a body of a problem's length.
func serveRefusals(ctx context.Context) (url string, stop func() error, err error) {
	var listen net.ListenConfig
	l, err := listen.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	s := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, strings.Repeat(" ", refusalLength)) // the client is this process
	})}
	go s.Serve(l) //nolint:errcheck // it ends with Close
	return "http://" + l.Addr().String(), s.Close, nil
}

// dialAttack connects from the attacker's address.
func dialAttack(ctx context.Context, address string) (net.Conn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(attackerAddress)}}
	return d.DialContext(ctx, "tcp", address)
}

// guess guesses keys on one connection at its share of guessRate until ctx ends, and
// returns the answers by status. It calls ready when it is connected or has failed.
func guess(ctx context.Context, address string, ready func()) (answers map[int]int, err error) {
	defer ready()
	requests := make([][]byte, guessedKeys)
	for i := range requests {
		key, err := access.NewKey(access.Live, rand.Reader)
		if err != nil {
			return nil, err
		}
		requests[i] = fmt.Appendf(nil, "GET /api/invoices/inv_x HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n%s: 203.0.113.7\r\n\r\n",
			key.Reveal(), clientip.XForwardedFor)
	}
	conn, err := dialAttack(ctx, address)
	ready()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	answers = make(map[int]int)
	reader := bufio.NewReader(conn)
	for began, n := time.Now(), 0; ; n++ {
		due := began.Add(time.Duration(n) * time.Second * guessConnections / guessRate)
		select {
		case <-time.After(time.Until(due)):
		case <-ctx.Done():
			return answers, nil
		}
		if _, err := conn.Write(requests[n%len(requests)]); err != nil {
			return answers, err
		}
		status, err := readAnswer(reader)
		if err != nil {
			return answers, err
		}
		answers[status]++
	}
}

// readAnswer reads a response and returns its status. It is cheaper than net/http's
// reader, because the attacker takes CPU time from the server.
func readAnswer(r *bufio.Reader) (status int, err error) {
	length := 0
	for first := true; ; first = false {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		text := string(line)
		switch {
		case first:
			if _, err := fmt.Sscanf(text, "HTTP/1.1 %d", &status); err != nil {
				return 0, fmt.Errorf("%q: %w", text, err)
			}
		case strings.HasPrefix(text, "Content-Length: "):
			if _, err := fmt.Sscanf(text, "Content-Length: %d", &length); err != nil {
				return 0, fmt.Errorf("%q: %w", text, err)
			}
		case text == "\r\n":
			_, err := r.Discard(length)
			return status, err
		}
	}
}

// holdSlowly holds a connection on which the header of a request comes byte by byte, and
// opens another when the server closes it, until ctx ends. It calls ready when the first
// one is open.
func holdSlowly(ctx context.Context, address string, ready func(), opened, closed *atomic.Int64) {
	tick := time.NewTicker(slowPause)
	defer tick.Stop()
	for ctx.Err() == nil {
		conn, err := dialAttack(ctx, address)
		ready()
		if err != nil {
			<-tick.C
			continue
		}
		opened.Add(1)
		if !sendSlowly(ctx, conn, tick.C) {
			closed.Add(1)
		}
		_ = conn.Close()
	}
}

// sendSlowly sends a byte of a header at each tick. It reports false when the server
// closes the connection before ctx ends.
func sendSlowly(ctx context.Context, conn net.Conn, tick <-chan time.Time) bool {
	header := "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: " + strings.Repeat("a", 1<<10)
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, conn) // it ends when either side closes the connection
		close(ended)
	}()
	for i := range len(header) {
		if _, err := io.WriteString(conn, header[i:i+1]); err != nil {
			return false
		}
		select {
		case <-tick:
		case <-ended:
			return false
		case <-ctx.Done():
			return true
		}
	}
	return true
}
