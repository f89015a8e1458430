package endpoint

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/quittance/quittance/internal/delivery"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/poster"
	"github.com/quittance/quittance/internal/store"
)

// Rotation goes in three steps. A new secret is staged: from then on it signs
// beside the active one where several signatures can stand. The endpoint is
// pinged with the staged secret alone; when it takes that, the secret is
// promoted and signs by itself where one signature stands. The one that it
// replaces signs beside it for a while longer.

// Stage makes a secret that is to replace the active one, and returns it, which
// is never done again. Errors are ErrNone, ErrConfigured, ErrNoMasterKey and
// ErrStaged.
func (d *Directory) Stage(ctx context.Context, merchantID string) (v View, secret string, err error) {
	if _, err := d.own(ctx, merchantID); err != nil {
		return v, "", err
	}
	secret, seal, err := d.newSecret(merchantID)
	if err != nil {
		return v, "", err
	}
	_, err = d.Store.StageSecret(ctx, merchantID, d.Now().Unix(), seal)
	if errors.Is(err, store.ErrConflict) {
		err = ErrStaged
	}
	if err != nil {
		return v, "", err
	}
	v, err = d.View(ctx, merchantID)
	return v, secret, err
}

// own returns the endpoint that the merchant has set, with its secrets.
func (d *Directory) own(ctx context.Context, merchantID string) (store.EndpointRow, error) {
	switch {
	case !d.Known(merchantID):
		return store.EndpointRow{}, ErrNone
	case d.Configured[merchantID].URL != "":
		return store.EndpointRow{}, ErrConfigured
	case d.Keyring == nil:
		return store.EndpointRow{}, ErrNoMasterKey
	}
	rows, err := d.Store.Endpoints(ctx, []string{merchantID})
	row, ok := rows[merchantID]
	switch {
	case err != nil:
		return row, err
	case !ok && d.Fallback.URL != "":
		return row, ErrConfigured
	case !ok:
		return row, ErrNone
	}
	return row, nil
}

// Promote pings the endpoint with the staged secret alone and, when it takes
// the ping, makes that secret the active one. Errors are those of Stage but
// ErrStaged, ErrNotStaged and *PingError. It is the latter, too, when the
// endpoint has another URL by then, since what that one knows was not seen.
func (d *Directory) Promote(ctx context.Context, merchantID string) (View, error) {
	row, err := d.own(ctx, merchantID)
	if err != nil {
		return View{}, err
	}
	staged, err := stagedOf(row)
	if err != nil {
		return View{}, err
	}
	secret, err := d.secret(staged)
	if err != nil {
		return View{}, err
	}
	ping, err := d.ping(ctx, poster.Endpoint{URL: row.URL, Secret: secret})
	if err != nil {
		return View{}, err
	}
	if ping.Error != "" {
		return View{}, &PingError{Answer: ping.Error}
	}
	err = d.Store.PromoteSecret(ctx, staged, row.URL, d.Now().Add(Retiring).Unix())
	switch {
	case errors.Is(err, store.ErrConflict):
		return View{}, ErrNotStaged
	case errors.Is(err, store.ErrURLChanged):
		return View{}, &PingError{Answer: "another URL was set before it answered"}
	case err != nil:
		return View{}, err
	}
	return d.View(ctx, merchantID)
}

func stagedOf(row store.EndpointRow) (store.SecretRow, error) {
	for _, r := range row.Secrets {
		if r.State == store.SecretStaged {
			return r, nil
		}
	}
	return store.SecretRow{}, ErrNotStaged
}

// Unstage drops the staged secret. Errors are those of Stage but ErrStaged, and
// ErrNotStaged.
func (d *Directory) Unstage(ctx context.Context, merchantID string) error {
	if _, err := d.own(ctx, merchantID); err != nil {
		return err
	}
	err := d.Store.DropStagedSecret(ctx, merchantID)
	if errors.Is(err, store.ErrNotFound) {
		return ErrNotStaged
	}
	return err
}

// PingMerchant pings a merchant's endpoint, wherever that is set, as its events
// are posted, and returns how that went. It is ErrNone when there is none.
func (d *Directory) PingMerchant(ctx context.Context, merchantID string) (delivery.Attempt, error) {
	if !d.Known(merchantID) {
		return delivery.Attempt{}, ErrNone
	}
	found, err := d.Endpoints(ctx, []string{merchantID})
	if err != nil {
		return delivery.Attempt{}, err
	}
	e, ok := found[merchantID]
	if !ok {
		return delivery.Attempt{}, ErrNone
	}
	return d.ping(ctx, e)
}

// ping posts what looks like an event, with an id and a delivery of its own.
func (d *Directory) ping(ctx context.Context, to poster.Endpoint) (delivery.Attempt, error) {
	ids, now := invoice.NewIDs(d.Now, d.Rand), d.Now()
	body, err := json.Marshal(pingBody{ID: ids.New(invoice.PrefixEvent), Type: poster.PingEvent, CreatedAt: now.Unix()})
	if err != nil {
		return delivery.Attempt{}, err
	}
	return d.Ping(ctx, to, ids.New(invoice.PrefixDelivery), body), nil
}

// pingBody has the members of an event's envelope.
type pingBody struct {
	ID        string   `json:"id"`
	Type      string   `json:"type"`
	CreatedAt int64    `json:"createdAt"` // Unix seconds
	Data      struct{} `json:"data"`
}
