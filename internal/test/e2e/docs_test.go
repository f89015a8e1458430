package e2e

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/devtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/testdeps"
)

// checkedDocs lists the guides with commands that TestExtraCommandsOfGuides runs, and the number of
// commands it must find in each.
var checkedDocs = map[string]int{"go-live.md": 4, "reconciliation.md": 12}

// TestExtraCommandsOfGuides runs every command of the guides, and every GET that they name, on a
// service with a paid invoice. The output must have the form that the guide shows.
func TestExtraCommandsOfGuides(t *testing.T) {
	t.Parallel()
	g := newGuide(t)
	for name, least := range checkedDocs {
		text := expect.Must(os.ReadFile(testdeps.Repo("docs/" + name)))
		commands := guideCommands(string(text))
		if len(commands) < least {
			t.Errorf("%s has %d commands, want %d or more", name, len(commands), least)
		}
		for _, c := range commands {
			out := g.run(c.text)
			if problem := compareOutput(c.output, out); problem != "" {
				t.Errorf("%s: %s\n%s\nthe guide shows\n%s\nit prints\n%s", name, c.text, problem, c.output, out)
			}
		}
	}
}

// guideCommand is a command of a guide, and the output that the guide shows, if any.
type guideCommand struct{ text, output string }

var (
	consoleBlock = regexp.MustCompile("(?ms)^```\n(\\$ .*?)^```$")
	inlineCode   = regexp.MustCompile("`(quittance [a-z]+ [^`]+|GET /[^`]+)`")
)

// guideCommands returns the commands of a guide: the lines of its blocks that begin with $,
// and what it names in its text.
func guideCommands(text string) (all []guideCommand) {
	for _, block := range consoleBlock.FindAllStringSubmatch(text, -1) {
		for line := range strings.Lines(block[1]) {
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				all = append(all, guideCommand{text: strings.TrimSpace(command)})
			} else {
				all[len(all)-1].output += line
			}
		}
	}
	for _, code := range inlineCode.FindAllStringSubmatch(consoleBlock.ReplaceAllString(text, ""), -1) {
		command := code[1]
		if path, ok := strings.CutPrefix(command, "GET "); ok {
			command = "curl -s 'http://127.0.0.1:8080" + path + `' -H "$AUTH"`
		}
		all = append(all, guideCommand{text: command})
	}
	return all
}

// guide is the service on which the commands run.
type guide struct {
	testing.TB
	dir          string
	env          []string
	replacements *strings.Replacer // replaces the guide's placeholders
}

// newGuide starts a service with a merchant acme that has a paid invoice.
func newGuide(t *testing.T) *guide {
	t.Helper()
	w, r := newServedWorld(t), newReceiver(t)
	r.setSecret("whsec_of_acme_shop")
	g, chain, database := &guide{TB: t, dir: w.dir}, w.info.Load().Chain, dbtest.SQLite(t)
	config := fmt.Sprintf(restoreConfig, r.URL, chain.ChainID, chain.RPCURL, chain.Token)
	w.configure(strings.Replace(config, "127.0.0.1:0", devtest.FreeAddress(t), 1))
	w.env = serveEnv(database)
	w.serve()

	d := w.draft("4900000")
	d.Reference = "order-10017"
	made := w.create(d)
	tx := w.chain.payer().mustTransfer(t, made.Invoice.MerchantAddress, made.Invoice.TransferAmount, nil)
	w.awaitInvoice(made.ID, func(inv apitypes.Invoice) bool { return inv.Status == apitypes.StatusPaid })
	r.await(w.ctx, string(apitypes.EventInvoicePaid), made.ID)

	key := decoded[apitypes.KeySecretResponse](t, w.do(http.MethodPost, "/api/keys", `{"name":"guide","merchantId":"acme","scopes":["admin"]}`, "Content-Type", "application/json"), http.StatusCreated)
	g.env = append(serveEnv(database), keyEnv+"="+operatorKey, "AUTH=Authorization: Bearer "+key.Secret, "QUITTANCE_API_KEY="+key.Secret,
		"PATH="+filepath.Dir(program)+string(os.PathListSeparator)+os.Getenv("PATH"))
	day := time.Now().UTC().Truncate(24 * time.Hour)
	base := w.info.Load().BaseURL
	g.replacements = strings.NewReplacer(
		"http://127.0.0.1:8080", base, "https://pay.example.com", base,
		"from=2026-11-22&to=2026-11-23", "from="+day.Add(-24*time.Hour).Format(time.DateOnly)+"&to="+day.Add(48*time.Hour).Format(time.DateOnly),
		"confirmedAfter=1795305600&confirmedBefore=1795392000", fmt.Sprintf("confirmedAfter=%d&confirmedBefore=%d", day.Unix()-86400, day.Unix()+2*86400),
		"txHash=0x…", "txHash="+tx.Hex(), "from=0x…", "from="+w.chain.info.Load().Payer.Address,
		"quittance payments ", "quittance payments --url "+base+" ", "quittance invoices ", "quittance invoices --url "+base+" ",
		"quittance events ", "quittance events --url "+base+" ",
	)
	return g
}

// run runs a command in the folder of the configuration, and returns what it prints.
func (g *guide) run(command string) string {
	g.Helper()
	command = g.replacements.Replace(strings.Replace(command, "curl -s ", "curl -sS --fail-with-body ", 1))
	cmd := exec.CommandContext(within(g, patience), "sh", "-c", command)
	cmd.Dir, cmd.Env = g.dir, append(os.Environ(), g.env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		g.Errorf("%s: %v\n%s", command, err, out)
	}
	return string(out)
}

var jsonMember = regexp.MustCompile(`"([A-Za-z]+)":`)

// compareOutput compares the form of an output with the guide's: the members of JSON, and the head of
// a table. It returns the difference, or "".
func compareOutput(shown, got string) string {
	switch {
	case shown == "":
		return ""
	case strings.HasPrefix(shown, "{"):
		want, has := members(shown), members(got)
		for _, name := range want {
			if !slices.Contains(has, name) {
				return "it has no member " + name
			}
		}
		for _, name := range has {
			if !slices.Contains(want, name) && !strings.Contains(shown, "…") {
				return "the guide lacks the member " + name
			}
		}
		return ""
	}
	head := func(text string) []string {
		first, _, _ := strings.Cut(text, "\n")
		return strings.Fields(first)
	}
	if want, has := head(shown), head(got); !slices.Equal(want, has) {
		return fmt.Sprintf("it begins with %q, want %q", has, want)
	}
	return ""
}

// members returns the names of members in a JSON text.
func members(text string) (names []string) {
	for _, m := range jsonMember.FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	return names
}
