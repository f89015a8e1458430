// Package generators_test makes clients from openapi.yaml with public generators.
package generators_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// patience bounds the whole test. A first compilation takes minutes.
const patience = 15 * time.Minute

// makeClients are the commands by which the generators make clients from openapi.yaml, and which
// compile and vet these and the service. They run in a copy of this folder, with openapi.yaml in it.
// {root} is the repository.
var makeClients = []string{
	"npm ci --ignore-scripts --silent --no-fund --no-audit",
	"go tool -modfile={root}/tools/go.mod oapi-codegen -generate types,client -package client" +
		" -o oapicodegen/client/client.go openapi.yaml",
	"go tool ogen --loglevel error --package client --target ogen/client openapi.yaml",
	"go build -trimpath -o bin/ ./oapicodegen ./ogen",
	"go vet ./oapicodegen ./ogen",
	"node_modules/.bin/openapi-typescript openapi.yaml -o openapi.ts",
	"node_modules/.bin/openapi-ts --silent --no-log-file -i openapi.yaml -o hey-api -c @hey-api/client-fetch",
	"node_modules/.bin/tsc",
	"go build -C {root} -trimpath -o {copy}/bin/ ./cmd/quittance",
}

// createWith are the commands that create an invoice with the client of each generator.
var createWith = map[string]string{
	"oapi-codegen": "bin/oapicodegen", "ogen": "bin/ogen",
	"openapi-typescript": "node dist/openapi-typescript.js", "hey-api": "node dist/hey-api.js",
}

// TestExtraGenerators creates an invoice with each generated client.
func TestExtraGenerators(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	folder := makeGenerated(ctx, t)
	w := startService(ctx, t, folder)
	var made struct{ Secret string }
	w.call(ctx, t, http.MethodPost, "/api/keys", `{"name": "generated", "scopes": ["invoices:write"]}`, &made)
	for name, command := range createWith {
		t.Run(name, func(t *testing.T) {
			args := append(strings.Fields(command), w.BaseURL, w.Merchant.ID, w.Merchant.Address, w.Chain.ChainKey, made.Secret)
			cmd := exec.CommandContext(ctx, args[0], args[1:]...)
			cmd.Dir = folder
			var problems strings.Builder
			cmd.Stderr = &problems
			id, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v\n%s", err, problems.String())
			}
			var found struct {
				Invoice struct{ Amount, MerchantID string }
			}
			w.call(ctx, t, http.MethodGet, "/api/invoices/"+strings.TrimSpace(string(id)), "", &found)
			if found.Invoice.Amount != "4900000" || found.Invoice.MerchantID != w.Merchant.ID {
				t.Errorf("%s made %+v", id, found.Invoice)
			}
		})
	}
}

// makeGenerated returns a folder with the compiled clients and the compiled service.
func makeGenerated(ctx context.Context, t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	document, err := os.ReadFile(filepath.Join(root, "openapi.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS(".")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "openapi.yaml"), document, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, made := range []string{"oapicodegen/client", "ogen/client"} {
		if err := os.Mkdir(filepath.Join(folder, made), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	places := strings.NewReplacer("{root}", root, "{copy}", folder)
	for _, command := range makeClients {
		began := time.Now()
		args := strings.Fields(command)
		for i := range args {
			args[i] = places.Replace(args[i])
		}
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Dir = folder
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
		}
		t.Logf("%.0f s: %s", time.Since(began).Seconds(), command)
	}
	return folder
}

// service is a running quittance dev, described by the output of --info.
type service struct {
	BaseURL  string
	Merchant struct{ ID, Address string }
	Chain    struct{ ChainKey string }
}

// startService runs the service of a folder until the test ends.
func startService(ctx context.Context, t *testing.T, folder string) *service {
	t.Helper()
	data := t.TempDir()
	info := filepath.Join(data, "info.json")
	cmd := exec.CommandContext(ctx, filepath.Join(folder, "bin/quittance"), "dev", "--listen", "127.0.0.1:0",
		"--data", filepath.Join(data, "world"), "--info", info)
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()         // it was killed
	})
	// It prints a guide once it is ready. The rest of the guide fits the pipe.
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("quittance dev ended: %q, %v", line, err)
	}
	text, err := os.ReadFile(info)
	if err != nil {
		t.Fatal(err)
	}
	var s service
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return &s
}

// call makes a request and decodes the answer, which must be a success.
func (s *service) call(ctx context.Context, t *testing.T, method, path, body string, answer any) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, s.BaseURL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	err = json.NewDecoder(response.Body).Decode(answer)
	if closed := response.Body.Close(); err != nil || closed != nil || response.StatusCode >= http.StatusBadRequest {
		t.Fatal(fmt.Sprintf("%s %s: %s", method, path, response.Status), err, closed)
	}
}
