package config_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"io/fs"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/config"
	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/test/expect"
)

// newPair returns a self-signed certificate and its key, in PEM.
func newPair(t *testing.T) (certificate, key []byte) {
	t.Helper()
	private := expect.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"pay.example.com"}, NotAfter: time.Now().Add(time.Hour)}
	raw := expect.Must(x509.CreateCertificate(rand.Reader, template, template, private.Public(), private))
	encoded := expect.Must(x509.MarshalPKCS8PrivateKey(private))
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
}

// withPair is secrets with a certificate, its key and the key of another.
func withPair(t *testing.T) config.Source {
	t.Helper()
	certificate, key := newPair(t)
	_, otherKey := newPair(t)
	files := map[string][]byte{"/tls/cert": certificate, "/tls/key": key, "/tls/other": otherKey, "/tls/text": []byte("no PEM")}
	src := secrets
	src.File = func(path string) ([]byte, error) {
		if raw, ok := files[path]; ok {
			return raw, nil
		}
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return src
}

// minimal is a configuration without settings of HTTP.
const minimal = `
merchants: [{id: shop}]
chains: [{chainKey: base, rpc: [https://base.example]}]
`

const pair = "tls: {certificateFile: /tls/cert, keyFile: /tls/key}\n"

func TestAddressesOfDoors(t *testing.T) {
	t.Parallel()
	src := withPair(t)
	for text, want := range map[string][]config.Address{
		"": {{Listen: "127.0.0.1:8080", Doors: []string{"public", "api", "operator"}}},
		"doors: {operator: '127.0.0.1:9090'}\n": {
			{Listen: "127.0.0.1:8080", Doors: []string{"public", "api"}}, {Listen: "127.0.0.1:9090", Doors: []string{"operator"}},
		},
		"listen: 127.0.0.1:1\ndoors: {public: '127.0.0.1:2', api: 'localhost:3', operator: '[::1]:4'}\n": {
			{Listen: "127.0.0.1:2", Doors: []string{"public"}}, {Listen: "localhost:3", Doors: []string{"api"}}, {Listen: "[::1]:4", Doors: []string{"operator"}},
		},
		"doors: {public: '127.0.0.1:2', operator: '127.0.0.1:2'}\n": {
			{Listen: "127.0.0.1:2", Doors: []string{"public", "operator"}}, {Listen: "127.0.0.1:8080", Doors: []string{"api"}},
		},
		pair + "listen: ':443'\ndoors: {operator: 'http://127.0.0.1:9090'}\n": {
			{Listen: ":443", Doors: []string{"public", "api"}, HTTPS: true}, {Listen: "127.0.0.1:9090", Doors: []string{"operator"}},
		},
		pair + "listen: http://127.0.0.1:80\ndoors: {public: 'https://0.0.0.0:443'}\n": {
			{Listen: "0.0.0.0:443", Doors: []string{"public"}, HTTPS: true}, {Listen: "127.0.0.1:80", Doors: []string{"api", "operator"}},
		},
		"listen: 0.0.0.0:8080\nhttp: {trustedProxies: [10.0.0.0/8]}\n": {{Listen: "0.0.0.0:8080", Doors: []string{"public", "api", "operator"}}},
	} {
		cfg, err := config.Parse([]byte(minimal+text), src)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if diff := cmp.Diff(want, cfg.Addresses); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}

func TestWrongDoors(t *testing.T) {
	t.Parallel()
	src := withPair(t)
	for text, want := range map[string]string{
		"listen: 0.0.0.0:80\n":                                               `listen: is "0.0.0.0:80", which others can reach without TLS`,
		"listen: ':80'\n":                                                    `which others can reach without TLS`,
		"doors: {operator: '192.0.2.1:80'}\n":                                `doors.operator: is "192.0.2.1:80", which others can reach without TLS`,
		"listen: https://127.0.0.1:80\n":                                     `listen: is "https://127.0.0.1:80", but there is no certificate`,
		pair + "listen: http://0.0.0.0:80\n":                                 `which others can reach without TLS`,
		"doors: {api: 'shop.example:80'}\n":                                  `doors.api: is "shop.example:80"; want an IP address`,
		"doors: {api: '127.0.0.1'}\n":                                        `doors.api: is "127.0.0.1"; want an address and a port`,
		"doors: {api: 'ftp://127.0.0.1:80'}\n":                               `doors.api: is "ftp://127.0.0.1:80"`,
		"doors: {admin: '127.0.0.1:80'}\n":                                   `there is no setting "admin" here`,
		pair + "doors: {public: '127.0.0.1:1', api: 'http://127.0.0.1:1'}\n": `doors.api: is "http://127.0.0.1:1", where another door is served with the other scheme`,
		"http: {trustedProxies: [10.0.0.1/8]}\n":                             `http.trustedProxies[0]: is "10.0.0.1/8"; want a range`,
		"http: {trustedProxies: [0.0.0.0/0]}\n":                              `http.trustedProxies[0]: is "0.0.0.0/0", which would let every client claim any address`,
		"http: {trustedProxies: ['::/0']}\n":                                 `which would let every client claim any address`,
		"http: {forwardedHeader: X-Real-IP}\n":                               `http.forwardedHeader: is "X-Real-IP"; want X-Forwarded-For or Forwarded`,
		"tls: {certificateFile: /tls/cert}\n":                                `tls: want both certificateFile and keyFile`,
		"tls: {certificateFile: /nowhere, keyFile: /tls/key}\n":              `tls.certificateFile: open /nowhere`,
		"tls: {certificateFile: /tls/cert, keyFile: /nowhere}\n":             `tls.keyFile: open /nowhere`,
		"tls: {certificateFile: /tls/cert, keyFile: /tls/other}\n":           `tls: the certificate and the key are not usable: tls: private key does not match public key`,
		"tls: {certificateFile: /tls/text, keyFile: /tls/key}\n":             `tls: the certificate and the key are not usable`,
		pair[:len(pair)-2] + ", acme: {hosts: [pay.example.com]}}\n":         `tls: want either certificateFile and keyFile, or acme`,
		"tls: {acme: {hosts: [pay.example.com]}}\n":                          `tls.acme: needs a master key`,
		"tls: {acme: {email: a@example.com}}\n":                              `tls.acme.hosts: want at least one name`,
		acme("hosts: ['*.example.com']"):                                     `tls.acme.hosts[0]: is "*.example.com"`,
		acme("hosts: [pay.example.com], directory: http://ca.example"):       `tls.acme.directory: is "http://ca.example"; want a URL that begins with https://`,
		acme("hosts: [pay.example.com], email: someone"):                     `tls.acme.email: is "someone"`,
		acme("hosts: [pay.example.com], caFile: /nowhere"):                   `tls.acme.caFile: open /nowhere`,
		acme("hosts: [pay.example.com], caFile: /tls/text"):                  `tls.acme.caFile: /tls/text has no certificate`,
		"publicUrl: http://pay.example.com\n":                                `publicUrl: is "http://pay.example.com"; want https://`,
		"publicUrl: pay.example.com\n":                                       `publicUrl: is "pay.example.com"; want a scheme and a host`,
		"publicUrl: https://pay.example.com/shop\n":                          `publicUrl: is "https://pay.example.com/…"; want a scheme and a host such as https://pay.example.com, without a path`,
		"publicUrl: https://pay.example.com?x=1\n":                           `publicUrl`,
		"publicUrl: https://me@pay.example.com\n":                            `publicUrl: is "https://…"`,
		"publicUrl: https://pay_example.com\n":                               `publicUrl: is "https://pay_example.com"; want a host name`,
	} {
		if _, err := config.Parse([]byte(minimal+text), src); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", text, err, want)
		}
	}
	_, err := config.Parse([]byte(minimal+"listen: 0.0.0.0:80\n"), src)
	if err == nil || strings.Count(err.Error(), "listen:") != 1 {
		t.Errorf("an address of three doors is reported like this: %v", err)
	}
}

// acme returns a configuration with ACME and a master key.
func acme(settings string) string {
	return "masterKeyEnv: MASTER_KEY\ntls: {acme: {" + settings + "}}\n"
}

func TestACME(t *testing.T) {
	t.Parallel()
	cfg, err := config.Parse([]byte(minimal+"listen: ':443'\n"+acme("hosts: [Pay.example.com], directory: https://ca.example/dir, email: a@example.com, caFile: /tls/cert")), withPair(t))
	expect.OK(t, err)
	if a := cfg.TLS.ACME; a == nil || a.Hosts[0] != "pay.example.com" || a.Directory != "https://ca.example/dir" || a.Email != "a@example.com" || a.Roots == nil || !cfg.Addresses[0].HTTPS {
		t.Errorf("%+v", a)
	}
}

func TestPublicURL(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct{ url, hosts string }{
		"":                                      {"", ""},
		"publicUrl: https://Pay.example.com/\n": {"https://pay.example.com", "pay.example.com"},
		"publicUrl: https://pay.example.com:8443\nhttp: {hosts: [api.example.com]}\n": {"https://pay.example.com:8443", "api.example.com pay.example.com"},
		"publicUrl: https://pay.example.com\nhttp: {hosts: [pay.example.com]}\n":      {"https://pay.example.com", "pay.example.com"},
		"publicUrl: http://localhost:8080\n":                                          {"http://localhost:8080", "localhost"},
	} {
		cfg, err := config.Parse([]byte(minimal+text), secrets)
		if err != nil || cfg.PublicURL != want.url || strings.Join(cfg.Hosts, " ") != want.hosts {
			t.Errorf("%s: %q, %q, %v; want %v", text, cfg.PublicURL, cfg.Hosts, err, want)
		}
	}
}

func TestDashboardURL(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct{ url, hosts string }{
		"":                                     {"", ""},
		"publicUrl: https://pay.example.com\n": {"https://pay.example.com", "pay.example.com"},
		"publicUrl: https://pay.example.com\ndoors: {public: 127.0.0.1:8081}\n":                {"", "pay.example.com"},
		"publicUrl: https://pay.example.com\ndashboardUrl: https://Office.example.com:8443/\n": {"https://office.example.com:8443", "pay.example.com office.example.com"},
		"publicUrl: https://pay.example.com\ndashboardUrl: https://office.example.com:443/\n":  {"https://office.example.com", "pay.example.com office.example.com"},
	} {
		cfg, err := config.Parse([]byte(minimal+text), secrets)
		if err != nil || cfg.DashboardURL != want.url || strings.Join(cfg.Hosts, " ") != want.hosts {
			t.Errorf("%s: %q, %q, %v; want %v", text, cfg.DashboardURL, cfg.Hosts, err, want)
		}
	}
	if _, err := config.Parse([]byte(minimal+"dashboardUrl: http://office.example.com\n"), secrets); err == nil || !strings.Contains(err.Error(), "dashboardUrl: is") {
		t.Errorf("a URL without TLS: %v", err)
	}
}

func TestProxies(t *testing.T) {
	t.Parallel()
	cfg, err := config.Parse([]byte(minimal+"http: {trustedProxies: [10.0.0.0/8, '::1'], forwardedHeader: Forwarded}\n"), secrets)
	if err != nil || len(cfg.Proxies.Trusted) != 2 || cfg.Proxies.Header != limits.Forwarded {
		t.Errorf("%v, %v", cfg.Proxies, err)
	}
	if cfg, err = config.Parse([]byte(minimal), secrets); err != nil || len(cfg.Proxies.Trusted) != 0 || cfg.Proxies.Header != limits.XForwardedFor {
		t.Errorf("by default %v, %v", cfg.Proxies, err)
	}
}

func TestLocalDoor(t *testing.T) {
	t.Parallel()
	src := withPair(t)
	for text, want := range map[string]config.LocalDoor{
		"":                                      {"http://127.0.0.1:8080", "127.0.0.1:8080"},
		"doors: {operator: '127.0.0.1:9090'}\n": {"http://127.0.0.1:9090", "127.0.0.1:9090"},
		"doors: {operator: '[::1]:9090'}\n":     {"http://[::1]:9090", "[::1]:9090"},
		"listen: ':80'\nhttp: {trustedProxies: [10.0.0.0/8]}\n":                                                {"http://127.0.0.1:80", "127.0.0.1:80"},
		pair + "listen: 0.0.0.0:443\npublicUrl: https://pay.example.com\n":                                     {"https://pay.example.com:443", "127.0.0.1:443"},
		pair + "listen: 127.0.0.1:443\n":                                                                       {"https://127.0.0.1:443", "127.0.0.1:443"},
		pair + "listen: 0.0.0.0:443\ndoors: {operator: '10.0.0.7:9090'}\npublicUrl: https://pay.example.com\n": {"https://pay.example.com:9090", "10.0.0.7:9090"},
	} {
		cfg, err := config.Parse([]byte(minimal+text), src)
		if got := cfg.LocalOperator(); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", text, got, err, want)
		}
	}
}
