package ledger_test

import (
	"context"
	"database/sql"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/rowtest"
	"github.com/quittance/quittance/internal/webhooks"
)

// claimReads are the reads of claims and of unattributed payments, with the indexes that they must use.
var claimReads = []struct {
	name string
	read func(ctx context.Context, s *db.DB) error
	want []string
}{
	{"all claims", listClaims(ledger.ClaimFilter{}), []string{"claims_pkey", "payments_pkey"}},
	{"a merchant's claims", listClaims(ledger.ClaimFilter{MerchantID: "m"}), []string{"claims_by_merchant", "payments_pkey"}},
	{"claims to a payment", listClaims(ledger.ClaimFilter{PaymentID: "pay_2"}), []string{"claims_by_payment", "payments_pkey"}},
	{"a merchant's claims to a payment", listClaims(ledger.ClaimFilter{MerchantID: "m", PaymentID: "pay_2"}), []string{"claims_by_payment", "payments_pkey"}},
	{"claims for an invoice", func(ctx context.Context, s *db.DB) error {
		_, err := ledger.OpenClaimsOfInvoice(ctx, s, "inv_1", 10)
		return err
	}, []string{"claims_by_invoice", "payments_pkey"}},
	{"the first claims to payments", func(ctx context.Context, s *db.DB) error {
		_, err := ledger.NewReader(s).ClaimsOfPayments(ctx, []string{"pay_1", "pay_2"}, "", 10)
		return err
	}, []string{"claims_signed_first", "payments_pkey"}},
	{"the first claims of a merchant to payments", func(ctx context.Context, s *db.DB) error {
		_, err := ledger.NewReader(s).ClaimsOfPayments(ctx, []string{"pay_1", "pay_2"}, "m", 10)
		return err
	}, []string{"claims_signed_first", "payments_pkey"}},
	{"whether an invoice claims a payment", func(ctx context.Context, s *db.DB) error {
		_, err := ledger.NewReader(s).InvoiceClaims(ctx, "inv_1", "pay_2")
		return err
	}, []string{"claims_payment_id_invoice_id_key"}},
	{"near invoices", func(ctx context.Context, s *db.DB) error {
		_, err := ledger.NewReader(s).NearInvoices(ctx, []ledger.NearLookup{{Transfer: rowtest.SamplePayment(1).Transfer, CreatedBefore: invoice.Unix(2_000_000_000)}}, "m")
		return err
	}, []string{"invoices_near", "invoices_rare", "transfer_amounts_by_base"}},
	{"merchants of unattributed payments", func(ctx context.Context, s *db.DB) error {
		_, err := ledger.MerchantsOfUnattributed(ctx, s, []string{"pay_1", "pay_2"})
		return err
	}, []string{"payments_pkey", "unattributed_pkey"}},
	{"optional events", func(ctx context.Context, s *db.DB) error {
		_, err := webhooks.OptionalEvents(ctx, s, []string{"m", "n"})
		return err
	}, []string{"endpoints_pkey"}},
}

// listClaims returns a function that reads a page of claims.
func listClaims(f ledger.ClaimFilter) func(context.Context, *db.DB) error {
	return func(ctx context.Context, s *db.DB) error {
		for _, before := range []string{"", "clm_5"} {
			f.Before, f.Limit = before, 50
			if _, err := ledger.NewReader(s).Claims(ctx, f); err != nil {
				return err
			}
		}
		return nil
	}
}

// TestClaimReadsUseTheirIndexes checks that each read uses its index without a sort, because payers
// write claims and their number is unlimited.
func TestClaimReadsUseTheirIndexes(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		url := dbtest.SQLite(t)
		s := dbtest.Open(t, url)
		checkClaimReads(t, s, dbtest.SQL(t, url), rowtest.PlanReader{
			Explain: "EXPLAIN QUERY PLAN ", Columns: 4, Parameters: "?", Sort: "TEMP B-TREE",
			Index: regexp.MustCompile(`USING (?:COVERING )?INDEX (\S+)`),
			Names: map[string]string{
				"sqlite_autoindex_claims_1": "claims_pkey", "sqlite_autoindex_claims_2": "claims_payment_id_invoice_id_key",
				"sqlite_autoindex_payments_1": "payments_pkey", "sqlite_autoindex_unattributed_1": "unattributed_pkey",
				"sqlite_autoindex_endpoints_1": "endpoints_pkey",
			},
		})
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		url := dbtest.MigratedPostgres(t)
		s := dbtest.Open(t, url)
		conn := rowtest.IndexesAlone(t, url)
		checkClaimReads(t, s, conn, rowtest.PlanReader{
			Explain: "EXPLAIN ", Columns: 1, Parameters: "$", Sort: "Sort", Index: regexp.MustCompile(`using (\S+) on `),
		})
	})
}

func checkClaimReads(t *testing.T, s *db.DB, conn *sql.DB, r rowtest.PlanReader) {
	t.Helper()
	rowtest.Fill(t, s)
	if r.Parameters == "$" { // PostgreSQL chooses by the size of tables
		for _, statement := range []string{
			`INSERT INTO invoices SELECT r.* FROM invoices AS i, generate_series(1, 2000) AS n, jsonb_populate_record(i, jsonb_build_object('id', 'inv_n' || n,
				'amount', (1000 + n)::text, 'from_block', 1, 'commitment_id', '0x' || md5(n::text) || md5(n::text), 'transfer_amount', NULL)) AS r WHERE i.id = 'inv_1'`,
			"ANALYZE invoices",
		} {
			expect.Success(t)(conn.ExecContext(t.Context(), statement))
		}
	}
	rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
		return ledger.SaveClaim(ctx, tx, ledger.ClaimRow{ID: "clm_1", PaymentID: "pay_2", InvoiceID: "inv_1", MerchantID: "m"})
	})
	for _, c := range claimReads {
		var statements []rowtest.Statement
		read := db.Recorded(s, func(query string, args []any) {
			statements = append(statements, rowtest.Statement{Query: query, Args: slices.Clone(args)})
		})
		rowtest.Must(t, c.read(t.Context(), read))
		var got []string
		for _, s := range statements {
			if strings.Contains(s.Query, "WHERE payment_id = payment LIMIT 1") {
				continue // every index on the payment finds whether it has a claim
			}
			for _, step := range rowtest.Explain(t, conn, r.Explain+strings.ReplaceAll(s.Query, "$", r.Parameters), s.Args, r.Columns) {
				if strings.Contains(step, r.Sort) {
					t.Errorf("%s: %s\n%s", c.name, step, s.Query)
				}
				if found := r.Index.FindStringSubmatch(step); found != nil {
					name := found[1]
					if known, ok := r.Names[name]; ok {
						name = known
					}
					got = append(got, name)
				}
			}
		}
		slices.Sort(got)
		if got = slices.Compact(got); !slices.Equal(got, c.want) {
			t.Errorf("%s: found by %v, want %v\n%v", c.name, got, c.want, statements)
		}
	}
}
