package invoice_test

import (
	"strings"
	"testing"
	_ "time/tzdata" // for machines without

	"github.com/quittance/quittance/internal/invoice"
)

func TestTimezones(t *testing.T) {
	for _, name := range []string{"UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires"} {
		if err := invoice.CheckTimezone(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := (invoice.Merchant{Timezone: name}).Zone().String(); got != name {
			t.Errorf("the zone of %s is %s", name, got)
		}
	}
	for _, name := range []string{"Local", "local", "Berlin", "../etc/passwd", "Europe/Berlin ", strings.Repeat("a", invoice.MaxTimezone+1), "\x00"} {
		if err := invoice.CheckTimezone(name); err == nil {
			t.Errorf("%q is a time zone", name)
		}
	}
	if got := (invoice.Merchant{}).Zone().String(); got != "UTC" {
		t.Errorf("without a time zone: %s", got)
	}
}
