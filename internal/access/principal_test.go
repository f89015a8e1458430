package access_test

import (
	"context"
	"testing"

	"github.com/quittance/quittance/internal/access"
)

func TestPrincipal(t *testing.T) {
	merchant := access.Principal{KeyID: "key_1", MerchantID: "acme", Scopes: access.Read}
	for _, c := range []struct {
		name                         string
		p                            access.Principal
		operator, reads, acme, other bool
	}{
		{"nobody", access.FromContext(context.Background()), false, false, false, false},
		{"open", access.Open(), true, true, true, true},
		{"merchant", access.FromContext(access.WithPrincipal(t.Context(), merchant)), false, true, true, false},
		{"without scopes", access.Principal{KeyID: "key_2"}, false, false, false, false},
	} {
		if c.p.IsOperator() != c.operator || c.p.Can(access.InvoicesRead) != c.reads || c.p.Sees("acme") != c.acme || c.p.Sees("globex") != c.other || c.p.Sees("") != c.operator {
			t.Errorf("%s: operator %t, reads %t, sees acme %t, globex %t", c.name, c.p.IsOperator(), c.p.Can(access.InvoicesRead), c.p.Sees("acme"), c.p.Sees("globex"))
		}
	}
}
