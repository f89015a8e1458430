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

// environment holds the outputs of commands.
type environment struct {
	stdout, stderr io.Writer
	color          bool // stdout is a terminal, and colors are wanted
}

// wantsColor reports whether the file is a terminal and NO_COLOR (no-color.org) is not
// set.
func wantsColor(f *os.File) bool {
	return term.IsTerminal(int(f.Fd())) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// logger returns a logger to standard error with the minimum level.
func (e environment) logger(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(e.stderr, &slog.HandlerOptions{Level: level}))
}

// writeJSON writes v to standard output as one line of JSON.
func (e environment) writeJSON(v any) error { return json.NewEncoder(e.stdout).Encode(v) }

// jsonFlag adds the flag --json.
func jsonFlag(cmd *cobra.Command, usage string) *bool { return cmd.Flags().Bool("json", false, usage) }

// count returns a number with a noun, as in "3 blocks".
func count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprint(n, " ", thing)
}

// are returns a number with a noun and "is" or "are".
func are(n int, thing string) string {
	if n == 1 {
		return count(n, thing) + " is"
	}
	return count(n, thing) + " are"
}
