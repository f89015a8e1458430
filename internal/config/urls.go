package config

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
)

// CheckWebhookURL accepts absolute http and https URLs. The address is checked
// by webhooks.Guard when it is dialed.
func CheckWebhookURL(text string) error { return checkURL(text, "http", "https") }

// CheckNodeURL accepts absolute URLs with the scheme http or https.
func CheckNodeURL(text string) error { return checkURL(text, "http", "https") }

func checkURL(text string, schemes ...string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || !slices.Contains(schemes, u.Scheme) {
		return fmt.Errorf("is %.80q; want a URL that begins with %s://", origin(text), strings.Join(schemes, ":// or "))
	}
	return chain.CheckURL(text)
}

// webhookAllow reads the ranges that webhooks may reach, and refuses URLs that need one without any.
func (r *resolver) webhookAllow(f *file) (allow []netip.Prefix) {
	for i, text := range f.Webhooks.Allow {
		path := fmt.Sprintf("webhooks.allow[%d]", i)
		allow = append(allow, r.prefix(path, text))
		if p := allow[i]; p.IsValid() && p.Bits() == 0 {
			r.fail(path, "is %q, which would let every merchant reach this machine; want only the networks of the receivers", text)
		}
	}
	for i, m := range f.Merchants {
		r.plain(fmt.Sprintf("merchants[%d].webhookUrl", i), m.WebhookURL, allow)
	}
	r.plain("screening.url", f.Screening.URL, allow)
	return allow
}

// plain refuses a URL with http if no range of addresses may be reached by it.
func (r *resolver) plain(path, text string, allow []netip.Prefix) {
	if strings.EqualFold(scheme(text), "http") && len(allow) == 0 {
		r.fail(path, "is %.80q; want https://, because http is used only for addresses in webhooks.allow", origin(text))
	}
}

// insteadOfURL explains how to configure a URL that holds a secret.
const insteadOfURL = "secrets are not written here: write {urlEnv: NAME} or {urlFile: PATH} instead, and the URL there"

// holdsAccount reports whether a URL holds a user name or password.
func holdsAccount(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.User != nil
}

// holdsPassword reports whether a database URL holds a password, in either of the
// two places that PostgreSQL allows.
func holdsPassword(text string) bool {
	u, err := url.Parse(text)
	if err != nil { // for example of several hosts with ports
		_, rest, _ := strings.Cut(text, "://")
		user, rest, found := strings.Cut(rest, "@")
		return found && strings.ContainsAny(user, ":/?#") || strings.Contains(rest, "@") || strings.Contains(text, "password=")
	}
	_, has := u.User.Password()
	return has || u.Query().Has("password")
}

// origin returns the part of a URL, valid or not, that an error may show. It leaves out the account,
// and everything behind the host, because API keys may be there.
func origin(text string) string {
	start, rest := "", text
	if kind := scheme(text) + "://"; kind != "://" && strings.HasPrefix(text, kind) {
		start, rest = kind, text[len(kind):]
	}
	if strings.Contains(rest, "@") {
		return start + "…"
	}
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end+1] + "…"
	}
	return start + rest
}

// scheme returns the scheme of a URL (RFC 3986), or "".
func scheme(text string) string {
	kind, _, found := strings.Cut(text, ":")
	if !found || strings.Trim(kind, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.") != "" {
		return ""
	}
	return kind
}

func (r *resolver) database(l *location) string {
	if *l == (location{}) {
		l.url = DefaultDatabase
	}
	if l.url != "" && (l.env != "" || l.file != "") {
		r.fail("database", "want one of url, urlEnv and urlFile")
		return ""
	}
	url, ok := r.location("database", *l)
	if !ok {
		return ""
	}
	switch kind := scheme(url); {
	case kind == "sqlite", isPostgres(url):
		r.checkDatabase("database", url, *l)
	case kind == "", l.url == "":
		r.fail("database", "names no kind of database; want sqlite:PATH or postgres://…")
	default:
		r.fail("database", "is %s:…; want sqlite:PATH or postgres://…", kind)
	}
	if name, ok := strings.CutPrefix(url, "sqlite:"); ok && (name == "" || name == ":memory:" || strings.Contains(name, "?")) {
		r.fail("database", "names no file; want sqlite:PATH, without parameters")
	} else if ok {
		url = "sqlite:" + r.path(name)
	}
	return url
}

// readOnly returns the URL of a standby of the database, or "".
func (r *resolver) readOnly(l *location, database string) string {
	const path = "database.readOnly"
	if l == nil {
		return ""
	}
	if *l == (location{}) {
		r.fail(path, "is empty; want postgres://…, or leave it out")
		return ""
	}
	if database != "" && !isPostgres(database) {
		r.fail(path, "is for PostgreSQL alone; the database is SQLite")
		return ""
	}
	url, ok := r.location(path, *l)
	if !ok {
		return ""
	}
	if !isPostgres(url) {
		r.fail(path, "is no standby's URL; want postgres://…")
		return ""
	}
	r.checkDatabase(path, url, *l)
	return url
}

// isPostgres reports whether a URL is a PostgreSQL URL.
func isPostgres(url string) bool {
	kind := scheme(url)
	return kind == "postgres" || kind == "postgresql"
}

// checkDatabase refuses a password in a URL that is written out, and a URL that cannot be read.
func (r *resolver) checkDatabase(path, url string, l location) {
	if l.url != "" && holdsPassword(url) {
		r.fail(path, "holds a password; %s", insteadOfURL)
		return
	}
	if !isPostgres(url) {
		return
	}
	if err := db.CheckPostgresURL(url); err != nil {
		r.fail(path, "%w", err)
	}
}

// location returns a URL. ok is false when it could not be read.
func (r *resolver) location(path string, l location) (url string, ok bool) {
	if l.env == "" && l.file == "" {
		return l.url, true
	}
	url = r.secret(path+".url", l.env, l.file)
	return url, url != ""
}
