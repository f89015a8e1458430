package store

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// parsePostgres returns the configuration of connections to the URL's server. With
// several hosts, the first one that suits is chosen, and all hosts together have
// connectTimeout: a host that does not answer must leave time for the next one.
func parsePostgres(url string, suits pgconn.ValidateConnectFunc) (*pgx.ConnConfig, error) {
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, errors.New("database postgres: the URL cannot be read; expected postgres://USER:PASSWORD@HOST:PORT/DATABASE")
	}
	cfg.DialFunc = dialer().DialContext
	hosts := len(hostsOf(cfg))
	if hosts > 1 && cfg.ValidateConnect == nil {
		cfg.ValidateConnect = suits
	}
	if limit := connectTimeout / time.Duration(hosts); cfg.ConnectTimeout == 0 || cfg.ConnectTimeout > limit {
		cfg.ConnectTimeout = limit
	}
	return cfg, nil
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
