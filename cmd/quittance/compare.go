package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/clock"
)

func newCompare(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "compare --url LIVE", GroupID: groupService,
		Short: "compare an isolated copy with the live service",
		Long: `Compares the invoices, payments and refunds of a copy, which quittance serve --isolated
runs, with those of the live service, through the API of both. It changes nothing. Each
difference is printed. Those that the age of the copy explains are listed apart: what was
created since, and what belongs to it. A key of the operator for the live service is read
from the environment variable ` + keyVariable + `; the copy knows it too if it is older.

It ends with 0 if the age of the copy explains every difference, with 1 if it does not, and
with 2 if they could not be compared.`,
		Example: "  quittance compare --url https://pay.example.com --config restored.yaml",
		Args:    noArgs,
	}
	live := cmd.Flags().String("url", "", "`URL` of the live service")
	cobra.CheckErr(cmd.MarkFlagRequired("url"))
	copied := cmd.Flags().String("copy", "http://"+isolatedListen, "`URL` of the isolated copy")
	config := configFlag(cmd)
	cmd.Flags().Lookup("config").Usage = "the copy's configuration `FILE`, for the operator's key that it names"
	asJSON := jsonFlag(cmd, "write JSON")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := openComparison(env, *live, *copied, *config)
		if err != nil {
			return usageError{err}
		}
		found, err := c.compare(cmd.Context())
		if err != nil {
			return usageError{noService(err)}
		}
		if *asJSON {
			err = env.writeJSON(found)
		} else {
			err = printComparison(env, found)
		}
		if err == nil && found.Unexplained > 0 {
			err = fmt.Errorf("%s that the age of the copy does not explain", count(found.Unexplained, "difference"))
		}
		return err
	}
	return cmd
}

// comparison compares a copy with the live service.
type comparison struct {
	live, copied *client.Client
	copiedAt     int64           // Unix seconds
	newInvoices  map[string]bool // created in the live service since
}

// comparisonResult is the output of compare.
type comparisonResult struct {
	CopiedAt    int64          `json:"copiedAt"`
	Compared    map[string]int `json:"compared"` // objects of the live service by kind
	Differences []difference   `json:"differences"`
	Unexplained int            `json:"unexplained"`
}

// difference is an object that only one of the services has, or that they have in different states.
type difference struct {
	Kind   string `json:"kind"`
	ID     string `json:"id"`
	Live   string `json:"live,omitempty"` // its state and sums
	Copy   string `json:"copy,omitempty"`
	Reason string `json:"reason,omitempty"` // how the age of the copy explains it
}

// compared is an object with its state and sums as a text, and how the age of the copy explains a
// difference.
type compared struct{ id, state, reason string }

// openComparison opens both services. The key of the copy is the configuration's if it names one.
func openComparison(env environment, live, copied, path string) (*comparison, error) {
	key := env.key
	if path != "" {
		cfg, err := loadConfig(path)
		if err != nil {
			return nil, err
		}
		if cfg.OperatorKey != (access.Key{}) {
			key = cfg.OperatorKey.Reveal()
		}
	}
	c := &comparison{newInvoices: make(map[string]bool)}
	var err error
	if c.live, err = openClient(live, cmp.Or(env.key, key)); err != nil {
		return nil, err
	}
	c.copied, err = openClient(copied, key)
	return c, err
}

// compare returns the differences. It fails if the copy is not a copy, or has not read the chains to
// their heads.
func (c *comparison) compare(ctx context.Context) (comparisonResult, error) {
	found := comparisonResult{Compared: make(map[string]int), Differences: []difference{}}
	status, err := c.copied.ServiceStatus(ctx)
	if err != nil {
		return found, fmt.Errorf("ask the copy for its state: %w", err)
	}
	if !status.Isolated {
		return found, errors.New("the service at --copy is no isolated copy; start one with quittance serve --isolated")
	}
	for _, chain := range status.Chains {
		if !chain.Ready || chain.CatchUp != nil {
			return found, fmt.Errorf(`the copy has not read the chain %s to its head; repeat the command when "quittance chain status" shows that it has`, chain.ChainKey)
		}
	}
	c.copiedAt, found.CopiedAt = status.CopiedAt, status.CopiedAt
	// The order matters: payments and refunds are explained by their invoices.
	for _, kind := range []struct {
		name string
		list func(context.Context, *client.Client) iter.Seq2[compared, error]
	}{{"invoice", c.invoices}, {"payment", c.payments}, {"refund", c.refunds}} {
		n, differences, err := diffOf(kind.name, kind.list(ctx, c.live), kind.list(ctx, c.copied))
		if err != nil {
			return found, err
		}
		found.Compared[kind.name] = n
		found.Differences = append(found.Differences, differences...)
	}
	for _, d := range found.Differences {
		if d.Reason == "" {
			found.Unexplained++
		}
	}
	return found, nil
}

