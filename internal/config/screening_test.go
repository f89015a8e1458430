package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/config"
)

func TestScreening(t *testing.T) {
	t.Parallel()
	const hook = "url: https://screening.example/ask, secretEnv: CIRCLE_SECRET"
	for setting, want := range map[string]config.Screening{
		"{" + hook + ", mode: open}":                  {Mode: config.ScreeningOpen, Patience: 10 * time.Minute},
		"{" + hook + ", mode: closed, patience: 1m}":  {Mode: config.ScreeningClosed, Patience: time.Minute},
		"{" + hook + ", mode: closed, patience: 24h}": {Mode: config.ScreeningClosed, Patience: 24 * time.Hour},
	} {
		want.URL, want.Secret = "https://screening.example/ask", providerSecret
		cfg, err := config.Parse([]byte(full+"screening: "+setting+"\n"), secrets)
		if err != nil || cfg.Screening == nil || *cfg.Screening != want {
			t.Errorf("%s: %+v, %v", setting, cfg.Screening, err)
		}
	}
	if cfg, err := config.Parse([]byte(full), secrets); err != nil || cfg.Screening != nil {
		t.Errorf("without the setting: %+v, %v", cfg.Screening, err)
	}
	for setting, want := range map[string]string{
		"{secretEnv: CIRCLE_SECRET, mode: open}":                                         `screening.url: is ""; want a URL`,
		"{url: 'ftp://a.example', secretEnv: CIRCLE_SECRET, mode: open}":                 "screening.url: is",
		"{url: 'https://me:pw@a.example/ask', secretEnv: CIRCLE_SECRET, mode: open}":     "screening.url: is",
		"{url: 'https://a.example/ask#part', secretEnv: CIRCLE_SECRET, mode: open}":      "screening.url: is",
		"{url: https://screening.example/ask, mode: open}":                               "screening.secret: want either secretEnv",
		"{url: https://screening.example/ask, secretFile: /run/secrets/node, mode: off}": "screening.mode: is",
		"{" + hook + "}": `screening.mode: is ""; want open`,
		"{" + hook + ", mode: open, patience: 59s}":   `screening.patience: is "59s"; want a duration of 1m0s to 24h0m0s, such as 10m0s`,
		"{" + hook + ", mode: open, patience: 24h1s}": `screening.patience: is "24h1s"`,
		"{" + hook + ", mode: open, patience: long}":  `screening.patience: is "long"`,
	} {
		_, err := config.Parse([]byte(full+"screening: "+setting+"\n"), secrets)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), ":pw@") {
			t.Errorf("%s: %v, want %q", setting, err, want)
		}
	}
}
