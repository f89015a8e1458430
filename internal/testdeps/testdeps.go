// Package testdeps finds what tests need besides Go, installs it where it may,
// and decides what `go test -short` leaves out.
//
// A test that lacks something fails and says what to do. Nothing is installed
// unless QUITTANCE_TEST_INSTALL is 1, which `make test` sets, and never without
// saying so.
package testdeps

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// installEnv names the variable that, set to 1, lets tests install what they
// need.
const installEnv = "QUITTANCE_TEST_INSTALL"

// MayInstall returns an error if tests may install nothing.
func MayInstall() error {
	if os.Getenv(installEnv) == "1" {
		return nil
	}
	return fmt.Errorf("tests install nothing unless %s is 1", installEnv)
}

// Announce prints a line for whoever started the tests. `go test` hides what a
// test that passes prints, so the line goes to the terminal, too, if there is
// one.
func Announce(text string) error {
	fmt.Fprintln(os.Stderr, text)
	tty, err := os.OpenFile("/dev/tty", os.O_WRONLY, 0)
	if err != nil {
		return nil //nolint:nilerr // no terminal, as in CI
	}
	_, err = fmt.Fprintln(tty, text)
	return errors.Join(err, tty.Close())
}

// Debian installs Debian's packages, which only root can do and only where
// MayInstall allows it. The reason, as in "storetest: no PostgreSQL server
// found", is announced with the command.
func Debian(ctx context.Context, reason string, packages ...string) error {
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
	run := func(args ...string) error {
		if err := Announce(reason + ", running: apt-get " + strings.Join(args, " ")); err != nil {
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
	// The lists are as old as the image, or absent: fetch them if it matters.
	if run(install...) == nil {
		return nil
	}
	if err := run("update"); err != nil {
		return err
	}
	return run(install...)
}
