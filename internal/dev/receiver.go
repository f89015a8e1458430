package dev

import (
	"cmp"
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

// received is an event with a verified signature.
type received struct {
	webhook.Event
	DeliveryID string
	InvoiceID  string
	TxHash     string // of the payment or the refund
	Deliveries int    // number of deliveries
}

// receiver is the merchant's webhook endpoint. It verifies each delivery with the public
// webhook package, as a merchant's program does, and stores each event once.
type receiver struct {
	server *http.Server
	url    string

	mu       sync.Mutex
	secret   string
	events   map[string]*received // by event id
	refused  int                  // deliveries with an invalid signature
	problems []string             // other defects of deliveries
	changed  chan struct{}        // closed and replaced at every event
}

func newReceiver() *receiver {
	return &receiver{events: make(map[string]*received), changed: make(chan struct{})}
}

// start listens on a loopback port. Deliveries are rejected until setSecret is called.
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

// setSecret sets the secret that verifies deliveries.
func (r *receiver) setSecret(secret string) {
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

// accept stores a delivery with a valid signature.
func (r *receiver) accept(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		http.Error(w, "incomplete body", http.StatusBadRequest)
		return
	}
	e, err := webhook.ParseEvent(body)
	if err != nil {
		r.problem("body of a delivery is not an event: %v", err)
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
			TxHash    string `json:"txHash"`
		} `json:"payment"`
		Refund struct {
			TxHash string `json:"txHash"`
		} `json:"refund"`
	}
	if err := json.Unmarshal(e.Data, &data); err != nil {
		r.problem("the data of event %s cannot be read: %v", e.ID, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.events[e.ID]; known != nil {
		known.Deliveries++
		if known.DeliveryID != deliveryID {
			r.problems = append(r.problems, "event "+e.ID+" has two delivery ids")
		}
		return
	}
	r.events[e.ID] = &received{
		Event: e, DeliveryID: deliveryID, InvoiceID: data.Invoice.ID + data.Payment.InvoiceID,
		TxHash: cmp.Or(data.Refund.TxHash, data.Payment.TxHash), Deliveries: 1,
	}
	close(r.changed)
	r.changed = make(chan struct{})
}

// await waits for an event of the type about the invoice or the transaction.
func (r *receiver) await(ctx context.Context, typ, about string) (received, error) {
	for {
		r.mu.Lock()
		changed := r.changed
		for _, e := range r.events {
			if e.Type == typ && (e.InvoiceID == about || e.TxHash == about) {
				found := *e
				r.mu.Unlock()
				return found, nil
			}
		}
		r.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return received{}, fmt.Errorf("no %s about %s", typ, about)
		}
	}
}

// summary sums up the deliveries.
type summary struct {
	events, refused int
	problems        []string
	byInvoice       map[string]int
}

func (r *receiver) summary() summary {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := summary{events: len(r.events), refused: r.refused, problems: append([]string(nil), r.problems...), byInvoice: make(map[string]int)}
	for _, e := range r.events {
		t.byInvoice[e.InvoiceID]++
	}
	return t
}
