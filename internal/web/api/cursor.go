package api

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
)

// A cursor contains the sort key of a page's last element, after a checksum of the key
// and the list's scope. So a cursor is valid only for its own list, and not after a
// change. The checksum is not a secret: a forged cursor gives no additional access.

// checksumSize is the length of a cursor's checksum, in bytes.
const checksumSize = 8

// formatCursor returns the cursor of the element with the key, in the list with the
// scope.
func formatCursor(scope, key string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "cursor 2 %q %q", scope, key))
	return base64.RawURLEncoding.EncodeToString(append(sum[:checksumSize], key...))
}

// parseCursor returns the key of a cursor. ok is false unless formatCursor returns the
// same cursor for the key and the scope.
func parseCursor(scope, cursor string) (key string, ok bool) {
	if len(cursor) > MaxCursor {
		return "", false
	}
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(text) <= checksumSize {
		return "", false
	}
	key = string(text[checksumSize:])
	return key, isVisibleASCII(key) && cursor == formatCursor(scope, key) // not every text is valid in a database
}
