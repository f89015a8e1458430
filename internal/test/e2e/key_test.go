package e2e

import (
	"bytes"
	"net/http"

	"github.com/quittance/quittance/internal/access"
)

// keyEnv is the variable with the operator's key of the services that tests start with
// quittance serve, and keySetting is the setting that names it.
const (
	keyEnv     = "SERVICE_KEY"
	keySetting = "access: {operatorKeyEnv: " + keyEnv + "}"
)

// operatorKey is the operator's key of these services.
var operatorKey = func() string {
	key, err := access.NewKey(access.Live, bytes.NewReader(make([]byte, access.KeyLength)))
	if err != nil {
		panic(err) // the reader has enough bytes
	}
	return key.Reveal()
}()

// withKey returns a client that sends the operator's key with each request.
func withKey(c *http.Client) *http.Client {
	keyed := *c
	keyed.Transport = keyTransport{c.Transport}
	return &keyed
}

type keyTransport struct{ base http.RoundTripper }

// RoundTrip sends the request with the key.
func (t keyTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+operatorKey)
	return t.base.RoundTrip(r)
}
