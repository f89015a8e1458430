package config

import (
	"time"

	"github.com/quittance/quittance/internal/access"
)

const (
	// DefaultAllowListDelay is the default delay before a change of a merchant's allowed addresses takes
	// effect.
	DefaultAllowListDelay = 24 * time.Hour
	// MinAllowListDelay is the least value of that setting.
	MinAllowListDelay = time.Hour
	// MaxAllowListDelay is the greatest value of that setting.
	MaxAllowListDelay = 30 * 24 * time.Hour
)

// operatorKey reads the operator's key of the API, if one is configured.
func (r *resolver) operatorKey(f accessFile) access.Key {
	if f.OperatorKeyEnv == "" && f.OperatorKeyFile == "" {
		return access.Key{}
	}
	before := len(r.errs)
	text := r.secret("access.operatorKey", f.OperatorKeyEnv, f.OperatorKeyFile)
	if len(r.errs) > before {
		return access.Key{}
	}
	key, err := access.ParseKey(text)
	switch {
	case err != nil:
		r.fail("access.operatorKey", "%w; want one that quittance key generate prints", err)
	case key.Mode() != access.Live:
		r.fail("access.operatorKey", "is a key of quittance dev; want one that quittance key generate prints")
	}
	return key
}
