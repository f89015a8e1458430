package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/admin"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/ledger"
)

func newChainStatus(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status {--config FILE | --url URL}",
		Short: "show how far chains are indexed, and the state of their nodes",
		Long: `Shows how far each chain is indexed, and the state of its nodes and its writer. It
asks the service at the address in the configuration. If there is no answer, it reads
the database and asks each node itself, and says so.

It exits with 0 if the service runs and every chain shown is ready, else with 1.`,
		Example: `  quittance chain status --config quittance.yaml
  quittance chain status --url http://127.0.0.1:8080 --chain base --json`,
	}
	path := configFlag(cmd)
	url := cmd.Flags().String("url", "", "the service at this `URL`, such as http://127.0.0.1:8080, instead of --config")
	key := chainFlag(cmd, "show only the chain with this `KEY`")
	asJSON := jsonFlag(cmd, "write JSON, as the service's GET /status does")
	cmd.MarkFlagsOneRequired("config", "url") // for completion; the error of Args is better
	cmd.MarkFlagsMutuallyExclusive("config", "url")
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if (*path == "") == (*url == "") {
			return errors.New("chain status needs either --config FILE or --url URL")
		}
		return noArgs(cmd, args)
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return runChainStatus(cmd.Context(), env, *path, *url, *key, *asJSON)
	}
	return cmd
}

func runChainStatus(ctx context.Context, env environment, path, url, key string, asJSON bool) error {
	st, err := askOrLook(ctx, env, path, url)
	if err != nil {
		return err
	}
	if key != "" {
		known := st.Chains
		st.Chains = slices.DeleteFunc(slices.Clone(known), func(c admin.Chain) bool { return c.ChainKey != key })
		if len(st.Chains) == 0 {
			return noChain(key, keysOf(known, func(c admin.Chain) string { return c.ChainKey }))
		}
	}
	if asJSON {
		err = env.writeJSON(st)
	} else {
		err = printStatus(env.stdout, st, time.Now())
	}
	return cmp.Or(err, statusError(st))
}

// askOrLook returns the status of the service at the URL or, without one, of the
// configuration.
func askOrLook(ctx context.Context, env environment, path, url string) (admin.Status, error) {
	if path == "" {
		return admin.FetchStatus(ctx, admin.Service{URL: url}, env.key)
	}
	cfg, err := loadConfig(path)
	if err != nil {
		return admin.Status{}, err
	}
	at := serviceAt(cfg.LocalOperator())
	st, err := admin.FetchStatus(ctx, at, env.key)
	if errors.Is(err, admin.ErrNoService) {
		st, err = admin.OfflineStatus(ctx, admin.Config{Database: cfg.Database, Chains: chainsOf(cfg), Now: time.Now}), nil
		st.Offline = "no answer at " + at.String()
	}
	return st, err
}

// statusError returns an error unless every chain is ready and written.
func statusError(st admin.Status) error {
	if st.Offline != "" {
		return errors.New(st.Offline)
	}
	for _, c := range st.Chains {
		if !c.Ready {
			return fmt.Errorf("%s is not ready", c.ChainKey)
		}
	}
	for _, c := range st.Chains {
		if c.Writer != nil && c.Writer.Error != "" {
			return fmt.Errorf("the registry of %s is not written", c.ChainKey)
		}
	}
	return nil
}

