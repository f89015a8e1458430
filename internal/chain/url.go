package chain

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode"
)

// errBlank is the error of a URL with a character that URLs cannot have.
var errBlank = errors.New("has a blank, a line break or another control character; encode it as %XX, or take it out")

// CheckURL returns an error that explains what is wrong with a URL that package url accepts but that
// cannot be requested: it has a blank, for example at its end, or a port that does not exist.
func CheckURL(text string) error {
	if strings.ContainsFunc(text, func(c rune) bool { return unicode.IsSpace(c) || unicode.IsControl(c) }) {
		return errBlank
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil //nolint:nilerr // the caller explains what it expects
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return fmt.Errorf("has the port %.20s; want 1 to 65535", port)
		}
	}
	return nil
}
