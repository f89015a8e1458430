package api

import (
	"net/http"
	"net/url"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
)

// createSignInLink answers POST /api/sign-in-links.
func (a *API) createSignInLink(w http.ResponseWriter, r *http.Request) error {
	o, err := readObject[apitypes.CreateSignInLinkRequest](w, r)
	if err != nil {
		return err
	}
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