// printStatus writes the status as text: a line for each chain, a line for each node, and
// notes.
func printStatus(out io.Writer, st admin.Status, now time.Time) error {
	var text strings.Builder
	if st.Offline != "" {
		fmt.Fprintf(&text, "There is %s. This is what the database and the nodes say.\n\n", st.Offline)
	}
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CHAIN\tHEAD\tINDEXED\tCONFIRMED\tLAG\tSTATE")
	for _, c := range st.Chains {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%s\t%s\n", c.ChainKey, c.Head, c.Indexed, c.Confirmed, lag(c.Lag), state(c, st.Offline != ""))
	}
	fmt.Fprintln(table, "\nCHAIN\tNODE\tSTATE\tHEAD\tLATENCY\tCALLS\tPER DAY\tERRORS\tREMARK")
	for _, c := range st.Chains {
		for _, p := range c.Providers {
			fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%.1f ms\t%d\t%d\t%d\t%s\n",
				c.ChainKey, p.Provider, nodeState(p), p.Head, p.LatencyMs, p.Calls, p.PerDay, p.Errors, remark(p, now))
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	gap := "\n"
	for _, c := range st.Chains {
		for _, note := range notesOf(c, now) {
			fmt.Fprintf(&text, "%s%s: %s\n", gap, c.ChainKey, note)
			gap = ""
		}
	}
	return writeTrimmed(out, text.String())
}

func lag(l admin.Lag) string {
	if l.Blocks == 0 {
		return "0"
	}
	return fmt.Sprintf("%d (%s)", l.Blocks, time.Duration(l.Seconds)*time.Second)
}

// state returns the state of a chain in a few words.
func state(c admin.Chain, offline bool) string {
	var words []string
	switch {
	case c.Halted != "":
		words = append(words, "halted")
	case c.Ready:
		words = append(words, "ready")
	case !offline:
		words = append(words, "not ready")
	}
	if !offline && !c.Reading {
		words = append(words, "read by another replica")
	}
	for _, p := range []struct {
		what string
		*admin.Progress
	}{{"catching up", c.CatchUp}, {"back-filling", c.Backfill}} {
		if p.Progress != nil {
			words = append(words, p.what+" "+progress(p.Progress))
		}
	}
	return strings.Join(words, ", ")
}

func progress(p *admin.Progress) string {
	text := fmt.Sprintf("%d to %d: %.1f %%", p.From, p.To, p.Percent)
	if p.BlocksPerSecond > 0 {
		text += fmt.Sprintf(", %.0f blocks/s", p.BlocksPerSecond)
	}
	if p.SecondsLeft > 0 {
		text += fmt.Sprintf(", %s left", time.Duration(p.SecondsLeft)*time.Second)
	}
	return text
}

// healthWord returns a word for the health of a node or of a webhook endpoint.
func healthWord[T ~string](health T) string {
	switch string(health) {
	case string(apitypes.NodeUnused):
		return "never tried"
	case string(apitypes.NodeOK):
		return "working"
	}
	return string(health)
}

// nodeState returns whether a node answers, and its state if that is more exact.
func nodeState(p admin.Provider) string {
	word := cmp.Or(healthWord(p.Health), string(p.State))
	switch p.State {
	case chain.StateLagging, chain.StateQuarantined, chain.StateMisconfigured:
		return word + " (" + string(p.State) + ")"
	case chain.StateOK, chain.StateUnknown, chain.StateBackoff:
	}
	return word
}

// remark returns the remark on a node.
func remark(p admin.Provider, now time.Time) string {
	var words []string
	if p.Until > now.Unix() {
		words = append(words, fmt.Sprintf("asked again in %s", time.Duration(p.Until-now.Unix())*time.Second))
	}
	since := func(at int64) time.Duration { return time.Duration(max(0, now.Unix()-at)) * time.Second }
	if p.FailingSince > 0 {
		words = append(words, fmt.Sprintf("failing for %s", since(p.FailingSince)))
	}
	switch {
	case p.Reason != "":
		words = append(words, strings.TrimPrefix(p.Reason, p.Provider+": "))
	case p.LastError != "":
		words = append(words, fmt.Sprintf("last error %s ago", since(p.LastErrorAt)), strings.TrimPrefix(p.LastError, p.Provider+": "))
	}
	return strings.Join(words, ": ")
}

// whatIsLimited names the unit of each kind of request to a node.
var whatIsLimited = map[chain.Kind]string{
	chain.KindHeaders: "headers", chain.KindHeads: "heads", chain.KindLogs: "questions for logs",
	chain.KindReceipts: "receipts", chain.KindCalls: "calls of the writer",
	chain.KindRequestCalls: "calls for requests",
}

// limits describes what a node could not do, or returns "".
func limits(p admin.Provider) string {
	var most, never, words []string
	for _, l := range p.Limits {
		switch what := whatIsLimited[l.Kind]; {
		case l.Kind == chain.KindReceiptsOfBlock:
			never = append(never, "eth_getBlockReceipts")
		case l.Kind == chain.KindRange && l.Size == 0:
			never = append(never, "ranges of logs")
		case l.Kind == chain.KindRange:
			most = append(most, fmt.Sprintf("%s in a range of logs (it refused %d)", count(int(l.Size), "block"), l.Refused))
		case l.Size == 1:
			never = append(never, "batches of "+what)
		default:
			most = append(most, fmt.Sprintf("%d %s in a batch (it refused %d)", l.Size, what, l.Refused))
		}
	}
	if p.Pace > 0 {
		most = append(most, fmt.Sprintf("%.0f calls a second (it refused more)", p.Pace))
	}
	if len(most) > 0 {
		words = append(words, "is asked for at most "+strings.Join(most, ", "))
	}
	if len(never) > 0 {
		words = append(words, "is not asked for "+strings.Join(never, " or "))
	}
	if p.LeadingZeros {
		words = append(words, "writes numbers with leading zeros")
	}
	if len(words) == 0 {
		return ""
	}
	return p.Provider + " " + strings.Join(words, ", and ")
}

// skew describes the skew of the service's clock.
func skew(seconds int64) string {
	apart := time.Duration(seconds) * time.Second
	if apart < 0 {
		return fmt.Sprintf("the clock of the service is %s behind the time of new blocks", -apart)
	}
	return fmt.Sprintf("the clock of the service is %s ahead of the time of new blocks, or they come late", apart)
}

// checks lists the checks with their states.
func checks(all []admin.Check) string {
	words := make([]string, len(all))
	for i, c := range all {
		words[i] = c.Check + " " + c.State
	}
	return strings.Join(words, ", ")
}

// readingNotes returns the notes about how a chain is read.
func readingNotes(c admin.Chain) (notes []string) {
	for _, p := range c.Providers {
		if text := limits(p); text != "" {
			notes = append(notes, text)
		}
	}
	if c.Skewed {
		notes = append(notes, skew(*c.SkewSeconds))
	}
	if len(c.Checks) > 0 {
		notes = append(notes, "checks: "+checks(c.Checks))
	}
	notes = append(notes, logsNote(c)...)
	if a := c.Audit; a != nil {
		notes = append(notes, fmt.Sprintf("audit of final blocks: %d behind, %d of a back-fill to do; verified %d by receipts, %d by another node, %d by their header; %d not verified",
			a.Behind, a.Older, a.ByReceipts, a.ByNode, a.ByHeader, a.Unverified))
	}
	return append(notes, unreadNote(c)...)
}

// notesOf returns the notes to print below the table for a chain.
func notesOf(c admin.Chain, now time.Time) []string {
	var notes []string
	if c.Halted != "" {
		notes = append(notes, "halted: "+c.Halted)
	} else if c.Error != "" && !slices.ContainsFunc(c.Providers, func(p admin.Provider) bool { return p.Reason == c.Error }) {
		notes = append(notes, c.Error)
	}
	notes = append(notes, readingNotes(c)...)
	w := c.Writer
	if w == nil {
		return notes
	}
	text := fmt.Sprintf("the writer %s has %s due and %s in flight", w.Account, count(int(w.Due), "intent"), count(w.InFlight, "transaction"))
	if !w.Working {
		text = fmt.Sprintf("the writer %s waits while another process writes", w.Account)
	} else if w.Budget != nil {
		text += fmt.Sprintf("; its next nonce is %d, and it spent %s of %s in 24 hours", w.NextNonce, coins(w.Spent), coins(w.Budget))
	}
	if w.Elsewhere > 0 {
		text += fmt.Sprintf("; %s wait for a registry that is not the configured one", count(int(w.Elsewhere), "intent"))
	}
	if s := w.Sweeps; s != nil && w.Working {
		text += fmt.Sprintf("; %s (%s) and %d in flight", count(int(s.Queued), "deposit")+" to sweep", s.Policy, s.InFlight)
		if s.Failing > 0 {
			text += fmt.Sprintf(", %d could not be swept", s.Failing)
		}
		if s.Waiting != "" {
			text += ", waiting: " + s.Waiting
		}
	}
	if w.Error != "" {
		text += fmt.Sprintf("; for %s: %s", time.Duration(max(0, now.Unix()-w.Since))*time.Second, w.Error)
	}
	return append(notes, text)
}

// logsNote returns a note if the service would not notice logs that a node omits.
func logsNote(c admin.Chain) []string {
	i := slices.IndexFunc(c.Checks, func(check admin.Check) bool { return check.Check == admin.CheckLogs })
	if i < 0 {
		return nil
	}
	switch c.Checks[i].State {
	case admin.LogsNone:
		if len(c.Providers) > 1 {
			return []string{"a log that the node leaves out of a block goes unnoticed when the block is read: it returns no receipts of whole blocks, and no other node is ok"}
		}
		return []string{"a log that the node leaves out of a block goes unnoticed: it is the only node, and returns no receipts of whole blocks; add a node"}
	case admin.LogsOff:
		return []string{"a log that a node leaves out of a block goes unnoticed when the block is read: compareLogs is off"}
	}
	return nil
}

// unreadNote returns a note with the number of unrecorded transactions, if there are any.
func unreadNote(c admin.Chain) []string {
	var reasons []string
	all := 0
	for _, reason := range ledger.UnreadReasons {
		if n := c.Unread[reason]; n > 0 {
			all += n
			reasons = append(reasons, fmt.Sprint(n, " ", reason))
		}
	}
	if all == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s not recorded (%s); quittance chain unread lists them", are(all, "transaction"), strings.Join(reasons, ", "))}
}

// coins formats an amount of wei in the native coin.
func coins(wei *big.Int) string {
	if wei == nil {
		return "0"
	}
	text := new(big.Rat).SetFrac(wei, big.NewInt(1_000_000_000_000_000_000)).FloatString(9)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}
