package testdeps

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// NodeModules installs the npm packages that the package-lock.json in dir names, in the user's cache,
// and returns the path of their node_modules. who, as in "apidocs", is the test that needs them.
// Installed packages are reused; their scripts are not run.
func NodeModules(ctx context.Context, who, dir string) (_ string, err error) {
	lockFile, err := os.ReadFile(filepath.Join(dir, "package-lock.json"))
	if err != nil {
		return "", fmt.Errorf("read which packages to install: %w", err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the folder to install into: %w", err)
	}
	sum := sha256.Sum256(lockFile)
	home := filepath.Join(cache, "quittance", "npm-"+hex.EncodeToString(sum[:8]))
	lock, err := Lock(home + ".lock")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	modules := filepath.Join(home, "node_modules")
	if _, err := os.Stat(modules); err == nil {
		return modules, nil
	}
	if err := MayInstall(); err != nil {
		return "", fmt.Errorf(`%s: the packages of %s are not installed: run "make check", or leave it out as "make test" does: %w`, who, dir, err)
	}
	npm, err := Program(ctx, who, "npm")
	if err != nil {
		return "", err
	}
	return modules, npmCI(ctx, who, npm, dir, home)
}

// npmCI installs the packages of dir in the folder home, atomically. The caller holds home's lock.
func npmCI(ctx context.Context, who, npm, dir, home string) error {
	if err := Notify(fmt.Sprintf("%s: running npm ci for %s, into %s", who, dir, home)); err != nil {
		return err
	}
	partial := home + ".partial"
	if err := os.RemoveAll(partial); err != nil {
		return fmt.Errorf("remove an installation that was broken off: %w", err)
	}
	if err := os.Mkdir(partial, 0o700); err != nil {
		return fmt.Errorf("make the folder to install into: %w", err)
	}
	for _, name := range []string{"package.json", "package-lock.json"} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return fmt.Errorf("read which packages to install: %w", err)
		}
		if err := os.WriteFile(filepath.Join(partial, name), content, 0o600); err != nil {
			return fmt.Errorf("copy which packages to install: %w", err)
		}
	}
	cmd := exec.CommandContext(ctx, npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	cmd.Dir = partial
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("npm ci: %w\n%s", err, out)
	}
	return os.Rename(partial, home)
}
