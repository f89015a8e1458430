package testdeps

import (
	"context"
	"fmt"
	"os/exec"
)

// Program returns the path of a program that Debian has in the package of the same name, such as npm,
// and installs it if it is missing. who, as in "anviltest", is the test that needs it.
func Program(ctx context.Context, who, name string) (string, error) {
	return ProgramOf(ctx, who, name, name)
}

// ProgramOf is Program for a program of a Debian package with another name.
func ProgramOf(ctx context.Context, who, pkg, name string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil {
		return path, nil
	}
	if err := Debian(ctx, fmt.Sprintf("%s: no %s found", who, name), pkg); err != nil {
		return "", fmt.Errorf(`no %[1]s on PATH: run "make check" as root, install it (on Debian and Ubuntu: sudo apt-get install %[2]s), `+
			`or leave it out as "make test" does: %[3]w`, name, pkg, err)
	}
	if path, err = exec.LookPath(name); err != nil {
		return "", fmt.Errorf("the package %s was installed, but did not bring the program: %w", pkg, err)
	}
	return path, nil
}
