package config

import (
	"crypto/ecdsa"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/ethereum/go-ethereum/crypto"

	"github.com/quittance/quittance/webhook"
)

// MinSecret is the least size of a webhook secret's key, in bytes. Standard
// Webhooks asks for 24 to 64.
const MinSecret = 16

// secret reads a secret from the place that the settings NAMEEnv or NAMEFile name.
func (r *resolver) secret(path, env, file string) string {
	var value string
	switch {
	case (env == "") == (file == ""):
		r.fail(path, "want either %sEnv, the name of an environment variable, or %sFile, the path of a file", last(path), last(path))
		return ""
	case env != "":
		var ok bool
		if value, ok = r.src.Env(env); !ok {
			r.fail(path+"Env", "the environment variable %s is not set", env)
			return ""
		}
		if value = strings.TrimRight(value, "\r\n"); value == "" {
			r.fail(path+"Env", "the environment variable %s is empty", env)
		}
	default:
		file = r.path(file)
		raw, err := r.src.File(file)
		if err != nil {
			r.fail(path+"File", "%w", err)
			return ""
		}
		r.checkMode(path+"File", file)
		if value = strings.TrimRight(string(raw), "\r\n"); value == "" {
			r.fail(path+"File", "%s is empty", file)
		}
	}
	return value
}

func last(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

// checkMode checks the permissions of a secret's file. A file that others may write is refused,
// because they could replace the secret. A file that others may read causes a warning, because
// containers mount secrets like that.
func (r *resolver) checkMode(path, file string) {
	if r.src.Mode == nil {
		return
	}
	mode, err := r.src.Mode(file)
	switch {
	case err != nil:
		r.fail(path, "%w", err)
	case mode.Perm()&othersWrite != 0:
		r.fail(path, "others may write %s, which has mode %#o; run chmod 600 on it", file, mode.Perm())
	case mode.Perm()&othersRead != 0:
		r.warnings = append(r.warnings, fmt.Sprintf("%s: others may read %s, which has mode %#o; run chmod 600 on it", path, file, mode.Perm()))
	}
}

// Permission bits of users other than a file's owner.
const (
	othersWrite fs.FileMode = 0o022
	othersRead  fs.FileMode = 0o044
)

func (r *resolver) key(path, env, file string) *ecdsa.PrivateKey {
	before := len(r.errs)
	text := r.secret(path, env, file)
	if len(r.errs) > before {
		return nil
	}
	key, err := ParseKey(text)
	if err != nil {
		r.fail(path, "%w", err)
	}
	return key
}

// ParseKey reads a private key, 64 hex digits with or without 0x. The error
// does not show it.
func ParseKey(text string) (*ecdsa.PrivateKey, error) {
	key, err := crypto.HexToECDSA(strings.TrimPrefix(strings.TrimSpace(text), "0x"))
	if err != nil {
		return nil, errors.New("is not a private key; want 64 hex digits")
	}
	return key, nil
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
