// Package testdeps finds and installs the programs other than Go that tests need.
//
// A test that lacks a program fails with instructions. Programs are installed only if QUITTANCE_TEST_INSTALL is 1, as
// make sets it, and each installation is printed.
package testdeps

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// installEnv is the environment variable that allows installations if it is 1.
const installEnv = "QUITTANCE_TEST_INSTALL"

// MayInstall returns an error unless tests may install programs.
func MayInstall() error {
	if os.Getenv(installEnv) == "1" {
		return nil
	}
	return fmt.Errorf("tests install programs only if %s is 1", installEnv)
}

// Notify prints a line to standard error and to the terminal, if there is one, because
// `go test` hides the output of tests that pass.
func Notify(text string) error {
	fmt.Fprintln(os.Stderr, text)
	tty, err := os.OpenFile("/dev/tty", os.O_WRONLY, 0)
	if err != nil {
		return nil //nolint:nilerr // no terminal, as in CI
	}
	_, err = fmt.Fprintln(tty, text)
	return errors.Join(err, tty.Close())
}

// Debian installs Debian packages. It fails if the user is not root or if MayInstall fails. It announces the commands
// with the reason, as in "dbtest: no PostgreSQL server found".
func Debian(ctx context.Context, reason string, packages ...string) (err error) {
	if err := MayInstall(); err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return errors.New("only root can install it from here")
	}
	apt, err := exec.LookPath("apt-get")
	if err != nil {
		return fmt.Errorf("it can be installed from here with apt-get only: %w", err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return fmt.Errorf("find the folder of the lock: %w", err)
	}
	// apt-get fails while another one runs.
	lock, err := Lock(filepath.Join(cache, "quittance", "apt.lock"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	run := func(args ...string) error {
		if err := Notify(reason + ", running: apt-get " + strings.Join(args, " ")); err != nil {
			return err
		}
		cmd := exec.CommandContext(ctx, apt, args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("apt-get %s: %w", strings.Join(args, " "), err)
		}
		return nil
	}
	install := append([]string{"install", "-y", "--no-install-recommends"}, packages...)
	// The package lists may be outdated or missing: update them only if necessary.
	if run(install...) == nil {
		return nil
	}
	if err := run("update"); err != nil {
		return err
	}
	return run(install...)
}
