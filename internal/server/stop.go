package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
)

// drainTimeout is how long stop waits for requests in flight. Each ends within
// api.RequestTimeout.
const drainTimeout = 20 * time.Second

// stop stops the HTTP server without losing a request. ctx has ended.
//
// First /readyz reports that the service is not ready, so that load balancers stop
// sending requests, and each response announces that its connection closes. Closing
// idle connections at once could reset a request that is on its way. After StopDelay
// the listeners are closed, event streams end, and the requests in flight are answered. http.Server.Shutdown
// comes last, because it closes idle connections at once.
func (s *Server) stop(ctx context.Context, entrances []*entrance) error {
	s.cfg.Logger.Info("stopping")
	s.stopping.Store(true)
	var closing errgroup.Group
	for _, e := range entrances {
		closing.Go(func() error {
			if s.cfg.StopDelay <= 0 {
				return e.listener.Close()
			}
			e.listener.wait(s.cfg.StopDelay)
			return e.listener.finish()
		})
	}
	err := closing.Wait()
	s.endLong()
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	for _, e := range entrances {
		e.conns.awaitIdle(drain.Done())
		if err := e.http.Shutdown(drain); err != nil {
			return errors.Join(fmt.Errorf("requests in flight were cut off: %w", err), closeServers(entrances))
		}
	}
	return err
}

// closeServers closes all connections of the entrances.
func closeServers(entrances []*entrance) (err error) {
	for _, e := range entrances {
		err = errors.Join(err, e.http.Close())
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

// runWorker returns a function that runs a worker. After ctx has ended, it logs the worker's error and
// returns nil: the error concerns leases that were not released, which expire.
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
