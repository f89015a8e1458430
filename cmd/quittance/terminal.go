package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/quittance/quittance/internal/config"
)

// environment holds the outputs of commands, and settings from the process's environment.
type environment struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	color          bool           // stdout is a terminal, and colors are wanted
	width          int            // columns of the terminal that stdout is, or 0
	zone           *time.Location // of times in tables; nil means UTC
	key            string         // key for requests to a service; may be empty
	profile        string         // path of the profile; may be empty
	program        string         // how the user calls the program; may be empty
}

// widthOf returns the number of columns of a terminal, or 0 for another file.
func widthOf(f *os.File) int {
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// wantsColor reports whether the file is a terminal and NO_COLOR (no-color.org) is not
// set.
func wantsColor(f *os.File) bool {
	return term.IsTerminal(int(f.Fd())) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// logger returns a logger to standard error with the minimum level.
func (env environment) logger(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(env.stderr, &slog.HandlerOptions{Level: level}))
}

// serviceLogger returns the logger of the service, to standard error. In JSON, durations
// are in seconds.
func (env environment) serviceLogger(c config.Log) *slog.Logger {
	if c.Format != config.LogJSON {
		return env.logger(c.Level)
	}
	return slog.New(slog.NewJSONHandler(env.stderr, &slog.HandlerOptions{Level: c.Level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Value.Kind() == slog.KindDuration {
			a.Value = slog.Float64Value(a.Value.Duration().Seconds())
		}
		return a
	}}))
}

// writeJSON writes v to standard output as one line of JSON.
func (env environment) writeJSON(v any) error { return json.NewEncoder(env.stdout).Encode(v) }

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
