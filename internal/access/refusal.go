package access

import (
	"errors"
)

// IsRefusal reports whether an error of Authenticate means that the presented key is wrong.
func IsRefusal(err error) bool {
	for _, refusal := range []error{ErrMalformed, ErrChecksum, ErrWrongMode, ErrUnknown, ErrRevoked, ErrExpired, ErrNoMerchant} {
		if errors.Is(err, refusal) {
			return true
		}
	}
	return false
}
