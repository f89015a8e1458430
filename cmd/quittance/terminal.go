package main

import (
	"log/slog"
	"os"

	"golang.org/x/term"
)

// wantsColor reports whether the file is a terminal whose user has not asked
// for plain text (NO_COLOR, see no-color.org).
func wantsColor(f *os.File) bool {
	return term.IsTerminal(int(f.Fd())) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// logger writes to standard error from the level on.
func (e environment) logger(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(e.stderr, &slog.HandlerOptions{Level: level}))
}
