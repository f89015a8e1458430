package apidocs

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/testdeps"
)

// lintPatience bounds the run of a linter.
const lintPatience = 5 * time.Minute

// TestExtraLint checks openapi.yaml with Redocly and Spectral: no errors and no warnings.
func TestExtraLint(t *testing.T) {
	t.Parallel()
	tools := testdeps.Repo("tools/openapi")
	modules, err := testdeps.NodeModules(t.Context(), "apidocs", tools)
	expect.OK(t, err)
	for name, args := range map[string][]string{
		"redocly":  {"lint", "--config", filepath.Join(tools, "redocly.yaml")},
		"spectral": {"lint", "--fail-severity", "hint", "--ruleset", filepath.Join(tools, "spectral.yaml")},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), lintPatience)
			defer cancel()
			cmd := exec.CommandContext(ctx, filepath.Join(modules, ".bin", name), append(args, testdeps.Repo("openapi.yaml"))...)
			cmd.Env = append(os.Environ(), "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
