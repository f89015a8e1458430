package server

import (
	"net/http"
	"testing"

	"github.com/quittance/quittance/internal/access"
)

// TestAuthorizationsNeedNoKey submits and reads an authorization at the public door of a service with
// an API that wants keys.
func TestAuthorizationsNeedNoKey(t *testing.T) {
	t.Parallel()
	base := startServer(t, Config{Access: Access{Mode: access.Live}}).url
	const body = `{"from":"0x00000000000000000000000000000000000000bb","to":"0x00000000000000000000000000000000000000aa","value":"1","validAfter":0,` +
		`"validBefore":2000000000,"nonce":"0x9b2e4fc5bd1a5b1c8d3a6b7e0f4c2d1e9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c4d","signature":"0x01"}`
	const path = "/checkout/inv_06gzm3qz9dvav7zw89t2fgt6g8/authorization?wait=1"
	for method, text := range map[string]string{http.MethodPost: body, http.MethodGet: ""} {
		if a := ask(t, method, base+path, text); a.status != http.StatusNotFound || a.code != "not_found" {
			t.Errorf("%s: answered %d %s, want 404 not_found", method, a.status, a.body)
		}
	}
}
