package api

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
)

// A cursor names the last element of a page by its key in the list's order.
// Before the key stands a checksum over it and over what was listed, so that a
// cursor continues its own list alone, and one that was changed none at all.
// The checksum is no secret: whoever computes it gets what could be asked for
// without.

// checksumSize is the length of a cursor's checksum, in bytes.
const checksumSize = 8

// formatCursor returns the cursor of the element with that key. The scope says
// what was listed.
func formatCursor(scope, key string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "cursor 2 %q %q", scope, key))
	return base64.RawURLEncoding.EncodeToString(append(sum[:checksumSize], key...))
}

// parseCursor returns the key in a cursor of that scope. A cursor must be what
// formatCursor makes of the key, to the letter.
func parseCursor(scope, cursor string) (key string, ok bool) {
	if len(cursor) > MaxCursor {
		return "", false
	}
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(text) <= checksumSize {
		return "", false
	}
	key = string(text[checksumSize:])
	return key, visible(key) && cursor == formatCursor(scope, key) // not every text may go to a database
}
