package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/admin"
	"github.com/quittance/quittance/internal/config"
)

// defaultURL is the URL of quittance dev and quittance serve by default.
const defaultURL = "http://127.0.0.1:8080"

// callTimeout bounds a call of the service. Streams have no such bound.
const callTimeout = 30 * time.Second

// keyVariable is the environment variable with the key for requests to a service.
const keyVariable = "QUITTANCE_API_KEY"

// remote is the service that a command calls: at a URL, or the one of a configuration. Without both it
// is the profile's service, or the one at defaultURL.
type remote struct{ url, config string }

// remoteFlags adds the flags that choose the service.
func remoteFlags(cmd *cobra.Command) *remote {
	r := new(remote)
	cmd.Flags().StringVar(&r.url, "url", "",
		"`URL` of the service (default: that of quittance login, else "+defaultURL+"); its key is read from the environment variable "+keyVariable)
	cmd.Flags().StringVar(&r.config, "config", "", "the service of this configuration `FILE`, with the operator's key that it names")
	cobra.CheckErr(cmd.MarkFlagFilename("config", "yaml", "yml"))
	cmd.MarkFlagsMutuallyExclusive("url", "config")
	return r
}

// adminFlags adds the flags that choose the service for commands that manage keys or merchants.
func adminFlags(cmd *cobra.Command) *remote {
	r := remoteFlags(cmd)
	cmd.Flags().Lookup("config").Usage = "in the database of this configuration `FILE`; the service need not run"
	return r
}

// client returns a client of the service. The key of a profile is sent only to the profile's URL.
func (r *remote) client(env environment) (*client.Client, error) {
	key := env.key
	var local []client.Option
	switch {
	case r.config != "":
		cfg, err := loadConfig(r.config)
		if err != nil {
			return nil, err
		}
		at := serviceAt(cfg.LocalAPI())
		r.url, local = at.URL, []client.Option{client.WithHTTPClient(&http.Client{Transport: at.Transport()})}
		if key == "" && cfg.OperatorKey != (access.Key{}) {
			key = cfg.OperatorKey.Reveal()
		}
	case r.url == "" || key == "":
		saved, err := readProfile(env.profile)
		if err != nil {
			return nil, err
		}
		r.url = cmp.Or(r.url, saved.URL, defaultURL)
		if key == "" && r.url == saved.URL {
			key = saved.Key
		}
	}
	return openClient(r.url, key, local...)
}

// serviceCall makes calls of the service for a command with arguments.
type serviceCall[T any] func(ctx context.Context, c *client.Client, args []string) (T, error)

// callCommand completes a command that calls the service. With --json it writes the answer in the form of a route's,
// otherwise show prints it.
func callCommand[T any](
	env environment, cmd *cobra.Command, at *remote, route string, call serviceCall[T], show func(T) error,
) *cobra.Command {
	asJSON := jsonFlag(cmd, "write JSON, as the service's "+route+" does")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := at.client(env)
		if err != nil {
			return err
		}
		answer, err := call(cmd.Context(), c, args)
		switch {
		case err != nil:
			return noService(err)
		case *asJSON:
			return env.writeJSON(answer)
		}
		return show(answer)
	}
	return cmd
}

// repeatable returns the options of a request that may be repeated with a key. Without one, the client makes one.
func repeatable(key string) []client.Option {
	if key == "" {
		return nil
	}
	return []client.Option{client.IdempotencyKey(key)}
}

// serviceAt returns the URL of a door of the service on this machine.
func serviceAt(door config.LocalDoor) admin.Service {
	return admin.Service{URL: door.URL, Dial: door.Dial}
}

// openClient returns a client of the service at a URL.
func openClient(url, key string, options ...client.Option) (*client.Client, error) {
	options = append(options, client.WithTimeouts(callTimeout, 0), client.WithRetries(0))
	if key != "" {
		options = append(options, client.WithKey(key))
	}
	c, err := client.New(url, options...)
	if errors.Is(err, client.ErrKey) {
		return nil, usageError{err}
	}
	if err != nil {
		return nil, usageError{fmt.Errorf("--url %q is no address of a service; want one such as %s", url, defaultURL)}
	}
	return c, nil
}

// noService adds advice to a request's error if no service answers at --url, or if it does not accept
// the key.
func noService(err error) error {
	if dial := (*net.OpError)(nil); errors.As(err, &dial) && dial.Op == "dial" && dial.Addr != nil {
		return fmt.Errorf("no service answers at %s: %w; start it, or say with --url where it is", dial.Addr, dial.Err)
	}
	if problem := (*client.Error)(nil); errors.As(err, &problem) && problem.Code == apitypes.CodeUnauthorized {
		return fmt.Errorf("%w; set the environment variable %s to a key of the service, or run quittance login", err, keyVariable)
	}
	return err
}

// manage manages the keys and the merchants of a service: with --config by stored in its database, which works while the
// service is stopped, else by served through its API.
func manage[T any](
	ctx context.Context, env environment, at *remote,
	stored func(context.Context, admin.Managers) (T, error), served func(context.Context, *client.Client) (T, error),
) (answer T, err error) {
	if at.config == "" {
		c, err := at.client(env)
		if err != nil {
			return answer, err
		}
		return served(ctx, c)
	}
	cfg, err := loadConfig(at.config)
	if err != nil {
		return answer, err
	}
	ctx = asCommand(ctx)
	err = admin.WithManagers(ctx, merchantsConfig(cfg), func(m admin.Managers) (err error) {
		if m.Created {
			fmt.Fprintln(env.stderr, "The database was empty, and a new installation begins in it. If there was one before, correct the setting database.")
		}
		answer, err = stored(ctx, m)
		return err
	})
	return answer, err
}
