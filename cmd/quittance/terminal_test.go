package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/config"
)

func TestServiceLogger(t *testing.T) {
	var stderr bytes.Buffer
	env := environment{stderr: &stderr}
	env.serviceLogger(config.Log{Format: config.LogJSON, Level: slog.LevelWarn}).Warn("m", "took", 1500*time.Millisecond, "err", errors.New("e"))
	var line map[string]any
	if err := json.Unmarshal(stderr.Bytes(), &line); err != nil || line["took"] != 1.5 || line["err"] != "e" || line["msg"] != "m" || line["level"] != "WARN" {
		t.Errorf("logged %s, %v", &stderr, err)
	}
	stderr.Reset()
	logger := env.serviceLogger(config.Log{Format: config.LogText, Level: slog.LevelWarn})
	logger.Info("left out")
	logger.Warn("m", "took", 1500*time.Millisecond)
	if got := stderr.String(); !strings.HasSuffix(got, " level=WARN msg=m took=1.5s\n") || strings.Contains(got, "left out") {
		t.Errorf("logged %s", got)
	}
}
