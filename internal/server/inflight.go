package server

import (
	"errors"
	"net/http"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/web/webpage"
)

// refusalTime is how long a client may take to send the rest of a request that its door refuses, and
// then to read the answer.
const refusalTime = time.Second

// maxInFlight bounds the requests of a door that are served at a time.
var maxInFlight = map[webpage.Door]int64{webpage.PublicDoor: 512, webpage.APIDoor: 1024, webpage.OperatorDoor: 32}

// capped returns a handler that limits the requests of a door that are served at a time, and the
// memory of their bodies. There is a limit for all together, and a share for each owner of keys or
// client network. Beyond a share it answers 429, and beyond the whole 503.
//
// A request counts as in flight once its body was read, so that slow clients do not keep others out.
// Long requests do not: the API and the pages bound them.
func (l *requestLimits) capped(rt webpage.Route, writeError errorWriter) http.Handler {
	inFlight := l.inFlight[rt.Door]
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		own, networks := l.claims(r)
		done, err := l.readAhead(w, r, rt, append(networks, own...))
		if err != nil {
			l.refuse(w, r, bare, l.bodies[rt.Door].Name(), err)
			return
		}
		defer done()
		if rt.Long != nil && rt.Long(r) {
			rt.Handler.ServeHTTP(w, r)
			return
		}
		if len(own) == 0 {
			own = networks
		}
		if err := inFlight.Take(1, own...); err != nil {
			l.refuse(w, r, writeError, inFlight.Name(), err)
			return
		}
		defer inFlight.Give(1, own...)
		rt.Handler.ServeHTTP(w, r)
	})
}

// entered returns a handler that limits the requests at an address to the number of connections that it may have. Long
// requests and requests without a route count as well. Over HTTP/2 a connection has many. The answer beyond the limit
// has no body, so it costs little and does not wait for its reader.
//
// A body that no handler reads has bodyGrace to arrive: over HTTP/1 net/http reads it before it writes the answer.
func (l *requestLimits) entered(requests *limits.Shares[sharer], next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		networks := l.networks(limits.FromContext(r.Context()))
		if err := requests.Take(1, networks...); err != nil {
			l.refuse(w, r, bare, requests.Name(), err)
			return
		}
		defer requests.Give(1, networks...)
		conn := connectionFrom(r.Context())
		conn.work(1)
		defer conn.work(-1)
		if r.ProtoMajor == 1 && r.Body != http.NoBody {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyGrace)) // recorders of tests have none
		}
		next.ServeHTTP(w, r)
	})
}

// bare is an errorWriter that writes only the status and Retry-After.
func bare(w http.ResponseWriter, _ *http.Request, err error) {
	status, after := http.StatusServiceUnavailable, "1"
	if exceeded := (*limits.ExceededError)(nil); errors.As(err, &exceeded) {
		status, after = http.StatusTooManyRequests, exceeded.RetryAfter
	}
	w.Header().Set("Retry-After", after)
	w.Header().Set("Content-Length", "0")
	w.WriteHeader(status)
}

// refuse answers a request that a limit refuses.
func (l *requestLimits) refuse(w http.ResponseWriter, r *http.Request, writeError errorWriter, limit string, err error) {
	if errors.Is(err, limits.ErrBusy) {
		limit = "all_" + limit
	}
	l.metrics.refused.WithLabelValues(limit).Inc()
	// net/http reads the rest of the body, and then writes. A client that is slow at either must not delay
	// the handler. The recorders of tests have no deadlines.
	now, control := time.Now(), http.NewResponseController(w)
	_, _ = control.SetReadDeadline(now.Add(refusalTime)), control.SetWriteDeadline(now.Add(2*refusalTime))
	writeError(w, r, err)
}

// claims returns the clients for which a request counts at its door: its owner of keys, if it has one,
// and the client's networks.
func (l *requestLimits) claims(r *http.Request) (own, networks []limits.Claim[sharer]) {
	networks = l.networks(limits.FromContext(r.Context()))
	if p := access.FromContext(r.Context()); p.KeyID != "" || p.MerchantID != "" {
		own = []limits.Claim[sharer]{{Client: sharer{owner: ownerOf(p)}, Weight: 1}}
	}
	return own, networks
}

// inShare returns a handler for requests that share the connections to the database. Requests at the
// operator's door ask for the service's health and have a separate share.
func inShare(door webpage.Door, next http.Handler) http.Handler {
	reads := map[webpage.Door]db.ConnShare{webpage.PublicDoor: db.PayerReads, webpage.APIDoor: db.MerchantReads}[door]
	if reads == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		share := db.Writes
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			share = reads
		}
		next.ServeHTTP(w, r.WithContext(db.WithShare(r.Context(), share)))
	})
}
