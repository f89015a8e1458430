package api

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/web/webpage"
)

// MaxAuthorization bounds the header Authorization, in bytes.
const MaxAuthorization = 256

// Authenticator finds the principal of a caller. *access.Authenticator implements it and documents the errors.
type Authenticator interface {
	Authenticate(ctx context.Context, key string) (access.Principal, error)
}

// headerAuthorization is the header that carries the key.
const headerAuthorization = "Authorization"

// unauthorizedError is the error of a request with a missing or refused key.
type unauthorizedError struct{ detail string }

// Error returns the detail.
func (e *unauthorizedError) Error() string { return e.detail }

// WithPrincipal returns a handler that authenticates a request, and passes it to next with its principal.
func (a *API) WithPrincipal(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, err := a.Principal(r)
		if err != nil {
			a.WriteError(w, r, err)
			return
		}
		r = r.WithContext(access.WithPrincipal(r.Context(), p))
		if err := setVersion(w, r); err != nil {
			a.WriteError(w, r, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// WithScope returns a route's handler for requests with a principal that has the route's scope.
func (a *API) WithScope(route webpage.Route, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := access.FromContext(r.Context())
		forItself := route.OwnKey && p.KeyID != "" && p.KeyID == r.PathValue("id")
		if !p.Can(route.Scope) && !forItself {
			w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+string(route.Scope)+`"`)
			a.WriteError(w, r, problemf(apitypes.CodeForbidden, "The key lacks the scope %s.", route.Scope))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// ForOperator returns a handler that passes a request to next if its principal is the operator.
func (a *API) ForOperator(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !access.FromContext(r.Context()).IsOperator() {
			a.WriteError(w, r, errNotOperator)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Principal returns the principal of a request by its key. Errors are for WriteError.
func (a *API) Principal(r *http.Request) (access.Principal, error) {
	if access.ContainsKey(r.URL.RawQuery) || access.ContainsKey(r.URL.Path) {
		return access.Principal{}, &unauthorizedError{"The address of the request holds a key, and addresses are logged on the way. " +
			"Send the key in the header Authorization, and replace this one by another."}
	}
	key, err := bearer(r.Header)
	if err != nil {
		return access.Principal{}, err
	}
	return a.conf.Authenticator.Authenticate(r.Context(), key)
}

// checkKey returns an error if the key of a long request, which was accepted at its beginning, is
// refused now. It is nil if the check fails.
func (a *API) checkKey(ctx context.Context, r *http.Request) error {
	if access.FromContext(ctx).KeyID == "" {
		return nil // a development service without keys
	}
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	recheck := access.RecheckFrom(ctx)
	if recheck == nil {
		recheck = func(ctx context.Context) error {
			_, err := a.Principal(r.WithContext(ctx))
			return err
		}
	}
	if err := recheck(ctx); access.IsRefusal(err) {
		return err
	}
	return nil
}

// whileAccepted returns a context that ends when the key of a long request is refused. The caller must call stop.
func (a *API) whileAccepted(ctx context.Context, r *http.Request) (accepted context.Context, stop func()) {
	accepted, cancel := context.WithCancel(ctx)
	if access.FromContext(ctx).KeyID == "" {
		return accepted, cancel
	}
	var group sync.WaitGroup
	group.Go(func() {
		for clock.Sleep(accepted, keyCheckInterval, nil) {
			if a.checkKey(accepted, r) != nil {
				cancel()
			}
		}
	})
	return accepted, func() {
		cancel()
		group.Wait()
	}
}

// bearer returns the key in the header Authorization, or "" if that is absent.
func bearer(h http.Header) (string, error) {
	values := h.Values(headerAuthorization)
	switch {
	case len(values) == 0:
		return "", nil
	case len(values) > 1:
		return "", &unauthorizedError{"The header Authorization must occur once."}
	case len(values[0]) > MaxAuthorization:
		return "", &unauthorizedError{"The header Authorization is longer than any with a key."}
	}
	scheme, key, _ := strings.Cut(values[0], " ")
	switch {
	case !strings.EqualFold(scheme, "Bearer"):
		return "", &unauthorizedError{"The scheme of the header Authorization must be Bearer, as in Authorization: Bearer qk_live_…"}
	case key == "":
		return "", access.ErrMalformed
	}
	return key, nil
}

// unauthorizedDetail returns the detail of an authentication error, or "" for another error.
func unauthorizedDetail(err error) string {
	if unauthorized := (*unauthorizedError)(nil); errors.As(err, &unauthorized) {
		return unauthorized.detail
	}
	if errors.Is(err, access.ErrMissing) {
		return "The request has no key. Send one in the header Authorization: Bearer qk_live_…"
	}
	for _, known := range []error{access.ErrMalformed, access.ErrChecksum, access.ErrWrongMode, access.ErrUnknown, access.ErrRevoked, access.ErrExpired, access.ErrNoMerchant} {
		if errors.Is(err, known) {
			return "The key " + known.Error() + "."
		}
	}
	return ""
}

// challenge returns the header WWW-Authenticate of an authentication error (RFC 6750).
func challenge(err error) string {
	if errors.Is(err, access.ErrMissing) {
		return "Bearer"
	}
	return `Bearer error="invalid_token"`
}

// headerVersion is the header with the version of the interface, in requests and responses.
const headerVersion = "Quittance-Version"

// setVersion sets the header with the version of the answer: the one that the request names, or its key's, or the newest.
func setVersion(w http.ResponseWriter, r *http.Request) (err error) {
	version := cmp.Or(access.FromContext(r.Context()).Version, access.NewestVersion())
	if !version.Known() { // the version is no longer supported
		version = access.Versions[0]
	}
	if named := r.Header.Values(headerVersion); len(named) > 0 {
		if v := access.Version(named[0]); v.Known() && len(named) == 1 {
			version = v
		} else {
			err = invalidField(headerVersion, "must be one of %s; it is %.40q", enumerate(access.Versions), named[0])
		}
	}
	w.Header().Set(headerVersion, string(version))
	return err
}
