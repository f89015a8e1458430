package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/test/expect"
)

// keyed returns the URL of a service that takes one key, and the keys that were sent to it.
func keyed(t *testing.T, key string) (url string, sent *[]string) {
	t.Helper()
	sent = new([]string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		*sent = append(*sent, got)
		w.Header().Set("Content-Type", "application/json")
		if got != key {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"type":"about:blank","title":"Unauthorized","status":401,"detail":"The key is wrong.","code":"unauthorized"}`))
			return
		}
		_, _ = w.Write([]byte(`{"invoices":[]}`))
	}))
	t.Cleanup(server.Close)
	return server.URL, sent
}

func TestLogin(t *testing.T) {
	t.Parallel()
	const key = "qk_live_secret"
	url, sent := keyed(t, key)
	other, sentToOther := keyed(t, key)
	path := filepath.Join(t.TempDir(), "new", "profile.json")
	command := func(stdin string, args ...string) (code int, output string) {
		var out strings.Builder
		env := environment{stdin: strings.NewReader(stdin), stdout: &out, stderr: &out, profile: path}
		code = run(t.Context(), env, args)
		if strings.Contains(out.String(), key) {
			t.Errorf("%q shows the key: %s", args, &out)
		}
		return code, out.String()
	}
	for _, wrong := range []struct{ stdin, url string }{{"", url}, {"qk_live_other\n", url}, {key, "http://pay.example.com"}, {key, "ftp://127.0.0.1"}} {
		if code, out := command(wrong.stdin, "login", "--url", wrong.url); code == 0 {
			t.Errorf("login with %q at %s: %s", wrong.stdin, wrong.url, out)
		}
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a failed login left a profile")
	}
	if code, out := command(key+"\n", "login", "--url", url); code != 0 {
		t.Fatalf("login: exit code %d, %s", code, out)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the profile has the mode %v: %v", info.Mode(), err)
	}
	*sent = nil
	if code, out := command("", "invoices", "list"); code != 0 || len(*sent) != 1 || (*sent)[0] != key {
		t.Errorf("with the profile: exit code %d, sent %q, %s", code, *sent, out)
	}
	if code, out := command("", "invoices", "list", "--url", other); code != 1 || len(*sentToOther) != 1 || (*sentToOther)[0] != "" {
		t.Errorf("another service: exit code %d, sent %q, %s", code, *sentToOther, out)
	}
	expect.OK(t, os.Chmod(path, 0o640))
	if code, out := command("", "invoices", "list"); code != 1 || !strings.Contains(out, "chmod 600") {
		t.Errorf("a profile that others can read: exit code %d, %s", code, out)
	}
	if code, out := command("", "logout"); code != 0 {
		t.Errorf("logout: exit code %d, %s", code, out)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("logout left the profile")
	}
}
