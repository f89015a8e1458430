package api

import (
	"cmp"
	"net/http"

	"github.com/quittance/quittance/internal/access"
)

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
