package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/quittance/quittance/internal/config"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/server"
)

func newRecoverImport(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import FILE --config FILE",
		Short: "create lost invoices again from the merchants' copies",
		Long: fmt.Sprintf(`Creates invoices that a restored database lacks from what their merchants kept, with the
same id, commitment and deposit address. Their payments are attributed by the usual rules
once serve has read the chains again. Run quittance recover first, and this before serve.

Each line of FILE is JSON: the body of an event, an answer of the API, an invoice, or a
delivery as {"headers": {"X-Service-Signature": "…"}, "body": "…"}, with its
"onChainInvoiceId" if the chain has had another registry or none. An invoice is created
if a secret of the merchant's endpoint signed the delivery, however long ago, or if its
commitment is on the chain and its merchant holds its address or has it in the
configuration. Others are refused, by name. Events without an invoice's terms, such as
invoice.paid and payment.received, are skipped. A line has at most %d bytes.

An invoice that is void or expired in a copy becomes so, also one that is open in the
database. One that is paid in a copy does not expire, and is paid once its payments are
attributed. Lines with these states are applied first, one line at a time. FILE may be
applied again. It ends with 1 if a line was refused.`, ledger.MaxCopy),
		Example: "  quittance recover import copies.jsonl --config quittance.yaml",
		Args:    oneArg("recover import needs the one file to read"),
	}
	path := requiredConfigFlag(cmd)
	asJSON := jsonFlag(cmd, "write JSON: lines, byChain, bySignature, existing, held, skipped, refused")
	cmd.RunE = withConfig(path, func(ctx context.Context, cfg config.Config, args []string) (err error) {
		file, err := os.Open(args[0])
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		ctx = asCommand(ctx)
		into, err := server.OpenImporter(ctx, recoverConfig(env, cfg))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, into.Close()) }()
		sum, err := importCopies(ctx, env.stderr, file, into.Import)
		if err != nil {
			return err
		}
		return sum.print(env, *asJSON)
	})
	return cmd
}

// importSummary counts the outcomes of the lines of a file.
type importSummary struct {
	Lines       int      `json:"lines"`
	ByChain     int      `json:"byChain"`     // created, as the chain has their commitment
	BySignature int      `json:"bySignature"` // created, as the delivery was signed
	Existing    int      `json:"existing"`
	Held        []string `json:"held"`    // open, and paid in their copies or closed on the chain
	Skipped     int      `json:"skipped"` // events without the terms of an invoice
	Refused     int      `json:"refused"`
}

// applyCopy applies a copy: server.Importer.Import.
type applyCopy func(context.Context, ledger.InvoiceCopy) (ledger.Imported, error)

// importCopies applies the lines of a file. Final states come first: open invoices may use their
// references and transfer amounts by now. A final state without proof is applied again after the
// others, which may have created its invoice. It writes why lines are refused, and fails if the file
// cannot be read.
func importCopies(ctx context.Context, refused io.Writer, file io.ReadSeeker, apply applyCopy) (sum importSummary, err error) {
	sum.Held = []string{}
	unproved := make(map[int]bool) // numbers of lines
	for pass := range 3 {
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			return sum, err
		}
		if err := sum.read(ctx, refused, file, pass, unproved, apply); err != nil {
			return sum, err
		}
	}
	return sum, nil
}

// read reads a file in one of the passes of importCopies. unproved are the numbers of the lines that
// the first pass leaves for the second.
func (sum *importSummary) read(ctx context.Context, refused io.Writer, file io.Reader, pass int, unproved map[int]bool, apply applyCopy) error {
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, ledger.MaxCopy+1)
	for number := 1; lines.Scan(); number++ {
		line := bytes.TrimSpace(lines.Bytes())
		copied, err := ledger.ParseInvoiceCopy(line)
		ended := err == nil && copied.Ended()
		if len(line) == 0 || ended != (pass != 1) || pass == 2 && !unproved[number] {
			continue
		}
		var done ledger.Imported
		if err == nil {
			done, err = apply(ctx, copied)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if pass == 0 && (errors.Is(err, ledger.ErrCopyUnproved) || errors.Is(err, ledger.ErrNotOfMerchant)) {
			unproved[number] = true
			continue
		}
		if sum.add(done, err); err != nil && !errors.Is(err, ledger.ErrNoTerms) {
			fmt.Fprintf(refused, "line %d %srefused: %v\n", number, named(copied.Invoice.ID), err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("after %s, a line cannot be read; at most %d bytes are: %w", count(sum.Lines, "line"), ledger.MaxCopy, err)
	}
	return nil
}

// add counts the outcome of a line.
func (sum *importSummary) add(done ledger.Imported, err error) {
	sum.Lines++
	switch {
	case errors.Is(err, ledger.ErrNoTerms):
		sum.Skipped++
	case err != nil:
		sum.Refused++
	case done.Exists:
		sum.Existing++
	case done.Proof == ledger.ProvedByChain:
		sum.ByChain++
	default:
		sum.BySignature++
	}
	if id := done.Invoice.ID; err == nil && done.Held && !slices.Contains(sum.Held, id) {
		sum.Held = append(sum.Held, id)
	}
}

// named returns the id with a space, or "".
func named(id string) string {
	if id == "" {
		return ""
	}
	return id + " "
}

// print prints the summary. It returns an error if lines were refused.
func (sum *importSummary) print(env environment, asJSON bool) error {
	var err error
	if asJSON {
		err = env.writeJSON(sum)
	} else {
		_, err = fmt.Fprintf(env.stdout, "%s: %s created whose commitment is on the chain, %d by signature, %d exist already, %d refused; %s without terms skipped.\n",
			count(sum.Lines, "line"), count(sum.ByChain, "invoice"), sum.BySignature, sum.Existing, sum.Refused, count(sum.Skipped, "event"))
		for _, id := range sum.Held {
			fmt.Fprintf(env.stdout, "%s is open and does not expire: it is paid in its copy, or was closed on the chain. "+
				"If serve leaves it open, attribute its payment by hand, or make it void.\n", id)
		}
	}
	if err == nil && sum.Refused > 0 {
		err = fmt.Errorf("%s refused; the others are applied", are(sum.Refused, "line"))
	}
	return err
}
