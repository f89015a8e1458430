package db

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// errUnreadableURL describes the form of a PostgreSQL URL. It does not say what is wrong with one: the
// parser may take a part of a password for a port.
var errUnreadableURL = errors.New("cannot be read; expected postgres://USER:PASSWORD@HOST:PORT/DATABASE, where the port is a number, " +
	"other characters are escaped as %40 is for @, sslmode is one of PostgreSQL's modes, and the files of certificates exist")

// CheckPostgresURL returns an error if a URL of a PostgreSQL database cannot be read. The error holds no part of it.
func CheckPostgresURL(url string) error {
	if _, err := pgx.ParseConfig(url); err != nil {
		return errUnreadableURL
	}
	return nil
}

// parsePostgres returns the configuration of connections to the URL's server. Of several hosts, pgx
// uses the first suitable one. All hosts share connectTimeout: a host that does not answer must leave
// time for the next one. Without sslmode, pgx would fall back to plaintext, which is for this machine only.
func parsePostgres(url string, suits pgconn.ValidateConnectFunc) (*pgx.ConnConfig, error) {
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("database postgres: the URL %w", errUnreadableURL)
	}
	if !strings.Contains(url, "sslmode=") && os.Getenv("PGSSLMODE") == "" {
		cfg.Fallbacks = slices.DeleteFunc(cfg.Fallbacks, func(f *pgconn.FallbackConfig) bool { return f.TLSConfig == nil && !isLocal(f.Host) })
	}
	cfg.DialFunc = dialer().DialContext
	hosts := len(hostsOf(cfg))
	if hosts > 1 && cfg.ValidateConnect == nil {
		cfg.ValidateConnect = suits
	}
	limit := connectTimeout / time.Duration(hosts)
	if cfg.ConnectTimeout == 0 || hosts > 1 && cfg.ConnectTimeout > limit {
		cfg.ConnectTimeout = limit
	}
	return cfg, nil
}

// isLocal reports whether a host is this machine: a loopback address, or the folder of a socket.
func isLocal(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasPrefix(host, "/") || err == nil && a.IsLoopback()
}

// hostsOf returns the hosts of a configuration as HOST:PORT, each once. pgx tries some
// of them twice: with TLS, and without.
func hostsOf(cfg *pgx.ConnConfig) []string {
	hosts := []string{net.JoinHostPort(cfg.Host, strconv.Itoa(int(cfg.Port)))}
	for _, f := range cfg.Fallbacks {
		if host := net.JoinHostPort(f.Host, strconv.Itoa(int(f.Port))); !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// address describes the server in errors.
func address(cfg *pgx.ConnConfig) string {
	return fmt.Sprintf("PostgreSQL at %s", strings.Join(hostsOf(cfg), " or "))
}
