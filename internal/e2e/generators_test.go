package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/testdeps"
)

// generatorPatience bounds the generation and compilation of all clients. A first compilation takes
// minutes.
const generatorPatience = 10 * time.Minute

// makeClients are the commands by which public generators make clients from openapi.yaml as it is,
// and which compile these. They run in a copy of tools/generators, with openapi.yaml in it.
var makeClients = [][]string{
	{"go", "tool", "-modfile={tools}/go.mod", "oapi-codegen", "-generate", "types,client", "-package", "client", "-o", "oapicodegen/client/client.go", "openapi.yaml"},
	{"go", "tool", "ogen", "--loglevel", "error", "--package", "client", "--target", "ogen/client", "openapi.yaml"},
	{"go", "build", "-trimpath", "-o", "bin/", "./oapicodegen", "./ogen"},
	{"node_modules/.bin/openapi-typescript", "openapi.yaml", "-o", "openapi.ts"},
	{"node_modules/.bin/openapi-ts", "--silent", "--no-log-file", "-i", "openapi.yaml", "-o", "hey-api", "-c", "@hey-api/client-fetch"},
	{"node_modules/.bin/tsc"},
}

// createWith are the commands that create an invoice with the client of each generator.
var createWith = map[string][]string{
	"oapi-codegen": {"bin/oapicodegen"}, "ogen": {"bin/ogen"},
	"openapi-typescript": {"node", "dist/openapi-typescript.js"}, "hey-api": {"node", "dist/hey-api.js"},
}

// TestGenerators creates an invoice with each generated client.
func TestGenerators(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), generatorPatience)
	defer cancel()
	dir := makeGenerated(ctx, t)
	w, _ := startWorld(t)
	info := w.info.Load()
	_, key, err := w.api().CreateKey(ctx, apitypes.CreateKeyRequest{Name: "generated", Scopes: []string{"invoices:write"}})
	if err != nil {
		t.Fatal(err)
	}
	for name, command := range createWith {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(ctx, command[0], append(command[1:], info.BaseURL, info.Merchant.ID, info.Merchant.Address, info.Chain.ChainKey, key)...)
			cmd.Dir = dir
			var problems strings.Builder
			cmd.Stderr = &problems
			id, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v\n%s", err, problems.String())
			}
			found, err := w.api().Invoice(ctx, strings.TrimSpace(string(id)))
			if err != nil || found.Amount != "4900000" || found.MerchantID != info.Merchant.ID {
				t.Errorf("%s made %+v, %v", id, found, err)
			}
		})
	}
}

// makeGenerated returns a folder with the compiled clients.
func makeGenerated(ctx context.Context, t *testing.T) string {
	t.Helper()
	const generators = "../../tools/generators"
	modules, err := testdeps.NodeModules(ctx, "e2e", generators)
	if err != nil {
		t.Fatal(err)
	}
	tools, err := filepath.Abs("../../tools")
	if err != nil {
		t.Fatal(err)
	}
	document, err := os.ReadFile("../../openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(generators)); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "openapi.yaml"), document, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"oapicodegen/client", "ogen/client"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, command := range makeClients {
		args := strings.Split(strings.ReplaceAll(strings.Join(command, "\n"), "{tools}", tools), "\n")
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	return dir
}
