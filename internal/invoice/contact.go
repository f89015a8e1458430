package invoice

import (
	"net/mail"
	"net/url"
	"regexp"
	"strings"
)

// phoneNumber is a phone number with its country code, 7 to 15 digits (E.164), and the usual separators.
var phoneNumber = regexp.MustCompile(`^\+[1-9]([ ()./-]{0,2}[0-9]){6,14}$`)

// ContactURL returns the URL of a support contact: https, mailto or tel. It returns "" for
// any other text.
func ContactURL(text string) string {
	if len(text) > MaxSupportContact || strings.ContainsFunc(text, disguises) {
		return ""
	}
	if u, err := url.Parse(text); err == nil && u.Scheme == "https" && u.Hostname() != "" && u.User == nil {
		return u.String()
	}
	if phoneNumber.MatchString(text) {
		return "tel:" + strings.Map(func(c rune) rune {
			if strings.ContainsRune(" ()./-", c) {
				return -1
			}
			return c
		}, text)
	}
	if a, err := mail.ParseAddress(text); err == nil && a.Address == text {
		return "mailto:" + url.PathEscape(text)
	}
	return ""
}
