package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/apiconv"
	"github.com/quittance/quittance/internal/db"
)

// createKey answers POST /api/keys.
func (a *API) createKey(w http.ResponseWriter, r *http.Request, o object) error {
	request, err := parseKeyRequest(o)
	if err != nil {
		return err
	}
	record, key, err := a.conf.Keys.Create(r.Context(), access.FromContext(r.Context()), request)
	return a.writeJSON(w, r, http.StatusCreated, apitypes.KeySecretResponse{Key: apiconv.Key(record, a.conf.Now()), Secret: key.Reveal()}, err)
}

// parseKeyRequest parses the members of a new key. It returns an *invoice.FieldError for the first invalid member.
func parseKeyRequest(o object) (r access.KeyRequest, err error) {
	err = cmp.Or(
		label(o, "name", &r.Name),
		optional(o, "merchantId", func(n string) error { return text(o, "", n, &r.MerchantID, parseMerchantID) }),
		scopes(o, "scopes", &r.Scopes),
		optional(o, "expiresAt", func(n string) error { return seconds(o, n, &r.ExpiresAt) }),
	)
	return r, err
}

// scopes reads an array of scopes and presets.
func scopes(o object, name string, dst *access.Scopes) error {
	if _, ok := o[name].([]any); !ok {
		return invalidField(name, "must be an array of scopes; it is %s", kind(o[name]))
	}
	var names []string
	if err := texts(o, name, &names); err != nil {
		return err
	}
	var err error
	if *dst, err = access.ParseScopes(names); err != nil {
		return invalidField(name, "are wrong: %v", err)
	}
	return nil
}

// rotateKey answers POST /api/keys/{id}/rotate.
func (a *API) rotateKey(w http.ResponseWriter, r *http.Request, o object) error {
	overlap := int64(access.DefaultOverlap / time.Second)
	if err := optional(o, "overlapSeconds", func(n string) error { return integer(o, n, 0, int64(access.MaxOverlap/time.Second), &overlap) }); err != nil {
		return err
	}
	record, key, err := a.conf.Keys.Rotate(r.Context(), access.FromContext(r.Context()), r.PathValue("id"), time.Duration(overlap)*time.Second)
	return a.writeJSON(w, r, http.StatusCreated, apitypes.KeySecretResponse{Key: apiconv.Key(record, a.conf.Now()), Secret: key.Reveal()}, err)
}

// integer reads an integer within bounds, in digits only.
func integer(o object, name string, least, most int64, dst *int64) error {
	n, err := strconv.ParseInt(fmt.Sprint(o[name]), 10, 64)
	if _, quoted := o[name].(string); err != nil || quoted || n < least || n > most {
		return invalidField(name, "must be an integer from %d to %d", least, most)
	}
	*dst = n
	return nil
}

// revokeKey answers DELETE /api/keys/{id}.
func (a *API) revokeKey(w http.ResponseWriter, r *http.Request) error {
	_, err := a.conf.Keys.Revoke(r.Context(), access.FromContext(r.Context()), r.PathValue("id"))
	return noContent(w, err)
}

// listKeys answers GET /api/keys.
func (a *API) listKeys(w http.ResponseWriter, r *http.Request) error {
	q := parseQuery(r)
	filter := access.KeyFilter{MerchantID: q.merchantID()}
	return listing[access.Record]{
		name: "keys", query: q, scope: q.scope("keys", "merchantId"), key: func(k *access.Record) string { return k.ID },
		elements: elementsOf(func(k access.Record) apitypes.Key { return apiconv.Key(k, a.conf.Now()) }),
		find: func(ctx context.Context, before string, n int) ([]access.Record, string, error) {
			filter.Before, filter.Limit = before, n
			return all(a.conf.Reader.Keys(ctx, filter))
		},
	}.serve(a, w, r)
}

// keyProblem returns the problem of an error of Keys, or nil for another error.
func keyProblem(err error) *problemError {
	if scope := (*access.ScopeError)(nil); errors.As(err, &scope) {
		return &problemError{code: apitypes.CodeForbidden, detail: "The key of the request lacks scopes of the other one: " + scope.Missing.String() + "."}
	}
	if merchant := (*access.MerchantError)(nil); errors.As(err, &merchant) {
		return &problemError{code: apitypes.CodeForbidden, detail: otherMerchant}
	}
	return nil
}

// createSignInLink answers POST /api/sign-in-links.
func (a *API) createSignInLink(w http.ResponseWriter, r *http.Request, o object) error {
	by := access.FromContext(r.Context())
	keyID := by.KeyID
	if err := optional(o, "keyId", func(n string) error { return text(o, "", n, &keyID, asIs) }); err != nil {
		return err
	}
	if !isVisibleASCII(keyID) { // no database takes every other text
		return db.ErrNotFound
	}
	link, err := a.conf.SignInLinks.MakeLink(r.Context(), by, keyID)
	return a.writeJSON(w, r, http.StatusCreated, apitypes.SignInLink{
		Path: "/dashboard/sign-in?" + url.Values{"link": {link.Token}}.Encode(), KeyID: link.KeyID, ExpiresAt: link.ExpiresAt.Unix(),
	}, err)
}
