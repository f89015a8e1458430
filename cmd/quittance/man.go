package main

import (
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// newMan returns the hidden command that writes the man pages, for packagers.
func newMan() *cobra.Command {
	return &cobra.Command{
		Use: "man DIR", Hidden: true, GroupID: groupOther,
		Short: "write the man pages into a folder",
		Long: "Writes a man page for each command into DIR, which it makes if needed. The pages\n" +
			"bear today's date, or that of SOURCE_DATE_EPOCH.",
		Args: oneArg("want one folder to write the man pages into"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil { //nolint:gosec // everyone may read man pages
				return err
			}
			cmd.Root().InitDefaultVersionFlag() // cobra adds it when a command runs
			return doc.GenManTree(cmd.Root(), &doc.GenManHeader{Source: "quittance " + readBuild().Version, Manual: "Quittance"}, args[0])
		},
	}
}
