package apikey

import (
	"errors"

	"github.com/quittance/quittance/internal/access"
)

// IsRefusal reports whether an error of Authenticate means that the presented key is wrong.
func IsRefusal(err error) bool {
	for _, refusal := range []error{access.ErrMalformed, access.ErrChecksum, ErrWrongMode, ErrUnknown, ErrRevoked, ErrExpired, ErrNoMerchant} {
		if errors.Is(err, refusal) {
			return true
		}
	}
	return false
}
