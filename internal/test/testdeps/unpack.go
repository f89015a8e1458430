package testdeps

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Unpacked is ProgramOf for a package that must not be installed, because that would start a service: it is downloaded
// and unpacked in the user's cache. It needs no root unless the package lists are missing.
func Unpacked(ctx context.Context, who, pkg, name string) (_ string, err error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the folder of unpacked packages: %w", err)
	}
	dir := filepath.Join(cache, "quittance", "debian", pkg)
	path := filepath.Join(dir, "usr", "bin", name)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := MayInstall(); err != nil {
		return "", fmt.Errorf(`%s: no %s on PATH: run "make check", install it (on Debian and Ubuntu: the package %s), `+
			`or leave it out as "make test" does: %w`, who, name, pkg, err)
	}
	lock, err := Lock(filepath.Join(cache, "quittance", "apt.lock"))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if _, err := os.Stat(path); err == nil { // another process was faster
		return path, nil
	}
	return path, unpack(ctx, who, pkg, dir)
}

// unpack downloads a Debian package and unpacks it as dir.
func unpack(ctx context.Context, who, pkg, dir string) (err error) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return fmt.Errorf("make the folder of unpacked packages: %w", err)
	}
	work, err := os.MkdirTemp(filepath.Dir(dir), pkg)
	if err != nil {
		return fmt.Errorf("make a folder for a package: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	run := func(program string, args ...string) error {
		if err := Notify(fmt.Sprintf("%s: running: %s %q", who, program, args)); err != nil {
			return err
		}
		cmd := exec.CommandContext(ctx, program, args...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = work, os.Stderr, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s %q: %w", program, args, err)
		}
		return nil
	}
	if run("apt-get", "download", pkg) != nil { // the package lists may be outdated or missing
		if err := errors.Join(run("apt-get", "update"), run("apt-get", "download", pkg)); err != nil {
			return err
		}
	}
	found, err := filepath.Glob(filepath.Join(work, pkg+"_*.deb"))
	if err != nil || len(found) != 1 {
		return fmt.Errorf("apt-get download left %q: %w", found, err)
	}
	if err := run("dpkg-deb", "--extract", found[0], filepath.Join(work, "root")); err != nil {
		return err
	}
	return os.Rename(filepath.Join(work, "root"), dir)
}
