package config

import (
	"fmt"

	"github.com/quittance/quittance/internal/access"
)

// MaxMasterKeys bounds the master keys, old ones included.
const MaxMasterKeys = 16

// keyring reads the master keys.
func (r *resolver) keyring(newest masterKeyFile, older []masterKeyFile) *access.Keyring {
	if newest == (masterKeyFile{}) {
		if len(older) > 0 {
			r.fail("oldMasterKeys", "are given without the key that replaces them; want masterKeyEnv or masterKeyFile")
		}
		return nil
	}
	if n := len(older) + 1; n > MaxMasterKeys {
		r.fail("oldMasterKeys", "there are %d master keys in all; want at most %d", n, MaxMasterKeys)
	}
	seen := make(map[string]bool)
	key := r.masterKey(seen, "masterKey", newest, true)
	old := make([]access.MasterKey, len(older))
	for i, f := range older {
		old[i] = r.masterKey(seen, fmt.Sprintf("oldMasterKeys[%d].masterKey", i), f, false)
	}
	return access.NewKeyring(key, old...)
}

// masterKey reads a master key. The newest is refused unless it looks random.
func (r *resolver) masterKey(seen map[string]bool, path string, f masterKeyFile, newest bool) access.MasterKey {
	text := r.secret(path, f.Env, f.File)
	if text == "" {
		return access.MasterKey{}
	}
	key, err := access.ParseMasterKey(text)
	switch {
	case err != nil:
		r.fail(path, "%w", err)
	case seen[key.ID]:
		r.fail(path, "is the same as one before it")
	case newest:
		if err := access.CheckRandom(text); err != nil {
			r.fail(path, "%w", err)
		}
	}
	seen[key.ID] = true
	return key
}
