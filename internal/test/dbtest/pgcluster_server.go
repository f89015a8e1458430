package dbtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/quittance/quittance/internal/test/testdeps"
)

// minMajor is the oldest PostgreSQL that Quittance supports.
const minMajor = 15

// debianBinDirs matches the folders of the servers that Debian packages; only the client programs are on PATH there.
const debianBinDirs = "/usr/lib/postgresql/*/bin"

// server is an installation of PostgreSQL and the user who may run it.
type server struct {
	binDir string
	// cred is nil when the server runs as the current user. PostgreSQL refuses
	// to run as root; then it runs as the user postgres.
	cred *syscall.Credential
}

// findServer returns the newest usable installation, of those in folders that match the pattern binDirs and the one on
// PATH. Without a usable one it installs Debian's, if testdeps.MayInstall allows it.
func findServer(ctx context.Context, binDirs string) (server, error) {
	dir, err := newestBinDir(ctx, binDirs)
	if err != nil {
		return server{}, err
	}
	if dir == "" {
		if err := testdeps.Debian(ctx, "dbtest: no PostgreSQL server found", "postgresql"); err != nil {
			return server{}, fmt.Errorf("no PostgreSQL server, version %d or newer, found in %s or on PATH: "+
				`run "make test" as root, install one (on Debian and Ubuntu: sudo apt-get install postgresql), `+
				`set %s to the URL of one, or leave it out with "go test -short": %w`, minMajor, binDirs, serverEnv, err)
		}
		if dir, err = newestBinDir(ctx, binDirs); err != nil {
			return server{}, err
		}
		if dir == "" {
			return server{}, fmt.Errorf("the package postgresql was installed, but brought no PostgreSQL of version %d or newer: "+
				"install one or set %s to the URL of one", minMajor, serverEnv)
		}
	}
	if os.Geteuid() != 0 {
		return server{binDir: dir}, nil
	}
	cred, err := postgresUser()
	return server{binDir: dir, cred: cred}, err
}

// newestBinDir returns the folder of the newest server, or "" if all are too old.
func newestBinDir(ctx context.Context, pattern string) (string, error) {
	dirs, err := filepath.Glob(pattern)
	if err != nil {
		return "", fmt.Errorf("look for PostgreSQL: %w", err)
	}
	if out, err := exec.CommandContext(ctx, "pg_config", "--bindir").Output(); err == nil {
		dirs = append(dirs, strings.TrimSpace(string(out)))
	}
	var best string
	newest := minMajor - 1
	for _, dir := range dirs {
		// Client packages leave such folders without a server in them.
		out, err := exec.CommandContext(ctx, filepath.Join(dir, "postgres"), "--version").Output()
		if err != nil {
			continue
		}
		if major := majorVersion(string(out)); major > newest {
			best, newest = dir, major
		}
	}
	return best, ctx.Err()
}

// majorVersion reads "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)" as 15, and anything else as 0.
func majorVersion(text string) int {
	_, version, _ := strings.Cut(text, "(PostgreSQL) ")
	end := strings.IndexFunc(version, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(version)
	}
	major, err := strconv.Atoi(version[:end])
	if err != nil {
		return 0
	}
	return major
}

// postgresUser returns the user whom Debian's package made for the server.
func postgresUser() (*syscall.Credential, error) {
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL does not run as root and there is no user postgres to run it: "+
			"create the user (useradd --system postgres) or run as another user: %w", err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("user postgres has the uid %q, expected a number: %w", u.Uid, err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("user postgres has the gid %q, expected a number: %w", u.Gid, err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

func (s server) bin(name string) string { return filepath.Join(s.binDir, name) }

// command prepares one of the server's programs.
func (s server) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	return s.prepare(exec.CommandContext(ctx, s.bin(name), args...))
}

// system prepares a system program that runs to its end.
func (s server) system(name string, args ...string) *exec.Cmd {
	return s.prepare(exec.Command(name, args...)) //nolint:noctx // it must outlive every context
}

// prepare makes a program run as the server's user, in a folder and with an environment that do not
// depend on the caller's: PGDATA, PGPORT and the like would change what the programs do.
func (s server) prepare(cmd *exec.Cmd) *exec.Cmd {
	cmd.Dir = "/"
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "PG") || strings.HasPrefix(v, "LC_") || strings.HasPrefix(v, "LANG")
	})
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.cred}
	return cmd
}

// mkdirTemp makes a new folder in parent that belongs to the server's user. That
// user must be allowed to remove it, as from tempDir and memoryDir.
func (s server) mkdirTemp(parent string) (string, error) {
	dir, err := os.MkdirTemp(parent, "quittance-postgres-")
	if err != nil {
		return "", fmt.Errorf("make a folder for PostgreSQL: %w", err)
	}
	if s.cred != nil {
		if err := os.Chown(dir, int(s.cred.Uid), int(s.cred.Gid)); err != nil {
			return "", errors.Join(fmt.Errorf("give a folder to PostgreSQL's user: %w", err), os.Remove(dir))
		}
	}
	return dir, nil
}

// tempDir is the folder for clusters. Root's own TMPDIR may be closed to the user postgres.
func tempDir() string {
	if os.Geteuid() == 0 {
		return "/tmp"
	}
	return os.TempDir()
}

// memoryDir is the folder for clusters with data that may be lost: one in memory if there is room,
// where making a database, 300 files, takes a tenth of the time.
func memoryDir() string { return cmp.Or(testdeps.MemoryDir(), tempDir()) }
