package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/config"
	"github.com/quittance/quittance/internal/identity"
)

func TestOIDC(t *testing.T) {
	t.Parallel()
	const office = "publicUrl: https://pay.example\n"
	for setting, want := range map[string]identity.Config{
		"{issuer: 'https://id.example/realm/', clientId: shop}":                                      {Issuer: "https://id.example/realm/", ClientID: "shop", Name: "id.example"},
		"{issuer: 'http://localhost:9998', clientId: shop, clientSecretEnv: ONE, name: 'Our staff'}": {Issuer: "http://localhost:9998", ClientID: "shop", ClientSecret: "x", Name: "Our staff"},
	} {
		cfg, err := config.Parse([]byte(minimal+office+"access: {oidc: "+setting+"}\n"), secrets)
		if err != nil {
			t.Errorf("%s: %v", setting, err)
		} else if diff := cmp.Diff(&want, cfg.OIDC); diff != "" {
			t.Errorf("%s:\n%s", setting, diff)
		}
	}
	for setting, want := range map[string]string{
		"{clientId: shop}": "access.oidc.issuer: is \"\"",
		"{issuer: 'http://id.example', clientId: shop}":                          "access.oidc.issuer: is \"http://id.example\"; want an https URL",
		"{issuer: 'https://me:hunter2@id.example', clientId: shop}":              "access.oidc.issuer: is",
		"{issuer: 'https://id.example?a=b', clientId: shop}":                     "access.oidc.issuer: is",
		"{issuer: 'https://id.example'}":                                         "access.oidc.clientId: want",
		"{issuer: 'https://id.example', clientId: shop, clientSecretEnv: EMPTY}": "access.oidc.clientSecretEnv: the environment variable EMPTY is empty",
		"{issuer: 'https://id.example', clientId: shop, name: \"a\\u202eb\"}":    "access.oidc.name",
		"{issuer: 'https://id.example', clientId: shop, secret: x}":              "there is no setting",
	} {
		_, err := config.Parse([]byte(minimal+office+"access: {oidc: "+setting+"}\n"), secrets)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want %q", setting, err, want)
		}
	}
	if _, err := config.Parse([]byte(minimal+"access: {oidc: {issuer: 'https://id.example', clientId: shop}}\n"), secrets); err == nil || !strings.Contains(err.Error(), "needs dashboardUrl") {
		t.Errorf("without dashboardUrl: %v", err)
	}
}
