package config

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/keyring"
	"github.com/quittance/quittance/webhook"
)

const day = 24 * time.Hour

// Limits of the settings of webhooks.
const (
	// DefaultRetention is how long events, and the attempts to deliver them,
	// are kept when nothing is said of it.
	DefaultRetention = 30 * day
	// MinRetention and MaxRetention bound that. A delivery is tried for a day,
	// and is to be seen for one more.
	MinRetention = 2 * day
	MaxRetention = 3650 * day
	// MinSecret is the length in bytes of the shortest key of a webhook secret, a
	// merchant's or a provider's: of what the base64 behind whsec_ stands for, or
	// of the secret itself when it has another form. Standard Webhooks wants 24 to
	// 64.
	MinSecret = 16
	// MaxMasterKeys is how many master keys there may be, old ones included.
	MaxMasterKeys = 16
)

// retention reads a number of days.
func (r *resolver) retention(path string, text scalar) time.Duration {
	if text == "" {
		return DefaultRetention
	}
	digits, ok := strings.CutSuffix(string(text), "d")
	days, err := strconv.ParseUint(digits, 10, 16)
	kept := time.Duration(days) * day
	if !ok || err != nil || kept < MinRetention || kept > MaxRetention {
		r.fail(path, "is %q; want a number of days of %dd to %dd", text, MinRetention/day, MaxRetention/day)
	}
	return kept
}

// webhookSecret reads the secret that signs a merchant's events, or a provider's
// notices.
func (r *resolver) webhookSecret(path, env, file string) string {
	secret := r.secret(path, env, file)
	if n := len(webhook.StandardKey(secret)); secret != "" && n < MinSecret {
		r.fail(path, "is too short: its key has %d bytes; want at least %d, in base64 behind %s or as they are (such as what openssl rand -hex 32 prints)",
			n, MinSecret, webhook.SecretPrefix)
	}
	return secret
}

// keyring reads the master keys.
func (r *resolver) keyring(newest masterKeyFile, older []masterKeyFile) *keyring.Keyring {
	if newest == (masterKeyFile{}) {
		if len(older) > 0 {
			r.fail("oldMasterKeys", "stand there without the key that replaces them; want masterKeyEnv or masterKeyFile")
		}
		return nil
	}
	if n := len(older) + 1; n > MaxMasterKeys {
		r.fail("oldMasterKeys", "there are %d master keys in all; want at most %d", n, MaxMasterKeys)
	}
	seen := make(map[string]bool)
	key := r.masterKey(seen, "masterKey", newest, true)
	old := make([]keyring.Key, len(older))
	for i, f := range older {
		old[i] = r.masterKey(seen, fmt.Sprintf("oldMasterKeys[%d].masterKey", i), f, false)
	}
	return keyring.New(key, old...)
}

// masterKey reads a master key. One that nobody drew at random is refused, but
// for those that are being replaced.
func (r *resolver) masterKey(seen map[string]bool, path string, f masterKeyFile, newest bool) keyring.Key {
	text := r.secret(path, f.Env, f.File)
	if text == "" {
		return keyring.Key{}
	}
	key, err := keyring.ParseKey(text)
	switch {
	case err != nil:
		r.fail(path, "%w", err)
	case seen[key.ID]:
		r.fail(path, "is the same as one before it")
	case newest:
		if err := keyring.CheckRandom(text); err != nil {
			r.fail(path, "%w", err)
		}
	}
	seen[key.ID] = true
	return key
}

// prefix reads a range of addresses in CIDR notation (RFC 4632), or one
// address.
func (r *resolver) prefix(path string, text scalar) netip.Prefix {
	p, err := netip.ParsePrefix(string(text))
	if a, one := netip.ParseAddr(string(text)); one == nil && a.Zone() == "" {
		p, err = netip.PrefixFrom(a, a.BitLen()), nil
	}
	if err != nil || p != p.Masked() {
		r.fail(path, "is %q; want a range of addresses such as 10.1.0.0/16 or fd00::/8, with zeros behind its prefix, or one address", text)
	}
	return p
}
