package checkout

import (
	"context"
	"net/http"

	"github.com/quittance/quittance/internal/web/webpage"
)

// events answers with a stream of an invoice's statuses: the current one, each that differs from the
// previous one, and the last one again after Heartbeat.
func (c *Checkout) events(w http.ResponseWriter, r *http.Request) error {
	id, from := r.PathValue("id"), streamsFrom(r)
	if !isInvoiceID(id) {
		return errNotFound
	}
	read, err := c.open.join(id, from)
	if err != nil {
		return err
	}
	var stream *webpage.PushStream
	left := func() { c.open.leave(id, from, stream) }
	now, err := c.open.status(r.Context(), id, read)
	if err == nil {
		from, err = c.open.charge(now.merchantID, from)
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
		c.conf.Logger.DebugContext(r.Context(), "begin a stream", "err", err)
		return nil
	}
	c.open.add(id, stream, now)
	ctx, cancel := webpage.RequestContext(context.Background(), r)
	defer cancel()
	stream.Serve(ctx, left)
	return nil
}
