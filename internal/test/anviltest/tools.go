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
	"time"

	"github.com/quittance/quittance/internal/test/testdeps"
)

// version is the version that is installed. A tool that is found may have another.
const version = "1.7.1"

// installTimeout bounds the installation, including that of npm.
const installTimeout = 5 * time.Minute

// tools are the paths of the programs.
type tools struct{ anvil, cast string }

// findTools finds or installs the programs at the first call. It prints the error once, instead of in each test.
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

// findTool returns the path of a tool: from the environment variable, from PATH, or from
// npm, by which it is installed if necessary.
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
			`run "make check", which installs it with npm, or install Foundry from https://getfoundry.sh, `+
			`set %s to the program's path, or leave it out as "make test" does: %w`, name, env, err)
	}
	return path, nil
}

// installed returns the path of a tool in the user's cache. It installs a missing tool if
// testdeps.MayInstall allows it, under a lock.
func installed(ctx context.Context, name string) (_ string, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the folder to install into: %w", err)
	}
	dir := filepath.Join(cache, "quittance", "foundry-"+version)
	lock, err := testdeps.Lock(filepath.Join(dir, "lock"))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	path := filepath.Join(dir, name, "node_modules", scope, packageOf(name), "bin", name)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := testdeps.MayInstall(); err != nil {
		return "", err
	}
	return path, install(ctx, name, filepath.Join(dir, name))
}

// scope is Foundry's scope in npm.
const scope = "@foundry-rs"

// packageOf returns the npm package with a tool's binary for this platform. The package
// with the tool's name only selects one of these.
func packageOf(name string) string {
	return name + "-" + runtime.GOOS + "-" + runtime.GOARCH
}

// install installs a tool's package in the folder dir, atomically.
func install(ctx context.Context, name, dir string) error {
	npm, err := testdeps.Program(ctx, "anviltest", "npm")
	if err != nil {
		return err
	}
	what := scope + "/" + packageOf(name) + "@" + version
	if err := testdeps.Notify(fmt.Sprintf("anviltest: no %s found, running: npm install %s, into %s", name, what, dir)); err != nil {
		return err
	}
	partial := dir + ".partial" // the lock protects it
	if err := os.RemoveAll(partial); err != nil {
		return fmt.Errorf("remove an installation that was broken off: %w", err)
	}
	if err := os.Mkdir(partial, 0o700); err != nil {
		return fmt.Errorf("make the folder to install into: %w", err)
	}
	// The programs do not need the package's scripts.
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
