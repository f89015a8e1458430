package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/quittance/quittance/webhook"
)

// received is an event as the merchant's receiver verified it.
type received struct {
	webhook.Event
	DeliveryID string
	InvoiceID  string
	Deliveries int // how often it came
}

// receiver is the merchant's webhook endpoint: it verifies each delivery with
// the public webhook package, as a merchant's program would, and keeps each
// event once.
type receiver struct {
	server *http.Server
	url    string

	mu       sync.Mutex
	secret   string
	events   map[string]*received // by event id
	refused  int                  // deliveries whose signature did not hold
	problems []string             // what a delivery had wrong otherwise
	changed  chan struct{}        // closed and replaced with every event
}

func newReceiver() *receiver {
	return &receiver{events: make(map[string]*received), changed: make(chan struct{})}
}

// start listens on a loopback port. Deliveries are refused until trust.
func (r *receiver) start(ctx context.Context) error {
	var listen net.ListenConfig
	l, err := listen.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("start the merchant's receiver: %w", err)
	}
	r.url = "http://" + l.Addr().String() + "/webhooks"
	verifier := webhook.Verifier{Lookup: func(*http.Request) ([]string, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		return []string{r.secret}, nil
	}}
	verified := verifier.Handler(http.HandlerFunc(r.accept))
	r.server = &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			status := &statusWriter{ResponseWriter: w}
			verified.ServeHTTP(status, req)
			if status.code == http.StatusUnauthorized {
				r.mu.Lock()
				r.refused++
				r.mu.Unlock()
			}
		}),
		ReadHeaderTimeout: 5 * time.Second,
	}
	go func() {
		if err := r.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			r.problem("the receiver stopped: %v", err)
		}
	}()
	return nil
}

// trust tells the receiver the secret that signs its merchant's events.
func (r *receiver) trust(secret string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.secret = secret
}

type statusWriter struct {
	http.ResponseWriter
	code int
}

func (w *statusWriter) WriteHeader(code int) {
	w.code = code
	w.ResponseWriter.WriteHeader(code)
}

func (r *receiver) stop(ctx context.Context) error { return r.server.Shutdown(ctx) }

func (r *receiver) problem(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.problems = append(r.problems, fmt.Sprintf(format, args...))
}

// accept takes a delivery whose signature held.
func (r *receiver) accept(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		http.Error(w, "the body broke off", http.StatusBadRequest)
		return
	}
	e, err := webhook.ParseEvent(body)
	if err != nil {
		r.problem("a delivery is no event: %v", err)
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if typ := req.Header.Get(webhook.HeaderEvent); typ != e.Type {
		r.problem("event %s says %s and its header %s", e.ID, e.Type, typ)
	}
	r.keep(e, req.Header.Get(webhook.HeaderDelivery))
	w.WriteHeader(http.StatusNoContent)
}

func (r *receiver) keep(e webhook.Event, deliveryID string) {
	var data struct {
		Invoice struct {
			ID string `json:"id"`
		} `json:"invoice"`
		Payment struct {
			InvoiceID string `json:"invoiceId"`
		} `json:"payment"`
	}
	if err := json.Unmarshal(e.Data, &data); err != nil {
		r.problem("the data of event %s cannot be read: %v", e.ID, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.events[e.ID]; known != nil {
		known.Deliveries++
		if known.DeliveryID != deliveryID {
			r.problems = append(r.problems, "event "+e.ID+" came with two delivery ids")
		}
		return
	}
	r.events[e.ID] = &received{Event: e, DeliveryID: deliveryID, InvoiceID: data.Invoice.ID + data.Payment.InvoiceID, Deliveries: 1}
	close(r.changed)
	r.changed = make(chan struct{})
}

// await waits for an event of the type about the invoice.
func (r *receiver) await(ctx context.Context, typ, invoiceID string) (received, error) {
	for {
		r.mu.Lock()
		changed := r.changed
		for _, e := range r.events {
			if e.Type == typ && e.InvoiceID == invoiceID {
				found := *e
				r.mu.Unlock()
				return found, nil
			}
		}
		r.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return received{}, fmt.Errorf("no %s came for invoice %s", typ, invoiceID)
		}
	}
}

// tally is what came in all.
type tally struct {
	events, refused int
	problems        []string
	byInvoice       map[string]int
}

func (r *receiver) tally() tally {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := tally{events: len(r.events), refused: r.refused, problems: append([]string(nil), r.problems...), byInvoice: make(map[string]int)}
	for _, e := range r.events {
		t.byInvoice[e.InvoiceID]++
	}
	return t
}
