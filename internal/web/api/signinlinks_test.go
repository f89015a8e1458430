package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestSignInLinks makes links for the caller and for others.
func TestSignInLinks(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		k := newKeyed(t, s)
		operator := k.client("")
		ownerKey, owner := k.create(operator, "acme", "owner")
		supportKey, support := k.create(operator, "acme", "support")
		strangerKey, _ := k.create(operator, "globex", "owner")
		gone, _ := k.create(operator, "acme", "read")
		expect.OK(t, operator.RevokeKey(t.Context(), gone.ID))
		for _, of := range []string{"", supportKey.ID} {
			link, expiresAt, err := support.CreateSignInLink(t.Context(), of)
			if err != nil || !strings.HasPrefix(link, k.server.URL+"/dashboard/sign-in?link=ql_") || expiresAt.Sub(testClock()).Abs() > 11*time.Minute {
				t.Errorf("of %q: %q until %v, %v", of, link, expiresAt, err)
			}
		}
		if _, _, err := owner.CreateSignInLink(t.Context(), supportKey.ID); err != nil {
			t.Errorf("by the owner: %v", err)
		}
		_, _, err := support.CreateSignInLink(t.Context(), ownerKey.ID)
		wantCode(t, "by support for the owner", err, http.StatusForbidden, apitypes.CodeForbidden)
		for what, of := range map[string]string{"of another merchant": strangerKey.ID, "unknown": "key_06gzm3qz9dvav7zw89t2fgt6g8", "no id": "\x00"} {
			_, _, err := owner.CreateSignInLink(t.Context(), of)
			wantCode(t, what, err, http.StatusNotFound, apitypes.CodeNotFound)
		}
		_, _, err = owner.CreateSignInLink(t.Context(), gone.ID)
		wantCode(t, "revoked", err, http.StatusConflict, apitypes.CodeKeyNotActive)
	})
}
