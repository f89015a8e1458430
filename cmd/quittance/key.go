package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/admin"
	"github.com/quittance/quittance/internal/apiconv"
	"github.com/quittance/quittance/internal/db"
)

func newKey(env environment) *cobra.Command {
	return group(&cobra.Command{
		Use: "key COMMAND", Aliases: []string{"keys"}, GroupID: groupService,
		Short: "manage the keys of the API",
		Long: `Manages the keys of the API: with --config in the database that the configuration
names, else through a service. A running service notices a change within a second.`,
	}, newKeyCreate(env), newKeyList(env), newKeyRotate(env), newKeyRevoke(env), newKeyGenerate(env))
}

func newKeyCreate(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create --name TEXT",
		Short: "create a key of the operator or of a merchant",
		Long: `Creates a key and prints it. It is stored as a hash and cannot be shown again.

Scopes are ` + strings.Join(access.Admin.Names()[:4], ", ") + `,
` + strings.Join(access.Admin.Names()[4:], ", ") + `; or a preset:
read reads invoices, payments and events, standard also creates invoices and has
events sent again, and admin may do everything. The presets ` + strings.Join(access.Roles[:3], ", ") + `,
` + strings.Join(access.Roles[3:], " and ") + ` are for people at the dashboard.`,
		Example: `  quittance key create --config quittance.yaml --name admin --scopes admin
  quittance key create --config quittance.yaml --name "shop backend" --merchant shop`,
		Args: noArgs,
	}
	at := adminFlags(cmd)
	var r access.KeyRequest
	cmd.Flags().StringVar(&r.Name, "name", "", "what you call it, 1 to 200 characters: `TEXT`")
	cobra.CheckErr(cmd.MarkFlagRequired("name"))
	cmd.Flags().StringVar(&r.MerchantID, "merchant", "", "it gives access to objects of the merchant with this `ID` alone")
	scopes := cmd.Flags().StringSlice("scopes", []string{access.PresetStandard}, "what it allows: `NAMES` of scopes and presets, with commas between")
	expires := cmd.Flags().String("expires", "", "it is refused from this `TIME` on, such as 2027-01-31T10:00:00Z, or after this long, such as 90d or 12h")
	asJSON := jsonFlag(cmd, "write JSON, as the service's POST /api/keys does")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var err error
		if r.Scopes, err = access.ParseScopes(*scopes); err != nil {
			return usageError{fmt.Errorf("--scopes: %w", err)}
		}
		if r.ExpiresAt, err = expiry(*expires, time.Now()); err != nil {
			return usageError{fmt.Errorf("--expires %w", err)}
		}
		made, err := manage(cmd.Context(), env, at, func(ctx context.Context, m admin.Managers) (apitypes.KeySecretResponse, error) {
			return storedKey(m.Keys.Create(ctx, access.Open(), r))
		}, func(ctx context.Context, c *client.Client) (apitypes.KeySecretResponse, error) {
			wanted := apitypes.CreateKeyRequest{Name: r.Name, MerchantID: r.MerchantID, Scopes: r.Scopes.Names()}
			if !r.ExpiresAt.IsZero() {
				wanted.ExpiresAt = r.ExpiresAt.Unix()
			}
			return servedKey(c.CreateKey(ctx, wanted))
		})
		return printNewKey(env, made, err, *asJSON)
	}
	return cmd
}

// expiry parses a time, or a duration from now, which may be in days.
func expiry(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	hours := text
	if days, ok := strings.CutSuffix(text, "d"); ok {
		hours = days + "h"
	}
	at, err := time.Parse(time.RFC3339, text)
	if d, durationErr := time.ParseDuration(hours); durationErr == nil {
		if hours != text {
			d *= 24
		}
		at, err = now.Add(d), nil
	}
	if err != nil || !at.After(now) {
		return time.Time{}, fmt.Errorf("is %q; want a time to come such as 2027-01-31T10:00:00Z, or a duration such as 90d or 12h", text)
	}
	return at.UTC().Truncate(time.Second), nil
}

// storedKey returns a key that was made in the database.
func storedKey(k access.Record, key access.Key, err error) (apitypes.KeySecretResponse, error) {
	return apitypes.KeySecretResponse{Key: apiconv.Key(k, time.Now()), Secret: key.Reveal()}, err
}

// servedKey returns a key that the service has made.
func servedKey(k apitypes.Key, secret string, err error) (apitypes.KeySecretResponse, error) {
	return apitypes.KeySecretResponse{Key: k, Secret: secret}, err
}

// printNewKey prints the secret of a new key, unless making it failed.
func printNewKey(env environment, made apitypes.KeySecretResponse, err error, asJSON bool) error {
	if err != nil {
		return noKey(err)
	}
	if asJSON {
		return env.writeJSON(made)
	}
	_, printed := fmt.Fprintln(env.stdout, made.Secret)
	_, noted := fmt.Fprintf(env.stderr, "This is the only time that the key is shown. Its id is %s.\n", made.Key.ID)
	return errors.Join(printed, noted)
}

func newKeyList(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "list keys, with their last use",
		Long:  "Lists keys, newest first, with their scopes and their last use. The keys themselves are not stored.",
		Args:  noArgs,
	}
	at := adminFlags(cmd)
	merchantID := cmd.Flags().String("merchant", "", "only keys of the merchant with this `ID`")
	all := cmd.Flags().Bool("all", false, "also keys that were revoked or have expired")
	asJSON := jsonFlag(cmd, "write JSON, as the service's GET /api/keys does")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		found, err := listKeys(cmd.Context(), env, at, *merchantID)
		if err != nil {
			return noService(err)
		}
		if !*all {
			found = slices.DeleteFunc(found, func(k apitypes.Key) bool { return k.State != string(access.Active) })
		}
		return printKeys(env, found, *asJSON)
	}
	return cmd
}

