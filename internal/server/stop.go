package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// drainTimeout is how long stop waits for requests in flight. Each ends within
// api.RequestTimeout.
const drainTimeout = 20 * time.Second

// stop stops the HTTP server without losing a request. ctx has ended.
//
// First /readyz reports that the service is not ready, so that load balancers stop
// sending requests, and each response announces that its connection closes. Closing
// idle connections at once could reset a request that is on its way. After StopDelay
// the listener is closed and the requests in flight are answered. http.Server.Shutdown
// comes last, because it closes idle connections at once.
func (s *Server) stop(ctx context.Context, h *http.Server, conns *connections) error {
	s.cfg.Logger.Info("stopping")
	s.stopping.Store(true)
	var err error
	if s.cfg.StopDelay > 0 {
		s.cfg.Listener.wait(s.cfg.StopDelay)
		err = s.cfg.Listener.finish()
	} else {
		err = s.cfg.Listener.Close()
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	conns.awaitIdle(drain.Done())
	if err := h.Shutdown(drain); err != nil {
		return errors.Join(fmt.Errorf("requests in flight were cut off: %w", err), h.Close())
	}
	return err
}

// closeWhenStopping returns a handler that closes each connection after its response
// once the service stops.
func (s *Server) closeWhenStopping(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.stopping.Load() {
			w.Header().Set("Connection", "close")
		}
		h.ServeHTTP(w, r)
	})
}

// runWorker returns a function that runs a worker. It logs an error that the worker
// returns after ctx has ended, and returns nil then: it concerns leases that were not
// released, which expire.
func (s *Server) runWorker(ctx context.Context, run func(context.Context) error) func() error {
	return func() error {
		err := run(ctx)
		if err != nil && ctx.Err() != nil {
			s.cfg.Logger.Warn("release of leases failed, they will expire", "err", err)
			return nil //nolint:nilerr // it was logged, and the leases expire
		}
		return err
	}
}
