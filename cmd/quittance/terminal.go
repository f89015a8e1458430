package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// environment is what commands write to.
type environment struct {
	stdout, stderr io.Writer
	color          bool // stdout is a terminal whose user wants colour
}

// wantsColor reports whether the file is a terminal whose user has not asked
// for plain text (NO_COLOR, see no-color.org).
func wantsColor(f *os.File) bool {
	return term.IsTerminal(int(f.Fd())) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// logger writes to standard error from the level on.
func (e environment) logger(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(e.stderr, &slog.HandlerOptions{Level: level}))
}

// writeJSON writes v to standard output as one line of JSON.
func (e environment) writeJSON(v any) error { return json.NewEncoder(e.stdout).Encode(v) }

// jsonFlag adds the flag --json.
func jsonFlag(cmd *cobra.Command, usage string) *bool { return cmd.Flags().Bool("json", false, usage) }

// count is a number of things, in words.
func count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprint(n, " ", thing)
}

// are is a number of things that something happens to.
func are(n int, thing string) string {
	if n == 1 {
		return count(n, thing) + " is"
	}
	return count(n, thing) + " are"
}
