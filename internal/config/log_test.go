package config_test

import (
	"log/slog"
	"testing"

	"github.com/quittance/quittance/internal/config"
)

func TestLog(t *testing.T) {
	for text, want := range map[string]config.Log{
		"{}":                           {Format: config.LogText, Level: slog.LevelInfo},
		"{format: text, level: debug}": {Format: config.LogText, Level: slog.LevelDebug},
		"{format: json, level: warn}":  {Format: config.LogJSON, Level: slog.LevelWarn},
		"{level: error}":               {Format: config.LogText, Level: slog.LevelError},
	} {
		cfg, err := config.Parse([]byte(full+"\nlog: "+text), secrets)
		if err != nil || cfg.Log != want {
			t.Errorf("%s is read as %+v, %v; want %+v", text, cfg.Log, err, want)
		}
	}
	for _, text := range []string{"{format: xml}", "{format: JSON}", "{level: trace}", "{level: 4}", "{levels: info}"} {
		if cfg, err := config.Parse([]byte(full+"\nlog: "+text), secrets); err == nil {
			t.Errorf("%s is read as %+v; want an error", text, cfg.Log)
		}
	}
}
