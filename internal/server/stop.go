package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// drainTimeout is how long stop waits for requests in progress. Each waits for
// the database for at most api.RequestTimeout.
const drainTimeout = 20 * time.Second

// stop ends the HTTP server so that no request is lost once ctx has ended.
//
// First the service calls itself not ready, so that a load balancer sends its
// requests elsewhere, and closes each connection after its next answer, which
// tells its client so. A connection that is idle is closed only after that: on
// one that is in use a request could be under way to us meanwhile, and would be
// reset. Then no further connections are taken, and what is under way is
// answered. Only then net/http is told, since it answers nothing from then on.
func (s *Server) stop(ctx context.Context, h *http.Server, conns *connections) error {
	s.Logger.Info("stopping")
	s.stopping.Store(true)
	var err error
	if s.StopDelay > 0 {
		s.Listener.wait(s.StopDelay)
		err = s.Listener.finish()
	} else {
		err = s.Listener.Close()
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	conns.quiet(drain.Done())
	if err := h.Shutdown(drain); err != nil {
		return errors.Join(fmt.Errorf("requests under way were cut off: %w", err), h.Close())
	}
	return err
}

// unlessStopping returns a handler that tells clients not to use their
// connections again once the service stops.
func (s *Server) unlessStopping(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.stopping.Load() {
			w.Header().Set("Connection", "close")
		}
		h.ServeHTTP(w, r)
	})
}

// atStop returns a worker's error unless it is about what the worker could not
// give back when it was told to stop: clients have their answers all the same,
// and leases end by themselves.
func (s *Server) atStop(ctx context.Context, run func(context.Context) error) func() error {
	return func() error {
		err := run(ctx)
		if err != nil && ctx.Err() != nil {
			s.Logger.Warn("not all leases were given back, they will end by themselves", "err", err)
			return nil //nolint:nilerr // it was logged, and changes nothing for clients
		}
		return err
	}
}
