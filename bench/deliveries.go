package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quittance/quittance/internal/webhooks"
	"github.com/quittance/quittance/webhook"
)

const (
	// deliverSecret signs the deliveries.
	deliverSecret = "whsec_YmVuY2ggYmVuY2ggYmVuY2ggYmVuY2ggYmVuY2g="
	// deliverLanes is the number of parallel posts of the bare loop, the same as a worker allows for healthy endpoints.
	deliverLanes = 64
)

// measureDeliveries measures how many events per second are delivered to a local receiver. The baseline is a bare loop
// of signed posts with the same transport, to the same receiver. The first tenth does not count.
func measureDeliveries(ctx context.Context, r *measurement) (err error) {
	n, err := r.holding(ctx, history{})
	if err != nil {
		return err
	}
	in, err := startReceiver(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.server.Close()) }()
	in.await(r.Events)
	if err := bareDeliveries(ctx, in.url, r.Events); err != nil {
		return fmt.Errorf("bare loop: %w", err)
	}
	bare := in.rate()
	url, err := r.newFilled(ctx, fillConfig{Deliveries: r.Events})
	if err != nil {
		return err
	}
	in.await(r.Events)
	endpoint := webhooks.Endpoint{URL: in.url, Secret: deliverSecret}
	s, err := r.startServer(ctx, n, serverConfig{Database: url, Webhook: endpoint})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	err = poll(ctx, "all events are delivered", filledPoll, fillPatience, func(context.Context) (bool, error) {
		return in.done.Load() >= int64(r.Events), nil
	})
	if err != nil {
		return err
	}
	used, err := s.cpuFor(int64(r.Events), 0)
	if err != nil {
		return err
	}
	err = poll(ctx, "all deliveries are recorded", filledPoll, patience, func(ctx context.Context) (bool, error) {
		left, err := query[int](ctx, url, "SELECT count(*) FROM deliveries")
		return left == 0 && err == nil, err
	})
	r.faster(figure{
		What: "deliveries", Unit: "/s", Value: in.rate(), Baseline: bare,
		BaselineIs: fmt.Sprintf("a bare loop of signed posts, %d at a time", deliverLanes),
	})
	r.slower(figure{What: "CPU time of the server for a delivery, its start included", Unit: "µs", Value: used})
	return err
}

// receiver answers every post with 200 and records when it arrived.
type receiver struct {
	url       string
	server    *http.Server
	got, done atomic.Int64
	came      []time.Time // as many as requested
}

func startReceiver(ctx context.Context) (*receiver, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	in := &receiver{url: "http://" + l.Addr().String()}
	in.server = &http.Server{ReadHeaderTimeout: time.Minute, Handler: in}
	go in.server.Serve(l) //nolint:errcheck // it ends with Close
	return in, nil
}

// await starts to wait for a number of posts.
func (in *receiver) await(n int) {
	in.got.Store(0)
	in.done.Store(0)
	in.came = make([]time.Time, n)
}

// ServeHTTP records a post.
func (in *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if _, err := io.Copy(io.Discard, req.Body); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if n := int(in.got.Add(1)); n <= len(in.came) {
		in.came[n-1] = time.Now()
	}
	in.done.Add(1)
}

// rate returns how many posts per second arrived after the first tenth.
func (in *receiver) rate() float64 {
	first, last := len(in.came)/10, len(in.came)-1
	return perSecond(last-first, in.came[last].Sub(in.came[first]))
}

// bareDeliveries posts signed bodies.
func bareDeliveries(ctx context.Context, url string, events int) error {
	client := webhooks.NewClient(webhooks.ClientConfig{Guard: webhooks.NewGuard(webhooks.Loopback())})
	defer client.CloseIdleConnections()
	var left atomic.Int64
	left.Store(int64(events))
	group, ctx := errgroup.WithContext(ctx)
	for range deliverLanes {
		group.Go(func() error {
			for left.Add(-1) >= 0 {
				if err := signedPost(ctx, client, url); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

func signedPost(ctx context.Context, client *http.Client, url string) error {
	ctx, cancel := context.WithTimeout(ctx, webhooks.DefaultTimeout)
	defer cancel()
	body, now := []byte(eventBody), time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(webhook.HeaderSignature, webhook.Sign(deliverSecret, now, body))
	req.Header.Set(webhook.HeaderStandardSignature, webhook.SignStandard([]string{deliverSecret}, "dlv_1", now, body))
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, res.Body)
	return errors.Join(err, res.Body.Close())
}