// diffOf returns the number of objects of the live service, and the differences in the order of their ids.
func diffOf(kind string, live, copied iter.Seq2[compared, error]) (n int, differences []difference, err error) {
	inCopy := make(map[string]string)
	// The live service is read first: the copy finds everything that happens on the chains until then.
	var all []compared
	for o, err := range live {
		if err != nil {
			return 0, nil, fmt.Errorf("list the %ss of the live service: %w", kind, err)
		}
		all = append(all, o)
	}
	for o, err := range copied {
		if err != nil {
			return 0, nil, fmt.Errorf("list the %ss of the copy: %w", kind, err)
		}
		inCopy[o.id] = o.state
	}
	for _, o := range all {
		if state := inCopy[o.id]; state != o.state {
			differences = append(differences, difference{Kind: kind, ID: o.id, Live: o.state, Copy: state, Reason: o.reason})
		}
		delete(inCopy, o.id)
	}
	for id, state := range inCopy {
		differences = append(differences, difference{Kind: kind, ID: id, Copy: state})
	}
	slices.SortFunc(differences, func(a, b difference) int { return cmp.Compare(a.ID, b.ID) })
	return len(all), differences, nil
}

// since returns the reason for a difference of an object that began at a time, or that belongs to an
// invoice.
func (c *comparison) since(began int64, invoiceID string) string {
	switch {
	case began >= c.copiedAt: // within the second of the copy, it may lack some
		return "newer than the copy"
	case c.newInvoices[invoiceID]:
		return "of an invoice that is newer than the copy"
	}
	return ""
}

func (c *comparison) invoices(ctx context.Context, at *client.Client) iter.Seq2[compared, error] {
	return mapped(at.Invoices(ctx, client.InvoiceFilter{PageSize: maxPageSize}), func(inv apitypes.Invoice) compared {
		if inv.CreatedAt >= c.copiedAt {
			c.newInvoices[inv.ID] = true
		}
		return compared{inv.ID, fmt.Sprintf("%s, amount %s, paid %s, refunded %s %s", inv.Status, inv.Amount, inv.AmountPaid, inv.AmountRefunded, inv.Currency), c.since(inv.CreatedAt, "")}
	})
}

func (c *comparison) payments(ctx context.Context, at *client.Client) iter.Seq2[compared, error] {
	return mapped(at.Payments(ctx, client.PaymentFilter{PageSize: maxPageSize, IncludeUnattributed: true}), func(p apitypes.Payment) compared {
		return compared{p.ID, fmt.Sprintf("%s, amount %s, refunded %s %s, invoice %s", orDash(string(p.Status)), p.Amount, cmp.Or(p.AmountRefunded, "0"), p.Currency, orDash(p.InvoiceID)), c.since(0, p.InvoiceID)}
	})
}

func (c *comparison) refunds(ctx context.Context, at *client.Client) iter.Seq2[compared, error] {
	return mapped(at.Refunds(ctx, client.RefundFilter{PageSize: maxPageSize}), func(r apitypes.RefundRecord) compared {
		began := int64(0)
		if r.Prepared {
			began = max(r.CreatedAt, r.CanceledAt)
		}
		return compared{r.ID, fmt.Sprintf("%s, amount %s %s, payment %s", r.Status, cmp.Or(r.AmountTransferred, r.Amount), r.Currency, r.PaymentID), c.since(began, r.InvoiceID)}
	})
}

// mapped returns a list with f applied to its elements.
func mapped[T, U any](list iter.Seq2[T, error], f func(T) U) iter.Seq2[U, error] {
	return func(yield func(U, error) bool) {
		for e, err := range list {
			var u U
			if err == nil {
				u = f(e)
			}
			if !yield(u, err) {
				return
			}
		}
	}
}

func printComparison(env environment, found comparisonResult) error {
	for _, part := range []struct {
		title     string
		explained bool
	}{{"Differences:", false}, {"Explained by the age of the copy, which is of " + clock.Format(time.Unix(found.CopiedAt, 0), time.UTC, time.RFC3339) + ":", true}} {
		rows := slices.DeleteFunc(slices.Clone(found.Differences), func(d difference) bool { return (d.Reason != "") != part.explained })
		if len(rows) == 0 {
			continue
		}
		fmt.Fprintln(env.stdout, part.title)
		err := env.writeTable(func(table io.Writer) {
			fmt.Fprintln(table, "ID\tLIVE\tCOPY\tREASON")
			for _, d := range rows {
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", d.ID, orDash(d.Live), orDash(d.Copy), orDash(d.Reason))
			}
		})
		if err != nil {
			return err
		}
		fmt.Fprintln(env.stdout)
	}
	_, err := fmt.Fprintf(env.stdout, "Compared %s, %s and %s of the live service: %s, of which the age of the copy explains %d.\n", count(found.Compared["invoice"], "invoice"),
		count(found.Compared["payment"], "payment"), count(found.Compared["refund"], "refund"), count(len(found.Differences), "difference"), len(found.Differences)-found.Unexplained)
	return err
}
