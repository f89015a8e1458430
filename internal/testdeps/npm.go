package testdeps

import (
	"context"
	"fmt"
	"os/exec"
)

// NPM returns the path of npm, and installs it with Debian if it is missing. who names
// the caller in the announcement, as in "anviltest".
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
		return "", fmt.Errorf("the package npm was installed, but npm is not on PATH: %w", err)
	}
	return npm, nil
}
