package server

import (
	"context"
	"io"
	"log/slog"
	"strings"
)

// maxNetLog is how much of a line of net/http is logged, in bytes: strangers
// choose what it quotes.
const maxNetLog = 300

// NetLog returns a writer for what net/http logs by itself, line by line, for an
// http.Server's ErrorLog and for package log, which http.Transport uses. A panic
// is an error. The rest, such as failed TLS handshakes, is logged at the level.
func NetLog(logger *slog.Logger, level slog.Level) io.Writer { return netLog{logger, level} }

type netLog struct {
	logger *slog.Logger
	level  slog.Level
}

// Write logs a line.
func (l netLog) Write(line []byte) (int, error) {
	level, text := l.level, strings.TrimRight(string(line), "\n")
	if strings.Contains(text, "panic") {
		level = slog.LevelError
	} else {
		text = text[:min(len(text), maxNetLog)]
	}
	l.logger.Log(context.Background(), level, "net/http", "said", strings.ToValidUTF8(text, "\uFFFD"))
	return len(line), nil
}
