// Package typescript_test compiles the TypeScript package and runs its tests
// with npm and node, and holds the service's deliveries against the public
// verifiers of Standard Webhooks, npm's and Go's.
package typescript_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/quittance/quittance/internal/testdeps"
	"github.com/quittance/quittance/webhook"
)

// patience bounds the installation and each run of node.
const patience = 5 * time.Minute

// checkout copies the package, and the vectors that its tests read, to a
// folder of the test, installs what package-lock.json says, and returns a
// function that runs a command of npm's there.
func checkout(t *testing.T) (run func(env []string, args ...string)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	npm, err := testdeps.Program(ctx, "sdk/typescript", "npm")
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	dir := filepath.Join(root, "sdk", "typescript")
	for _, name := range []string{"src", "test", "examples"} {
		if err := os.CopyFS(filepath.Join(dir, name), os.DirFS(name)); err != nil {
			t.Fatal(err)
		}
	}
	for from, to := range map[string]string{
		"package.json": dir, "package-lock.json": dir, "tsconfig.json": dir,
		"../../webhook/testdata/vectors.json": filepath.Join(root, "webhook", "testdata"),
	} {
		if err := os.MkdirAll(to, 0o700); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, filepath.Base(from)), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run = func(env []string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(ctx, npm, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), env...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("npm %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	run(nil, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	return run
}

// delivery is one as the verifiers get it. Raw says that the secret is the key
// itself.
type delivery struct {
	Name    string            `json:"name"`
	Secret  string            `json:"secret"`
	Raw     bool              `json:"raw"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
	Valid   bool              `json:"valid"`
}

// deliveries are signed now, since the public verifiers have no other clock.
func deliveries(now time.Time) []delivery {
	const id, body = "dlv_06gzkv5tzssax3fv5zm4xvs2zm", `{"id":"evt_1","type":"invoice.paid","createdAt":1,"data":{"label":"Café ☕"}}`
	generated := webhook.SecretPrefix + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{0xfb, 7}, 16))
	other := webhook.SecretPrefix + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{1}, 32))
	sent := func(name, secret string, at time.Time, signing ...string) delivery {
		return delivery{
			Name: name, Secret: secret, Raw: !strings.HasPrefix(secret, webhook.SecretPrefix), Body: body, Valid: true,
			Headers: map[string]string{
				webhook.HeaderStandardID: id, webhook.HeaderStandardTimestamp: strconv.FormatInt(at.Unix(), 10),
				webhook.HeaderStandardSignature: webhook.SignStandard(signing, id, at, []byte(body)),
			},
		}
	}
	invalid := func(d delivery, change func(*delivery)) delivery {
		d.Valid = false
		change(&d)
		return d
	}
	return []delivery{
		sent("a generated secret", generated, now, generated),
		sent("a secret of another form", "hunter2 and more", now, "hunter2 and more"),
		sent("the new secret in a rotation", other, now, other, generated),
		sent("the old secret in a rotation", generated, now, other, generated),
		sent("almost stale", generated, now.Add(-4*time.Minute), generated),
		invalid(sent("stale", generated, now.Add(-6*time.Minute), generated), func(*delivery) {}),
		invalid(sent("another secret", generated, now, other), func(*delivery) {}),
		invalid(sent("another body", generated, now, generated), func(d *delivery) { d.Body += " " }),
		invalid(sent("another id", generated, now, generated), func(d *delivery) { d.Headers[webhook.HeaderStandardID] += "x" }),
	}
}

// TestPackage compiles the package and its examples and runs its tests.
func TestPackage(t *testing.T) {
	t.Parallel()
	checkout(t)(nil, "test")
}

// TestStandardWebhooksForNode holds signatures against npm's standardwebhooks.
func TestStandardWebhooksForNode(t *testing.T) {
	t.Parallel()
	run := checkout(t)
	data, err := json.Marshal(deliveries(time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "deliveries.json")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	run([]string{"SIGNED_DELIVERIES=" + file}, "run", "standard")
}

// TestStandardWebhooksForGo holds signatures against Go's standardwebhooks.
func TestStandardWebhooksForGo(t *testing.T) {
	t.Parallel()
	for _, d := range deliveries(time.Now()) {
		verifier, err := standardwebhooks.NewWebhook(d.Secret)
		if d.Raw {
			verifier, err = standardwebhooks.NewWebhookRaw([]byte(d.Secret))
		}
		if err != nil {
			t.Fatal(err)
		}
		headers := http.Header{}
		for name, value := range d.Headers {
			headers.Set(name, value)
		}
		if err := verifier.Verify([]byte(d.Body), headers); (err == nil) != d.Valid {
			t.Errorf("%s: %v, want valid %t", d.Name, err, d.Valid)
		}
	}
}
