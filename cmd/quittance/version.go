package main

import (
	"cmp"
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// release is the release of this source, current or next. A release sets it to its tag.
const release = "v0.1.0"

// version and commit can be set with -ldflags "-X main.version=v1.2.3 -X main.commit=…". Otherwise the
// version is release, and the commit comes from Go's build info.
var version, commit string

// build describes the source of the program.
type build struct {
	Version  string `json:"version"`            // tag of the release
	Commit   string `json:"commit,omitempty"`   // of git
	Modified bool   `json:"modified,omitempty"` // the work tree differed from the commit
	Go       string `json:"go"`
}

func (b build) String() string {
	text := b.Version
	if b.Commit != "" {
		text += ", commit " + b.Commit
	}
	if b.Modified {
		text += " with changes"
	}
	return fmt.Sprintf("%s, built with %s", text, b.Go)
}

// readBuild returns the source of the program, as far as it is known.
func readBuild() build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	b := build{Version: cmp.Or(version, release), Commit: commit, Go: info.GoVersion}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = cmp.Or(commit, s.Value)
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

func newVersion(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "version", GroupID: groupOther,
		Short: "print the version",
		Long:  "Prints the version, the commit and the version of Go that it was built from.",
		Args:  noArgs,
	}
	asJSON := jsonFlag(cmd, "write JSON: version, commit, modified, go")
	cmd.RunE = func(*cobra.Command, []string) error {
		if *asJSON {
			return env.writeJSON(readBuild())
		}
		_, err := fmt.Fprintf(env.stdout, "quittance %s\n", readBuild())
		return err
	}
	return cmd
}
