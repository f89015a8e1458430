package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/quittance/quittance/internal/server"
	"github.com/quittance/quittance/internal/settle"
)

func newRecoverImport(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import FILE --config FILE",
		Short: "create lost invoices again from the merchants' copies",
		Long: fmt.Sprintf(`Creates invoices that a restored database lacks from what their merchants kept, with the
same id, commitment and deposit address. Their payments are attributed by the usual rules
once serve has read the chains again. Run quittance recover first, and this before serve.

Each line of FILE is JSON: the body of an event, an answer of the API, an invoice, or a
delivery as {"headers": {"X-Service-Signature": "…"}, "body": "…"}. An invoice is created
if its commitment is on the chain, or if a secret of the merchant's endpoint signed the
delivery, however long ago. Others are refused, by name. Events without an invoice's terms,
such as invoice.paid and payment.received, are skipped. A line has at most %d bytes.

The lines are applied one by one, and FILE may be applied again. It ends with 1 if a line
was refused.`, settle.MaxCopy),
		Example: "  quittance recover import copies.jsonl --config quittance.yaml",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("recover import needs the one file to read")
			}
			return nil
		},
	}
	path := requiredConfigFlag(cmd)
	asJSON := jsonFlag(cmd, "write JSON: lines, byChain, bySignature, existing, void, skipped, refused")
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		cfg, err := loadConfig(*path)
		if err != nil {
			return err
		}
		file, err := os.Open(args[0])
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		ctx := asCommand(cmd.Context())
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
	}
	return cmd
}

// importSummary counts what became of the lines of a file.
type importSummary struct {
	Lines       int      `json:"lines"`
	ByChain     int      `json:"byChain"`     // created, as the chain has their commitment
	BySignature int      `json:"bySignature"` // created, as the delivery was signed
	Existing    int      `json:"existing"`
	Void        []string `json:"void"`    // created as open, and void in the copy
	Skipped     int      `json:"skipped"` // events that do not have the terms of an invoice
	Refused     int      `json:"refused"`
}

// importCopies applies the lines of a file. It writes why lines are refused, and fails if the file cannot be read.
func importCopies(ctx context.Context, refused io.Writer, file io.Reader, apply func(context.Context, settle.InvoiceCopy) (settle.Imported, error)) (sum importSummary, err error) {
	sum.Void = []string{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, settle.MaxCopy+1)
	for number := 1; lines.Scan(); number++ {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		sum.Lines++
		copied, err := settle.ParseInvoiceCopy(line)
		var done settle.Imported
		if err == nil {
			done, err = apply(ctx, copied)
		}
		if ctx.Err() != nil {
			return sum, context.Cause(ctx)
		}
		switch {
		case errors.Is(err, settle.ErrNoTerms):
			sum.Skipped++
		case err != nil:
			sum.Refused++
			fmt.Fprintf(refused, "line %d %srefused: %v\n", number, named(copied.Invoice.ID), err)
		case done.Exists:
			sum.Existing++
		case done.Proof == settle.ProvedByChain:
			sum.ByChain++
		default:
			sum.BySignature++
		}
		if err == nil && done.Void && !done.Exists {
			sum.Void = append(sum.Void, done.Invoice.ID)
		}
	}
	if err := lines.Err(); err != nil {
		return sum, fmt.Errorf("after %s, a line cannot be read; at most %d bytes are: %w", count(sum.Lines, "line"), settle.MaxCopy, err)
	}
	return sum, nil
}

// named returns the id with a space, or nothing.
func named(id string) string {
	if id == "" {
		return ""
	}
	return id + " "
}

// print prints the summary. It returns an error if lines were refused.
func (sum importSummary) print(env environment, asJSON bool) error {
	var err error
	if asJSON {
		err = env.writeJSON(sum)
	} else {
		_, err = fmt.Fprintf(env.stdout, "%s: %s created whose commitment is on the chain, %d by signature, %d exist already, %d refused; %s without terms skipped.\n",
			count(sum.Lines, "line"), count(sum.ByChain, "invoice"), sum.BySignature, sum.Existing, sum.Refused, count(sum.Skipped, "event"))
		for _, id := range sum.Void {
			fmt.Fprintf(env.stdout, "%s was void in the copy and is open now; make it void again.\n", id)
		}
	}
	if err == nil && sum.Refused > 0 {
		err = fmt.Errorf("%s refused; the others are applied", are(sum.Refused, "line"))
	}
	return err
}
