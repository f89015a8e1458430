package api

import (
	"cmp"
	"net/http"

	"github.com/quittance/quittance/internal/access"
)

// headerVersion is the header with the version of the interface, in requests and responses.
const headerVersion = "Quittance-Version"

// withVersion returns the request with the version of its answer: the one that it names, or its key's,
// or the newest. It sets the response's header.
func withVersion(w http.ResponseWriter, r *http.Request) (*http.Request, error) {
	version := cmp.Or(access.FromContext(r.Context()).Version, access.NewestVersion())
	if !version.Known() { // the version is no longer supported
		version = access.Versions[0]
	}
	var err error
	if named := r.Header.Values(headerVersion); len(named) > 0 {
		if v := access.Version(named[0]); v.Known() && len(named) == 1 {
			version = v
		} else {
			err = invalidField(headerVersion, "must be one of %s; it is %.40q", enumerate(access.Versions), named[0])
		}
	}
	w.Header().Set(headerVersion, string(version))
	return r.WithContext(access.WithVersion(r.Context(), version)), err
}
