package invoice_test

import (
	"testing"

	"github.com/quittance/quittance/internal/invoice"
)

func TestInForceOf(t *testing.T) {
	t.Parallel()
	withdrawn, other := invoice.Submission{KeyID: "a", WithdrawnAt: invoice.Unix(1)}, invoice.Submission{KeyID: "b"}
	if s, ok := invoice.InForceOf([]invoice.Submission{withdrawn}); ok {
		t.Errorf("%+v is in force", s)
	}
	if s, ok := invoice.InForceOf([]invoice.Submission{withdrawn, other}); !ok || s.KeyID != "b" {
		t.Errorf("%+v, %t; want the one that was not withdrawn", s, ok)
	}
}
