// Package testdeps installs what tests need and a machine lacks, and never
// without saying so.
package testdeps

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Announce tells whoever started the tests what happens to the machine. `go
// test` hides what a test that passes prints, so it is said on the terminal,
// too, if there is one.
func Announce(text string) error {
	fmt.Fprintln(os.Stderr, text)
	tty, err := os.OpenFile("/dev/tty", os.O_WRONLY, 0)
	if err != nil {
		return nil //nolint:nilerr // no terminal, as in CI
	}
	_, err = fmt.Fprintln(tty, text)
	return errors.Join(err, tty.Close())
}

// Debian installs Debian's packages, which only root can do. The reason, as in
// "storetest: no PostgreSQL server found", goes with what is announced.
func Debian(ctx context.Context, reason string, packages ...string) error {
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
