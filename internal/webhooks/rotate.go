package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// A rotation has three steps. Stage generates a secret; from then on, the header with several signatures has one by the
// new and one by the active secret. Promote pings the endpoint with only the staged secret; if the ping succeeds, the
// staged secret becomes the active one, which the header with one signature uses. The replaced secret keeps signing in
// the other header for RetirementPeriod, or until maxRetiring others have been replaced after it.

// Stage generates the secret that will replace the active one, and returns it. It cannot be read again. Errors are
// ErrNone, ErrConfigured, ErrNoMasterKey and ErrStaged.
func (d *Directory) Stage(ctx context.Context, merchantID string) (v View, secret string, err error) {
	if _, err := d.own(ctx, merchantID); err != nil {
		return v, "", err
	}
	secret, seal, err := d.newSecret(merchantID)
	if err != nil {
		return v, "", err
	}
	breakers, err := d.conf.Breakers(ctx, []string{merchantID})
	if err != nil {
		return v, "", err
	}
	err = d.update(ctx, access.ActionSecretStage, merchantID, func(tx *db.Tx) error {
		_, err := stageSecret(ctx, tx, merchantID, d.conf.Now(), seal)
		if err == nil {
			v, err = d.viewIn(ctx, tx, merchantID)
		}
		return err
	})
	if errors.Is(err, db.ErrConflict) {
		err = ErrStaged
	}
	if err != nil {
		return View{}, "", err
	}
	v.Breaker = breakers[merchantID]
	return v, secret, nil
}

// own returns the endpoint that the merchant has set through the API.
func (d *Directory) own(ctx context.Context, merchantID string) (EndpointRow, error) {
	switch {
	case !d.conf.Known(merchantID):
		return EndpointRow{}, ErrNone
	case d.conf.Configured[merchantID].WebhookURL != "":
		return EndpointRow{}, ErrConfigured
	case d.conf.Keyring == nil:
		return EndpointRow{}, ErrNoMasterKey
	}
	rows, err := endpoints(ctx, d.conf.Store, []string{merchantID})
	row, ok := rows[merchantID]
	switch {
	case err != nil:
		return row, err
	case !ok && d.conf.Fallback.URL != "":
		return row, ErrConfigured
	case !ok:
		return row, ErrNone
	}
	return row, nil
}

// Promote pings the endpoint with only the staged secret and, if the ping succeeds, makes that secret the active one.
// Errors are ErrNone, ErrConfigured, ErrNoMasterKey, ErrNotStaged, and *PingError, also if another URL was set during
// the ping.
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
	headers, err := d.headers(row.Headers)
	if err != nil {
		return View{}, err
	}
	ping, err := d.ping(ctx, Endpoint{URL: row.URL, Secret: secret, Headers: headers})
	if err != nil {
		return View{}, err
	}
	if ping.Error != "" {
		return View{}, &PingError{Answer: ping.Error}
	}
	err = d.update(ctx, access.ActionSecretPromote, merchantID, func(tx *db.Tx) error {
		return promoteSecret(ctx, tx, staged, row.URL, d.conf.Now().Add(RetirementPeriod))
	})
	switch {
	case errors.Is(err, db.ErrConflict):
		return View{}, ErrNotStaged
	case errors.Is(err, ErrURLChanged):
		return View{}, &PingError{Answer: "another URL was set before it answered"}
	case err != nil:
		return View{}, err
	}
	return d.View(ctx, merchantID)
}

func stagedOf(row EndpointRow) (SecretRow, error) {
	for _, r := range row.Secrets {
		if r.State == SecretStaged {
			return r, nil
		}
	}
	return SecretRow{}, ErrNotStaged
}

// Unstage drops the staged secret. Errors are ErrNone, ErrConfigured, ErrNoMasterKey and ErrNotStaged.
func (d *Directory) Unstage(ctx context.Context, merchantID string) error {
	if _, err := d.own(ctx, merchantID); err != nil {
		return err
	}
	err := d.update(ctx, access.ActionSecretDrop, merchantID, func(tx *db.Tx) error {
		return dropStagedSecret(ctx, tx, merchantID)
	})
	if errors.Is(err, db.ErrNotFound) {
		return ErrNotStaged
	}
	return err
}

// PingMerchant pings a merchant's endpoint, and returns the attempt. The error is ErrNone if there is no endpoint.
func (d *Directory) PingMerchant(ctx context.Context, merchantID string) (Attempt, error) {
	if !d.conf.Known(merchantID) {
		return Attempt{}, ErrNone
	}
	found, err := d.Endpoints(ctx, []string{merchantID})
	if err != nil {
		return Attempt{}, err
	}
	e, ok := found[merchantID]
	if !ok {
		return Attempt{}, ErrNone
	}
	made, err := d.ping(ctx, e)
	if err != nil || made.Error != "" {
		return made, err
	}
	return made, d.confirm(ctx, merchantID, e.URL)
}

// confirm records that the endpoint at the URL answered a ping signed by a secret that replaced a lost one.
func (d *Directory) confirm(ctx context.Context, merchantID, url string) error {
	rows, err := endpoints(ctx, d.conf.Store, []string{merchantID})
	if err != nil {
		return err
	}
	waits := func(r SecretRow) bool { return r.State == SecretActive && !r.ReplacedAt.IsZero() }
	if row := rows[merchantID]; row.URL != url || !slices.ContainsFunc(row.Secrets, waits) {
		return nil
	}
	return d.update(ctx, access.ActionSecretConfirm, merchantID, func(tx *db.Tx) error { return confirmSecret(ctx, tx, merchantID) })
}

// ping posts a body with an event's envelope and new ids.
func (d *Directory) ping(ctx context.Context, to Endpoint) (Attempt, error) {
	ids, now := invoice.NewIDs(d.conf.Now, d.conf.Rand), d.conf.Now()
	body, err := json.Marshal(pingBody{ID: ids.New(invoice.PrefixEvent), Type: PingEvent, CreatedAt: now.Unix()})
	if err != nil {
		return Attempt{}, err
	}
	return d.conf.Ping(ctx, to, ids.New(invoice.PrefixDelivery), body), nil
}

// pingBody has the members of an event's envelope.
type pingBody struct {
	ID        string   `json:"id"`
	Type      string   `json:"type"`
	CreatedAt int64    `json:"createdAt"` // Unix seconds
	Data      struct{} `json:"data"`
}
