package config_test

import (
	"net/mail"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/config"
	"github.com/quittance/quittance/internal/test/expect"
)

func TestSMTP(t *testing.T) {
	t.Parallel()
	from := mail.Address{Name: "Acme receipts", Address: "receipts@pay.example"}
	for setting, want := range map[string]config.SMTP{
		"{host: mail.example, from: Acme receipts <receipts@pay.example>}": {Host: "mail.example", Port: 587, TLS: config.TLSStart, From: from},
		"{host: mail.example, tls: implicit, user: ann, passwordEnv: CIRCLE_SECRET, from: Acme receipts <receipts@pay.example>}": {
			Host: "mail.example", Port: 465, TLS: config.TLSImplicit, User: "ann", Password: providerSecret, From: from},
		"{host: 127.0.0.1, port: 2525, tls: none, from: receipts@pay.example}": {Host: "127.0.0.1", Port: 2525, TLS: config.TLSNone, From: mail.Address{Address: from.Address}},
		"{host: localhost, tls: none, from: receipts@pay.example}":             {Host: "localhost", Port: 25, TLS: config.TLSNone, From: mail.Address{Address: from.Address}},
	} {
		cfg, err := config.Parse([]byte(full+"publicUrl: https://pay.example\nsmtp: "+setting+"\n"), secrets)
		if err != nil {
			t.Errorf("%s: %v", setting, err)
			continue
		}
		expect.NoDiff(t, cmp.Diff(&want, cfg.SMTP), "%s", setting)
	}
	if cfg, err := config.Parse([]byte(full), secrets); err != nil || cfg.SMTP != nil {
		t.Errorf("without the setting: %+v, %v", cfg.SMTP, err)
	}
	for setting, want := range map[string]string{
		"{from: a@b.example}":                                                         "smtp.host: want the name",
		"{host: mail.example}":                                                        "smtp.from: is \"\"; want an address",
		"{host: mail.example, from: pay.example}":                                     "smtp.from: is \"pay.example\"",
		"{host: mail.example, tls: maybe, from: a@b.example}":                         "smtp.tls: is \"maybe\"; want starttls, implicit or none",
		"{host: mail.example, tls: none, from: a@b.example}":                          "smtp.tls: is none, which is for localhost alone",
		"{host: mail.example, port: 0, from: a@b.example}":                            "smtp.port: is \"0\"",
		"{host: mail.example, port: 65536, from: a@b.example}":                        "smtp.port: is \"65536\"",
		"{host: mail.example, user: ann, from: a@b.example}":                          "smtp.password: want either passwordEnv",
		"{host: mail.example, passwordEnv: CIRCLE_SECRET, from: a@b.example}":         "smtp.user: want the name",
		"{host: mail.example, caFile: /none, from: a@b.example}":                      "smtp.caFile: open /none",
		"{host: mail.example, caFile: /run/secrets/node, from: a@b.example}":          "smtp.caFile: /run/secrets/node has no certificate",
		"{host: mail.example, user: ann, passwordEnv: UNSET_NAME, from: a@b.example}": "smtp.passwordEnv: the environment variable UNSET_NAME is not set",
	} {
		_, err := config.Parse([]byte(full+"publicUrl: https://pay.example\nsmtp: "+setting+"\n"), secrets)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), providerSecret) {
			t.Errorf("%s: %v, want %q", setting, err, want)
		}
	}
	_, err := config.Parse([]byte(full+"smtp: {host: mail.example, from: a@b.example}\n"), secrets)
	if err == nil || !strings.Contains(err.Error(), "smtp: needs publicUrl") {
		t.Errorf("without publicUrl: %v", err)
	}
}