// maxListedKeys bounds the keys that are listed from a database.
const maxListedKeys = 10_000

// listKeys lists keys: with --config from the database, which must exist, else through the API.
func listKeys(ctx context.Context, env environment, at *remote, merchantID string) ([]apitypes.Key, error) {
	if at.config == "" {
		c, err := at.client(env)
		if err != nil {
			return nil, err
		}
		return firstOf(c.Keys(ctx, merchantID), 0)
	}
	cfg, err := loadConfig(at.config)
	if err != nil {
		return nil, err
	}
	records, err := admin.Read(ctx, cfg.Database, func(store *db.DB) ([]access.Record, error) {
		return access.NewReader(store).Keys(ctx, access.KeyFilter{MerchantID: merchantID, Limit: maxListedKeys})
	})
	keys := make([]apitypes.Key, len(records))
	for i, r := range records {
		keys[i] = apiconv.Key(r, time.Now())
	}
	return keys, err
}

// printKeys writes a line for each key.
func printKeys(env environment, keys []apitypes.Key, asJSON bool) error {
	if asJSON {
		return env.writeJSON(apitypes.KeyList{Keys: keys})
	}
	const header = "ID\tKEY\tOWNER\tSTATE\tEXPIRES\tLAST USED\tVERSION\tSCOPES\tNAME"
	return tableOf(env.cut(), "keys", keys, header, func(k apitypes.Key) []any {
		return []any{
			k.ID, hintOf(k), cmp.Or(k.MerchantID, "(operator)"), k.State,
			timeOfDay(k.ExpiresAt), timeOfDay(k.LastUsedAt), k.Version, strings.Join(k.Scopes, ","), printable(k.Name),
		}
	})
}

// oneKey is the check of arguments that are the id of one key.
func oneKey(cmd *cobra.Command, ids []string) error {
	if len(ids) != 1 || !strings.HasPrefix(ids[0], access.PrefixKey) {
		return fmt.Errorf("%s %s needs the id of one key, %s…", cmd.Parent().Name(), cmd.Name(), access.PrefixKey)
	}
	return nil
}

func newKeyRotate(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rotate ID",
		Short: "replace a key by a new one, and keep it valid for a while",
		Long: `Creates a key with the same name, owner and scopes, and prints it. The old key
stays valid for the overlap, in which its users change to the new one.`,
		Example: "  quittance key rotate --config quittance.yaml --overlap 1h key_…",
		Args:    oneKey,
	}
	at := adminFlags(cmd)
	overlap := cmd.Flags().Duration("overlap", access.DefaultOverlap, "how long the old key stays valid: a `TIME` of 0s to 720h")
	asJSON := jsonFlag(cmd, "write JSON, as the service's POST /api/keys/{id}/rotate does")
	cmd.RunE = func(cmd *cobra.Command, ids []string) error {
		if *overlap < 0 || *overlap > access.MaxOverlap {
			return usageError{fmt.Errorf("--overlap is %s; want 0s to %s", *overlap, access.MaxOverlap)}
		}
		made, err := manage(cmd.Context(), env, at, func(ctx context.Context, m admin.Managers) (apitypes.KeySecretResponse, error) {
			return storedKey(m.Keys.Rotate(ctx, access.Open(), ids[0], *overlap))
		}, func(ctx context.Context, c *client.Client) (apitypes.KeySecretResponse, error) {
			return servedKey(c.RotateKey(ctx, ids[0], *overlap))
		})
		return printNewKey(env, made, err, *asJSON)
	}
	return cmd
}

func newKeyRevoke(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "revoke ID",
		Short: "have a key refused from now on",
		Long:  "Revokes a key. A running service refuses it within a second.",
		Args:  oneKey,
	}
	at := adminFlags(cmd)
	asJSON := jsonFlag(cmd, "write JSON: revoked, the id")
	cmd.RunE = func(cmd *cobra.Command, ids []string) error {
		_, err := manage(cmd.Context(), env, at, func(ctx context.Context, m admin.Managers) (access.Record, error) {
			return m.Keys.Revoke(ctx, access.Open(), ids[0])
		}, func(ctx context.Context, c *client.Client) (access.Record, error) {
			return access.Record{}, c.RevokeKey(ctx, ids[0])
		})
		if err != nil {
			return noKey(err)
		}
		if *asJSON {
			return env.writeJSON(map[string]string{"revoked": ids[0]})
		}
		_, err = fmt.Fprintf(env.stdout, "%s is revoked.\n", ids[0])
		return err
	}
	return cmd
}

func newKeyGenerate(env environment) *cobra.Command {
	return &cobra.Command{
		Use:   "generate",
		Short: "print a new key for access.operatorKeyFile or operatorKeyEnv",
		Long: `Prints a new key and stores it nowhere. Put it where the configuration's setting
access.operatorKeyFile or access.operatorKeyEnv says; the service then accepts it
as the operator's, with all scopes. This is for installations by scripts.`,
		Example: "  quittance key generate > /run/secrets/quittance-operator-key",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			key, err := access.NewKey(access.Live, rand.Reader)
			if err == nil {
				_, err = fmt.Fprintln(env.stdout, key.Reveal())
			}
			return err
		},
	}
}

// hintOf returns how a table shows which key it is.
func hintOf(k apitypes.Key) string {
	if k.PersonID != "" {
		return "(person)"
	}
	return k.Hint + "…"
}

// noKey replaces the error of an unknown key's id.
func noKey(err error) error {
	problem := (*client.Error)(nil)
	if errors.Is(err, db.ErrNotFound) || errors.As(err, &problem) && problem.Code == apitypes.CodeNotFound {
		return errors.New("no key has this id; quittance key list shows them")
	}
	return noService(err)
}
