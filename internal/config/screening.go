package config

import (
	"net/url"
	"time"
)

// Modes of screening: what becomes of a payment without a verdict.
const (
	ScreeningOpen   = "open"   // it is accepted
	ScreeningClosed = "closed" // it is quarantined
)

const (
	// DefaultPatience is how long a payment waits for a verdict by default.
	DefaultPatience = 10 * time.Minute
	// MinPatience is the shortest patience.
	MinPatience = time.Minute
	// MaxPatience is the longest patience.
	MaxPatience = 24 * time.Hour
)

// Screening is the hook that is asked about the payers of new payments.
type Screening struct {
	URL, Secret string
	Mode        string
	Patience    time.Duration
}

type screeningFile struct {
	URL        string `yaml:"url"`
	SecretEnv  string `yaml:"secretEnv"`
	SecretFile string `yaml:"secretFile"`
	Mode       string `yaml:"mode"`
	Patience   scalar `yaml:"patience"`
}

// screening checks the settings of the hook. It returns nil without settings.
func (r *resolver) screening(f *screeningFile) *Screening {
	if *f == (screeningFile{}) {
		return nil
	}
	s := &Screening{URL: f.URL, Mode: f.Mode}
	if err := checkURL(f.URL, "https", "http"); err != nil {
		r.fail("screening.url", "%w", err)
	} else if u, err := url.Parse(f.URL); err != nil || u.User != nil || u.Fragment != "" {
		r.fail("screening.url", "is %.80q; want a URL without an account and a fragment, because requests are signed", origin(f.URL))
	}
	s.Secret = r.secret("screening.secret", f.SecretEnv, f.SecretFile)
	if len(s.Secret) > 0 && len(s.Secret) < MinSecret {
		r.fail("screening.secret", "has %d bytes; want at least %d", len(s.Secret), MinSecret)
	}
	if f.Mode != ScreeningOpen && f.Mode != ScreeningClosed {
		r.fail("screening.mode", "is %q; want open, which accepts payments that the hook gives no verdict about, or closed, which quarantines them", f.Mode)
	}
	s.Patience = r.duration("screening.patience", &f.Patience, DefaultPatience, MinPatience, MaxPatience)
	return s
}
