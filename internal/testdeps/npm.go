package testdeps

import (
	"context"
	"fmt"
	"os/exec"
)

// NPM returns the path of npm, which comes with node, and installs it by
// Debian when it is not there. who, as in "anviltest", says on whose behalf.
func NPM(ctx context.Context, who string) (string, error) {
	npm, err := exec.LookPath("npm")
	if err == nil {
		return npm, nil
	}
	if err := Debian(ctx, who+": no npm found", "npm"); err != nil {
		return "", fmt.Errorf(`no npm on PATH: run "make test" as root, install it (on Debian and Ubuntu: sudo apt-get install npm), `+
			`or leave it out with "go test -short": %w`, err)
	}
	if npm, err = exec.LookPath("npm"); err != nil {
		return "", fmt.Errorf("the package npm was installed, but brought no npm: %w", err)
	}
	return npm, nil
}
