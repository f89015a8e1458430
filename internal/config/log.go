package config

import (
	"cmp"
	"log/slog"
)

// LogFormat is the form of log lines.
type LogFormat string

// Formats of log lines.
const (
	LogText LogFormat = "text" // key=value
	LogJSON LogFormat = "json" // one object per line
)

// Log is the configuration of the log.
type Log struct {
	Format LogFormat
	Level  slog.Level // lower levels are not logged
}

// logLevels are the levels by their names in the file.
var logLevels = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}

// log checks the settings of the log.
func (r *resolver) log(f *logFile) Log {
	f.Format, f.Level = cmp.Or(f.Format, string(LogText)), cmp.Or(f.Level, "info")
	log := Log{Format: LogFormat(f.Format)}
	if log.Format != LogText && log.Format != LogJSON {
		r.fail("log.format", "is %.80q; want %s or %s", f.Format, LogText, LogJSON)
	}
	level, ok := logLevels[f.Level]
	if !ok {
		r.fail("log.level", "is %.80q; want debug, info, warn or error", f.Level)
	}
	log.Level = level
	return log
}
