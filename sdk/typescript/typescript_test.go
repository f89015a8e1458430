// Package typescript_test packs the TypeScript package, runs its tests, and uses it like a merchant, with Node, Deno
// and Bun. It verifies the service's deliveries with the public verifiers of Standard Webhooks, npm's and Go's, and of
// Stripe.
package typescript_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/testdeps"
	"github.com/quittance/quittance/webhook"
)

// patience bounds the installation and each run of a program.
const patience = 5 * time.Minute

// installed is the package, built in a copy of a clone's files.
type installed struct {
	dir     string // of the package
	tarball string // made by npm pack
}

// build makes the package once for all tests, with npm pack in a folder without
// node_modules.
var build = sync.OnceValues(func() (p installed, err error) {
	p.dir = filepath.Join(temporary, "sdk", "typescript")
	for _, name := range []string{"src", "test", "webhook"} {
		if err := os.CopyFS(filepath.Join(p.dir, name), os.DirFS(name)); err != nil {
			return p, err
		}
	}
	for from, to := range map[string]string{
		"README.md": p.dir, "package.json": p.dir, "package-lock.json": p.dir, "tsconfig.json": p.dir, "tsconfig.cjs.json": p.dir, "shapes.mjs": p.dir,
		"../../openapi.yaml": temporary, "../../webhook/testdata/vectors.json": filepath.Join(temporary, "webhook", "testdata"),
		"../../webhook/testdata/events.json": filepath.Join(temporary, "webhook", "testdata"), "../../client/testdata/amounts.json": filepath.Join(temporary, "client", "testdata"),
	} {
		if err := copyFile(from, filepath.Join(to, filepath.Base(from))); err != nil {
			return p, err
		}
	}
	// Files of an earlier build must not help.
	for _, name := range []string{"src/openapi.ts", "src/shapes.ts"} {
		if err := os.RemoveAll(filepath.Join(p.dir, name)); err != nil {
			return p, err
		}
	}
	if err := npm(p.dir, nil, "pack"); err != nil {
		return p, err
	}
	found, err := filepath.Glob(filepath.Join(p.dir, "*.tgz"))
	if err != nil || len(found) != 1 {
		return p, fmt.Errorf("npm pack made %q, %w", found, err)
	}
	p.tarball = found[0]
	return p, nil
})

// consumer makes a folder with the tarball and the tools that use it, once for all tests.
var consumer = sync.OnceValues(func() (dir string, err error) {
	p, err := build()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(temporary, "consumer")
	if err := os.CopyFS(dir, os.DirFS("test/consumer")); err != nil {
		return "", err
	}
	if err := npm(dir, nil, "ci", "--ignore-scripts", "--no-audit", "--no-fund"); err != nil {
		return "", err
	}
	return dir, npm(dir, nil, "install", "--no-save", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund", p.tarball)
})

// npm runs a command of npm.
func npm(dir string, env []string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	path, err := testdeps.Program(ctx, "sdk/typescript", "npm")
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("npm %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// must returns v, or fails the test.
func must[T any](t *testing.T, get func() (T, error)) T {
	t.Helper()
	v, err := get()
	expect.OK(t, err)
	return v
}

func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o600)
}

// delivery is a delivery for the verifiers. Raw is set if the secret is the key itself.
type delivery struct {
	Name    string            `json:"name"`
	Secret  string            `json:"secret"`
	Raw     bool              `json:"raw"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
	Valid   bool              `json:"valid"`
	// ValidForStripe is the expected result for X-Service-Signature, which covers no id.
	ValidForStripe bool `json:"validForStripe"`
}

// deliveries are signed now, because the public verifiers cannot use another clock.
func deliveries(now time.Time) []delivery {
	const id, body = "dlv_06gzkv5tzssax3fv5zm4xvs2zm", `{"id":"evt_1","type":"invoice.paid","createdAt":1,"data":{"label":"Café ☕"}}`
	generated := webhook.SecretPrefix + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{0xfb, 7}, 16))
	other := webhook.SecretPrefix + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{1}, 32))
	sent := func(name, secret string, at time.Time, signing ...string) delivery {
		return delivery{
			Name: name, Secret: secret, Raw: !strings.HasPrefix(secret, webhook.SecretPrefix), Body: body, Valid: true, ValidForStripe: secret == signing[0],
			Headers: map[string]string{
				webhook.HeaderSignature:  webhook.Sign(signing[0], at, []byte(body)),
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
		invalid(sent("stale", generated, now.Add(-6*time.Minute), generated), func(d *delivery) { d.ValidForStripe = false }),
		invalid(sent("another secret", generated, now, other), func(*delivery) {}),
		invalid(sent("another body", generated, now, generated), func(d *delivery) { d.Body += " "; d.ValidForStripe = false }),
		invalid(sent("another id", generated, now, generated), func(d *delivery) { d.Headers[webhook.HeaderStandardID] += "x" }),
	}
}

// TestExtraPackage runs the package's own tests.
func TestExtraPackage(t *testing.T) {
	t.Parallel()
	expect.NoError(t, npm(must(t, build).dir, nil, "run", "unit"))
}

// TestExtraNode22 also runs the tests of unresponsive peers with Node 22: a garbage collection must not drop a timeout or a
// signal, and releases differ in what they collect.
func TestExtraNode22(t *testing.T) {
	t.Parallel()
	dir := must(t, build).dir
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin(t, "node22"), "--expose-gc", "--test", "test/faults.test.mjs")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// TestExtraNode10 compiles a program with a module resolution that does not read the exports of package.json. TypeScript
// 5.9, which builds the package, is the last version with it.
func TestExtraNode10(t *testing.T) {
	t.Parallel()
	compiler := filepath.Join(must(t, build).dir, "node_modules", "typescript", "bin", "tsc")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", compiler, "--noEmit", "--strict", "--target", "ES2022", "--module", "CommonJS", "--moduleResolution", "node10",
		"--types", "node", "node10.ts")
	cmd.Dir = must(t, consumer)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// TestExtraPublicVerifiers verifies signatures with npm's standardwebhooks and stripe.
func TestExtraPublicVerifiers(t *testing.T) {
	t.Parallel()
	p := must(t, build)
	data := expect.Must(json.Marshal(deliveries(time.Now())))
	file := filepath.Join(t.TempDir(), "deliveries.json")
	expect.OK(t, os.WriteFile(file, data, 0o600))
	expect.NoError(t, npm(p.dir, []string{"SIGNED_DELIVERIES=" + file}, "run", "standard"))
}

// TestExtraStandardWebhooksForGo verifies signatures with Go's standardwebhooks.
func TestExtraStandardWebhooksForGo(t *testing.T) {
	t.Parallel()
	for _, d := range deliveries(time.Now()) {
		verifier, err := standardwebhooks.NewWebhook(d.Secret)
		if d.Raw {
			verifier, err = standardwebhooks.NewWebhookRaw([]byte(d.Secret))
		}
		expect.OK(t, err)
		headers := http.Header{}
		for name, value := range d.Headers {
			headers.Set(name, value)
		}
		if err := verifier.Verify([]byte(d.Body), headers); (err == nil) != d.Valid {
			t.Errorf("%s: %v, want valid %t", d.Name, err, d.Valid)
		}
	}
}
