package apidocs

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/test/testdeps"
)

// lintPatience bounds the installation of the linters and their runs.
const lintPatience = 5 * time.Minute

// TestExtraLint checks openapi.yaml with Redocly and Spectral: no errors and no warnings.
func TestExtraLint(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), lintPatience)
	defer cancel()
	const tools = "../../../tools/openapi"
	modules, err := testdeps.NodeModules(ctx, "apidocs", tools)
	if err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"redocly":  {"lint", "--config", filepath.Join(tools, "redocly.yaml")},
		"spectral": {"lint", "--fail-severity", "hint", "--ruleset", filepath.Join(tools, "spectral.yaml")},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(ctx, filepath.Join(modules, ".bin", name), append(args, "../../../openapi.yaml")...)
			cmd.Env = append(os.Environ(), "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
