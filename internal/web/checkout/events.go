package checkout

import (
	"context"
	"net/http"
	"slices"

	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/web/webpage"
)

// events answers with a stream of an invoice's statuses: the current one, each that differs from the
// previous one, and the last one again after Heartbeat.
func (c *Checkout) events(w http.ResponseWriter, r *http.Request) error {
	id, networks := r.PathValue("id"), streamsFrom(r)
	if !isInvoiceID(id) {
		return errNotFound
	}
	claims := append(slices.Clone(networks), streamOf(id))
	read, err := c.open.join(id, claims)
	if err != nil {
		return err
	}
	var stream *webpage.PushStream
	left := func() { c.open.leave(id, claims, stream) }
	now, err := c.open.status(r.Context(), id, read)
	if err == nil {
		at := limits.AtMerchant(now.merchantID, networks)
		if err = c.open.Charge(at...); err == nil {
			claims = append(claims, at...)
		}
	}
	if err != nil {
		left()
		return err
	}
	if r.Method == http.MethodHead {
		left()
		w.Header().Set("Content-Type", webpage.MediaType)
		return nil
	}
	stream, err = webpage.AcceptStream(w, webpage.EventMessage("status", now.json(c.conf.Now())))
	if err != nil { // the client has disconnected
		left()
		c.Sent(r, err)
		return nil
	}
	c.open.add(id, stream, now)
	ctx, cancel := webpage.RequestContext(context.Background(), r)
	defer cancel()
	stream.Serve(ctx, left)
	return nil
}
