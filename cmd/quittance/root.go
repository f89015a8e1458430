package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/quittance/quittance/internal/spelling"
)

// Groups of commands in the help.
const (
	groupTry     = "try"
	groupService = "service"
	groupOther   = "other"
)

// usageTemplate lists every command, including subcommands, with its full path in a column of WIDTH.
const usageTemplate = `
{{- define "lines"}}{{if and .IsAvailableCommand (or .RunE (not .HasAvailableSubCommands))}}
  {{rpad .CommandPath WIDTH}}  {{.Short}}{{end}}{{range .Commands}}{{template "lines" .}}{{end}}{{end -}}

Usage: {{.UseLine}}
{{- if .HasExample}}

Examples:
{{.Example}}{{end}}
{{- $commands := .Commands}}{{range $group := .Groups}}

{{.Title}}{{range $commands}}{{if eq .GroupID $group.ID}}{{template "lines" .}}{{end}}{{end}}{{end}}
{{- if and .HasAvailableSubCommands (not .Groups)}}

Commands:{{template "lines" .}}{{end}}
{{- if .HasAvailableFlags}}

Flags:
{{.Flags.FlagUsagesWrapped 90 | trimTrailingWhitespaces}}{{end}}
{{- if .HasAvailableSubCommands}}

Run "{{.Root.Name}} help{{if .HasParent}} {{.Name}}{{end}} COMMAND" for what a command takes.{{end}}
`

// newRoot returns the root command for args.
func newRoot(env environment, args []string) *cobra.Command {
	root := group(&cobra.Command{
		Use:     "quittance COMMAND",
		Short:   "turn invoices into settled stablecoin payments",
		Long:    "Quittance turns invoices into settled stablecoin payments.",
		Version: readBuild().String(),
		// run prints errors in one line.
		SilenceErrors: true, SilenceUsage: true,
		DisableAutoGenTag: true, // man pages have source and date already
	},
		newDemo(env), newDev(env), newListen(env), newTrigger(env), newClock(env),
		newServe(env), newSetup(env), newConfig(env), newReady(env), newLogin(env), newLogout(env), newInvoices(env), newPayments(env), newRefunds(env), newLinks(env), newDeposits(env), newReport(env), newEvents(env), newChain(env), newAudit(env), newMerchant(env), newKey(env), newDashboard(env), newSecrets(env), newBackup(env), newRecover(env), newCompare(env), newVerify(env),
		newMigrate(env), newVersion(env), newMan(),
	)
	root.SetArgs(args)
	root.SetOut(env.stdout)
	root.SetErr(env.stderr)
	root.SetVersionTemplate("quittance {{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return flagError(cmd, args, err) })
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	root.AddGroup(
		&cobra.Group{ID: groupTry, Title: "Try it and develop against it:"},
		&cobra.Group{ID: groupService, Title: "Run it:"},
		&cobra.Group{ID: groupOther, Title: "More:"},
	)
	initCompletion(root)
	initHelp(root)
	root.SetUsageTemplate(strings.ReplaceAll(usageTemplate, "WIDTH", strconv.Itoa(longestPath(root))))
	return root
}

// longestPath returns the length of the longest path of a command and its subcommands.
func longestPath(cmd *cobra.Command) int {
	longest := len(cmd.CommandPath())
	for _, sub := range cmd.Commands() {
		longest = max(longest, longestPath(sub))
	}
	return longest
}

// group makes cmd a command that requires a subcommand. The help of the subcommands lists
// flags in the order of their definition.
func group(cmd *cobra.Command, subcommands ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(subcommands...)
	for _, sub := range subcommands {
		sub.Flags().SortFlags = false
	}
	cmd.DisableFlagsInUseLine = true
	cmd.SuggestionsMinimumDistance = 2
	cmd.Run = func(*cobra.Command, []string) {} // cobra checks arguments only of commands with Run
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknownCommand(cmd, args[0])
		}
		cmd.PrintErrln(cmd.UsageString())
		return errors.New("missing command")
	}
	return cmd
}

// findCommand returns the command that args name, without parsing its flags. It fails for an unknown
// subcommand of a group. For these, cobra would show the group's help if --help follows.
func findCommand(root *cobra.Command, args []string) (*cobra.Command, error) {
	cmd, rest, err := root.Find(args)
	if err != nil || len(rest) == 0 || !cmd.HasSubCommands() || strings.HasPrefix(rest[0], "-") ||
		rest[0] == cobra.ShellCompRequestCmd || rest[0] == cobra.ShellCompNoDescRequestCmd {
		return cmd, err
	}
	return cmd, unknownCommand(cmd, rest[0])
}

// unknownCommand returns the error for an unknown subcommand, with similar names.
func unknownCommand(parent *cobra.Command, name string) error {
	hint := ""
	if similar := parent.SuggestionsFor(name); len(similar) > 0 {
		hint = fmt.Sprintf(` (did you mean "%s"?)`, strings.Join(similar, `" or "`))
	}
	return fmt.Errorf("unknown command %q%s", name, hint)
}

// noArgs rejects positional arguments.
func noArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("unexpected argument %q", args[0])
	}
	return nil
}

// oneArg returns the check of arguments that are one text. want is the error for others.
func oneArg(want string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 || args[0] == "" {
			return errors.New(want)
		}
		return nil
	}
}

// flagError returns the error of parsing the flags of cmd. For long flags with one dash,
// as in -config, it names the correct form; -help is --help. For unknown flags it names the most similar one.
func flagError(cmd *cobra.Command, args []string, err error) error {
	for _, arg := range args {
		name, _, _ := strings.Cut(strings.TrimPrefix(arg, "-"), "=")
		switch {
		case !strings.HasPrefix(arg, "-") || len(name) < 2 || cmd.Flags().Lookup(name) == nil:
		case name == "help":
			return pflag.ErrHelp
		default:
			return fmt.Errorf("unknown flag -%s (did you mean --%[1]s?)", name)
		}
	}
	if unknown := (*pflag.NotExistError)(nil); errors.As(err, &unknown) {
		var known []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
		if similar := spelling.Nearest(unknown.GetSpecifiedName(), known); similar != "" {
			return fmt.Errorf("%w (did you mean --%s?)", err, similar)
		}
	}
	return err
}

// initHelp adds the command help, which rejects unknown commands.
func initHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	help, _, err := root.Find([]string{"help"})
	cobra.CheckErr(err)
	help.Use, help.Short, help.Long = "help [COMMAND]", "show what a command takes", ""
	help.Run = nil
	help.RunE = func(_ *cobra.Command, args []string) error {
		of, err := findCommand(root, args)
		if err != nil {
			return seeHelp(of, err)
		}
		of.InitDefaultHelpFlag()
		of.InitDefaultVersionFlag()
		return of.Help()
	}
}

// initCompletion adds the command completion, with texts in the style of the others.
func initCompletion(root *cobra.Command) {
	root.SetCompletionCommandGroupID(groupOther)
	root.InitDefaultCompletionCmd()
	completion, _, err := root.Find([]string{"completion"})
	cobra.CheckErr(err)
	group(completion)
	completion.Use, completion.Long = "completion SHELL", "Prints a script that has a shell complete commands, flags and their values."
	for _, shell := range completion.Commands() {
		shell.Short = "complete commands in " + shell.Name()
		shell.Hidden = shell.Name() == "powershell" // the service runs on Unix
	}
}
