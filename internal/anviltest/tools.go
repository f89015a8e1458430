package anviltest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/quittance/quittance/internal/testdeps"
)

// version is that of the tools that are installed. Others are taken as they
// are found.
const version = "1.7.1"

// installTimeout bounds the installation, that of npm included.
const installTimeout = 5 * time.Minute

// tools are the paths of the programs.
type tools struct{ anvil, cast string }

// findTools finds the programs, or installs them, at the first call. It prints
// the error, which all tests would repeat otherwise.
var findTools = sync.OnceValues(func() (tools, error) {
	found, err := find()
	if err != nil {
		fmt.Fprintf(os.Stderr, "anviltest: %v\n", err)
	}
	return found, err
})

func find() (tools, error) {
	ctx, cancel := context.WithTimeout(context.Background(), installTimeout)
	defer cancel()
	anvil, err := findTool(ctx, "anvil", "QUITTANCE_TEST_ANVIL")
	if err != nil {
		return tools{}, err
	}
	cast, err := findTool(ctx, "cast", "QUITTANCE_TEST_CAST")
	return tools{anvil, cast}, err
}

// findTool returns the path of a tool: the one that the environment variable
// gives, the one on PATH, or the one that was installed from npm, which is
// done when it was not.
func findTool(ctx context.Context, name, env string) (string, error) {
	if path := os.Getenv(env); path != "" {
		return path, nil
	}
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	path, err := installed(ctx, name)
	if err != nil {
		return "", fmt.Errorf("%s of Foundry is neither on PATH nor installed for tests: "+
			`run "make test", which installs it with npm, or install Foundry from https://getfoundry.sh, `+
			`set %s to the program's path, or leave it out with "go test -short": %w`, name, env, err)
	}
	return path, nil
}

// installed returns the path of a tool in the user's cache, where it is put
// when it is not there and testdeps.MayInstall allows it. One process at a time
// does so.
func installed(ctx context.Context, name string) (_ string, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the folder to install into: %w", err)
	}
	dir := filepath.Join(cache, "quittance", "foundry-"+version)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make the folder to install into: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return "", fmt.Errorf("open the lock of the installation: %w", err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	path := filepath.Join(dir, name, "node_modules", scope, packageOf(name), "bin", name)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := testdeps.MayInstall(); err != nil {
		return "", err
	}
	return path, install(ctx, name, filepath.Join(dir, name))
}

// scope is npm's of Foundry.
const scope = "@foundry-rs"

// packageOf returns the package that holds a tool for this machine. The one
// called as the tool itself only picks among these.
func packageOf(name string) string {
	return name + "-" + runtime.GOOS + "-" + runtime.GOARCH
}

// install puts a tool's package into the folder dir, whole or not at all.
func install(ctx context.Context, name, dir string) error {
	npm, err := testdeps.NPM(ctx, "anviltest")
	if err != nil {
		return err
	}
	what := scope + "/" + packageOf(name) + "@" + version
	if err := testdeps.Announce(fmt.Sprintf("anviltest: no %s found, running: npm install %s, into %s", name, what, dir)); err != nil {
		return err
	}
	partial := dir + ".partial" // of this process alone: the lock is held
	if err := os.RemoveAll(partial); err != nil {
		return fmt.Errorf("remove an installation that was broken off: %w", err)
	}
	if err := os.Mkdir(partial, 0o700); err != nil {
		return fmt.Errorf("make the folder to install into: %w", err)
	}
	// The programs need no script of the package's to be run.
	cmd := exec.CommandContext(ctx, npm, "install", "--prefix", partial, "--ignore-scripts", "--no-audit", "--no-fund", what)
	cmd.Dir = partial
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("npm install %s: %w\n%s", what, err, out)
	}
	if err := errors.Join(os.RemoveAll(dir), os.Rename(partial, dir)); err != nil {
		return fmt.Errorf("keep what was installed: %w", err)
	}
	return nil
}
