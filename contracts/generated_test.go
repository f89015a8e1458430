package contracts_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quittance/quittance/contracts/internal/bindgen"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestExtraArtifactsAreFresh recomputes the digest that compile.mjs writes into each artifact.
func TestExtraArtifactsAreFresh(t *testing.T) {
	paths := []string{"compile.mjs", "package-lock.json"}
	for _, pattern := range []string{"src/*.sol", "test/mocks/*.sol"} {
		found := expect.Must(filepath.Glob(pattern))
		paths = append(paths, found...)
	}
	slices.Sort(paths)
	digest, sources := sha256.New(), 0
	for _, path := range paths {
		raw := expect.Must(os.ReadFile(path))
		expect.Success(t)(fmt.Fprintf(digest, "%s\x00%d\x00%s", path, len(raw), raw))
		if strings.HasSuffix(path, ".sol") {
			sources++
		}
	}
	want := hex.EncodeToString(digest.Sum(nil))

	artifacts := expect.Must(filepath.Glob("artifacts/*.json"))
	if len(artifacts) != sources {
		t.Errorf("%d artifacts for %d sources: run make generate", len(artifacts), sources)
	}
	for _, path := range artifacts {
		artifact, err := bindgen.Read("artifacts", strings.TrimSuffix(filepath.Base(path), ".json"))
		expect.OK(t, err)
		if artifact.Inputs != want {
			t.Errorf("%s was compiled from other sources: run make generate", path)
		}
	}
}

func TestExtraBindingsAreFresh(t *testing.T) {
	for _, bindings := range bindgen.Packages {
		want, err := bindings.Generate("artifacts")
		expect.OK(t, err)
		got := expect.Must(os.ReadFile(bindings.File))
		if string(got) != want {
			t.Errorf("%s is not what the artifacts give: run make generate", bindings.File)
		}
	}
}
