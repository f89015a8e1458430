package admin_test

import (
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/admin"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestMerchantDifferences compares configurations without the merchant "shop", and with another company in its place.
func TestMerchantDifferences(t *testing.T) {
	t.Parallel()
	url := dbtest.Migrated(t)
	dbtest.Schedule(t, dbtest.Open(t, url), "shop", 0, 2, 1000)
	config := func(shop ...invoice.AllowedAddress) admin.MerchantsConfig {
		c := admin.MerchantsConfig{Database: url, Configured: map[string]access.MerchantSettings{}}
		if shop != nil {
			c.Configured["shop"] = access.MerchantSettings{Merchant: invoice.Merchant{Allowed: shop}}
		}
		return c
	}
	one, two := invoice.AllowedAddress{ChainKey: "base", Address: invoice.Address{1}}, invoice.AllowedAddress{ChainKey: "base", Address: invoice.Address{2}}
	for _, is := range []admin.MerchantsConfig{config(one), config()} {
		expect.OK(t, admin.WithMerchants(t.Context(), is, func(m *access.MerchantManager) error {
			_, err := m.RecordConfigured(t.Context())
			return err
		}))
	}
	for _, test := range []struct {
		config admin.MerchantsConfig
		kind   chain.DifferenceKind
		want   string
	}{
		{config(), chain.Harmless, "it has 1 open invoices, 2 waiting events and 0 keys"},
		{config(two), chain.Dangerous, "quittance merchant resume shop"},
	} {
		got, err := admin.MerchantDifferences(t.Context(), test.config)
		if err != nil || len(got) != 1 || got[0].Kind != test.kind || !strings.Contains(got[0].Text, test.want) {
			t.Errorf("%v, %v; want %s: %s", got, err, test.kind, test.want)
		}
	}
}
