package server

import (
	"context"
	"io"
	"log/slog"
	"strings"
)

// maxNetLog bounds a logged line of net/http, in bytes, because the line may quote a
// request.
const maxNetLog = 300

// NetLog returns a writer that logs the lines of net/http: of an http.Server's
// ErrorLog, and of package log, which http.Transport uses. Panics are logged as
// errors, other lines, such as failed TLS handshakes, at the given level.
func NetLog(logger *slog.Logger, level slog.Level) io.Writer { return netLog{logger, level} }

type netLog struct {
	logger *slog.Logger
	level  slog.Level
}

// Write logs one line.
func (l netLog) Write(line []byte) (int, error) {
	level, text := l.level, strings.TrimRight(string(line), "\n")
	if strings.Contains(text, "panic") {
		level = slog.LevelError
	} else {
		text = text[:min(len(text), maxNetLog)]
	}
	l.logger.Log(context.Background(), level, "net/http", "text", strings.ToValidUTF8(text, "\uFFFD"))
	return len(line), nil
}
