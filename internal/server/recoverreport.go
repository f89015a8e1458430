package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/txmgr"
	"github.com/quittance/quittance/internal/webhooks"
)

// maxReported bounds each list of a report, and recoveryKeys the keys that are read in one statement.
const (
	maxReported  = 10_000
	recoveryKeys = 500
)

// ErrKeysUndecided is the error of a recovery that was not given the keys of the API that stay valid.
var ErrKeysUndecided = errors.New("the chains are read, but it is not decided which keys of the API stay valid: any of them may have been revoked since the backup. " +
	`Run this again with --keep-keys all, --keep-keys none, or --keep-keys ID,ID: the others are revoked`)

// RecoveryReport is what a person must check after a recovery.
type RecoveryReport struct {
	Reason   string         `json:"reason"`    // why the database was recovered
	BegunAt  int64          `json:"begunAt"`   // Unix seconds
	Timeline string         `json:"timeline"`  // that began
	LastSeq  int64          `json:"lastEvent"` // the last event that the abandoned timeline shares
	Audit    ReportedHead   `json:"auditHead"` // of the restored log
	Chains   []ReportedPast `json:"chains"`
	Refunds  []string       `json:"refunds"` // ids of prepared refunds that were recognized on chain
	Keys     []ReportedKey  `json:"keys"`    // active in the backup
}

// ReportedHead is the head of the audit log, to be compared with an archived one.
type ReportedHead struct {
	Seq  int64  `json:"seq"`
	Hash string `json:"hash"`
}

// ReportedPast is what the recovery found on a chain.
type ReportedPast struct {
	ChainKey string            `json:"chainKey"`
	From     uint64            `json:"fromBlock"` // the first block that the backup had not read
	To       uint64            `json:"toBlock"`
	ToTime   int64             `json:"toTime"`         // of that block, in Unix seconds
	Lost     []ReportedInvoice `json:"lostInvoices"`   // missing in the database
	Foreign  []ReportedOpener  `json:"unknownOpeners"` // of other missing invoices
	Closed   []ReportedInvoice `json:"closedInvoices"` // open here, but closed on chain before they expired
	Watched  int               `json:"watchedAddresses"`
	// Unwatched counts lost invoices with deposit addresses beyond the limit of watched addresses.
	Unwatched int               `json:"unwatchedInvoices,omitempty"`
	Payments  []ReportedPayment `json:"unattributedPayments"`
	// Transfers are transfers out of settlement addresses since the backup that are not known refunds.
	Transfers []ReportedTransfer `json:"unrecognizedTransfers"`
	// Unread are transactions that no node has returned, so that it is not known whom they pay.
	Unread []ReportedUnread `json:"unreadTransactions,omitempty"`
}

// ReportedUnread is a transaction that the service reads later.
type ReportedUnread struct {
	TxHash string `json:"txHash"`
	Block  uint64 `json:"block"`
}

// ReportedTransfer is a transfer that may have refunded a payment. Until it is checked, refunds of
// these payments cannot be sent.
type ReportedTransfer struct {
	ID       string   `json:"id"`
	TxHash   string   `json:"txHash"`
	From     string   `json:"from"` // the settlement address
	To       string   `json:"to"`
	Amount   string   `json:"amount"`
	Currency string   `json:"currency"`
	Payments []string `json:"payments"` // ids of the payments that it may have refunded, the newest ones
}

// ReportedInvoice is an invoice that the database lost, or with an outcome that it lost.
type ReportedInvoice struct {
	OnChainID string `json:"onChainInvoiceId"`
	InvoiceID string `json:"invoiceId,omitempty"`
	Block     uint64 `json:"block"`
}

// ReportedPayment is a payment since the backup that does not belong to an invoice.
type ReportedPayment struct {
	ID        string `json:"id"`
	TxHash    string `json:"txHash"`
	To        string `json:"to"`
	Amount    string `json:"amount"`
	Currency  string `json:"currency"`
	OnChainID string `json:"lostInvoice,omitempty"` // lost invoice that it was for, if known
}

// ReportedKey is a key of the API, or a membership of a person, that was active in the backup.
type ReportedKey struct {
	ID         string   `json:"id"`
	Name       string   `json:"name"`
	MerchantID string   `json:"merchantId,omitempty"` // empty: the operator
	CreatedAt  int64    `json:"createdAt"`
	Kept       bool     `json:"kept"`
	Email      string   `json:"email,omitempty"`    // of the person
	Passkeys   []string `json:"passkeys,omitempty"` // names of the person's passkeys, which go unless a membership is kept
}

// endRecovery writes the report, decides about the keys and makes the state normal.
func (s *Server) endRecovery(ctx context.Context, o RecoverOptions) (report RecoveryReport, err error) {
	if report, err = s.recoveryReport(ctx); err != nil {
		return report, err
	}
	if len(report.Keys) > 0 && len(o.KeepKeys) == 0 {
		return report, ErrKeysUndecided
	}
	for i, k := range report.Keys {
		report.Keys[i].Kept = slices.Contains(o.KeepKeys, KeepAll) || slices.Contains(o.KeepKeys, k.ID)
	}
	return report, s.store.Update(ctx, func(tx *db.Tx) error {
		if err := s.revokeKeys(ctx, tx, report.Keys); err != nil {
			return err
		}
		if err := access.RemoveFormerPasskeys(ctx, tx, s.cfg.Now()); err != nil {
			return err
		}
		was, err := tx.Recovery(ctx)
		if err != nil {
			return err
		}
		if err := txmgr.ForgetNonces(ctx, tx); err != nil {
			return err
		}
		if err := ledger.EndRecovery(ctx, tx); err != nil {
			return err
		}
		return s.setRecovery(ctx, tx, access.ActionRecoveryEnd, was, db.Recovery{State: db.RecoveryNormal, Since: s.cfg.Now()})
	})
}

// checkKept returns an error unless the keys to keep are all, none, or the ids of active keys.
func (s *Server) checkKept(ctx context.Context, kept []string) error {
	if len(kept) == 1 && (kept[0] == KeepAll || kept[0] == KeepNone) {
		return nil
	}
	active, err := s.activeKeys(ctx)
	for _, id := range kept {
		if err == nil && !slices.ContainsFunc(active, func(k ReportedKey) bool { return k.ID == id }) {
			err = fmt.Errorf("--keep-keys names %q, which is no active key; want all, none, or the ids that quittance key list shows", id)
		}
	}
	return err
}

// revokeKeys revokes the keys that are not kept.
func (s *Server) revokeKeys(ctx context.Context, tx *db.Tx, keys []ReportedKey) error {
	if err := access.LockKeys(ctx, tx); err != nil {
		return err
	}
	for _, k := range keys {
		if k.Kept {
			continue
		}
		r, err := access.NewReader(tx).Key(ctx, k.ID)
		if err != nil {
			return err
		}
		r.RevokedAt = s.cfg.Now()
		if err := access.UpdateKey(ctx, tx, r); err != nil {
			return err
		}
		if err := access.AppendAudit(ctx, tx, access.NewEntry(ctx, s.cfg.Now(), access.Change{MerchantID: r.MerchantID, Action: access.ActionKeyRevoke, Object: r.ID})); err != nil {
			return err
		}
	}
	return nil
}

// recoveryReport reads the findings of the recovery.
func (s *Server) recoveryReport(ctx context.Context) (report RecoveryReport, err error) {
	state, err := s.store.Recovery(ctx)
	if err != nil {
		return report, err
	}
	all, err := webhooks.Timelines(ctx, s.store)
	if err != nil {
		return report, err
	}
	t := all[len(all)-1]
	report = RecoveryReport{Reason: state.Reason, BegunAt: state.Since.Unix(), Timeline: t.ID, LastSeq: t.LastSeq, Audit: ReportedHead{Seq: t.LastAudit}}
	if t.LastAudit > 0 {
		entries, err := access.NewReader(s.store).AuditEntries(ctx, access.AuditFilter{Before: t.LastAudit + 1, Limit: 1})
		if err != nil {
			return report, err
		}
		if len(entries) > 0 {
			report.Audit.Hash = entries[0].Hash.String()
		}
	}
	from, err := ledger.RecoveredFrom(ctx, s.store)
	if err != nil {
		return report, err
	}
	for _, c := range s.cfg.Chains {
		past, err := s.reportPast(ctx, c.Key, from[c.Key])
		if err != nil {
			return report, err
		}
		report.Chains = append(report.Chains, past)
	}
	if report.Refunds, err = ledger.RefundsByReason(ctx, s.store, ledger.LostRefundReason, maxReported); err != nil {
		return report, err
	}
	report.Keys, err = s.activeKeys(ctx)
	return report, err
}

// reportPast reads the findings on a chain.
func (s *Server) reportPast(ctx context.Context, key string, from uint64) (past ReportedPast, err error) {
	cur, err := s.settle.Cursor(ctx, key)
	if err != nil {
		return past, err
	}
	past = ReportedPast{ChainKey: key, From: from, To: cur.Indexed.Number, ToTime: cur.Indexed.Time.Unix()}
	lost, err := ledger.LostInvoices(ctx, s.store, key)
	if err != nil {
		return past, err
	}
	if lost, past.Foreign, err = s.splitLost(ctx, key, lost); err != nil {
		return past, err
	}
	for _, l := range lost {
		found := ReportedInvoice{OnChainID: l.CommitmentID.String(), InvoiceID: l.InvoiceID, Block: max(l.Block, l.ClosedBlock)}
		if l.InvoiceID != "" {
			past.Closed = append(past.Closed, found)
		} else {
			past.Lost = append(past.Lost, found)
		}
	}
	if past.Watched, err = ledger.LostAddresses(ctx, s.store, key); err != nil {
		return past, err
	}
	if past.Unwatched, err = s.settle.UnwatchedLost(ctx, key); err != nil {
		return past, err
	}
	payments, err := ledger.UnattributedSince(ctx, s.store, key, from, maxReported)
	if err != nil {
		return past, err
	}
	of, err := ledger.NewReader(s.store).LostPayments(ctx, payments)
	for _, p := range payments {
		id := of[p.ID]
		found := ReportedPayment{ID: p.ID, TxHash: p.TxHash.String(), To: p.To.String(), Amount: p.Amount.String(), Currency: p.Currency}
		if !id.IsZero() {
			found.OnChainID = id.String()
		}
		past.Payments = append(past.Payments, found)
	}
	if err != nil {
		return past, err
	}
	transfers, err := ledger.UnrecognizedTransfers(ctx, s.store, key, ledger.UnrecognizedTransfer{}, maxReported)
	for _, t := range transfers {
		past.Transfers = append(past.Transfers, ReportedTransfer{
			ID: t.ID, TxHash: t.TxHash.String(), From: t.From.String(), To: t.To.String(), Amount: t.Amount.String(), Currency: t.Currency, Payments: t.Payments,
		})
	}
	if err != nil {
		return past, err
	}
	unread, err := s.settle.UnreadTransactions(ctx, key)
	for _, u := range unread {
		past.Unread = append(past.Unread, ReportedUnread{u.TxHash.String(), u.Block})
	}
	return past, err
}

// activeKeys returns the keys that are valid.
func (s *Server) activeKeys(ctx context.Context) (active []ReportedKey, err error) {
	for before := ""; ; {
		keys, err := access.NewReader(s.store).Keys(ctx, access.KeyFilter{Before: before, Limit: recoveryKeys})
		if err != nil {
			return nil, err
		}
		for _, k := range keys {
			if k.RevokedAt.IsZero() && (k.ExpiresAt.IsZero() || k.ExpiresAt.After(s.cfg.Now())) {
				reported, err := s.reportKey(ctx, k)
				if err != nil {
					return nil, err
				}
				active = append(active, reported)
			}
			before = k.ID
		}
		if len(keys) < recoveryKeys {
			return active, nil
		}
	}
}

// reportKey returns a key of a report, with its person if it is a membership.
func (s *Server) reportKey(ctx context.Context, k access.Record) (ReportedKey, error) {
	reported := ReportedKey{ID: k.ID, Name: k.Name, MerchantID: k.MerchantID, CreatedAt: k.CreatedAt.Unix()}
	if k.PersonID == "" {
		return reported, nil
	}
	person, passkeys, err := access.NewReader(s.store).PersonWithPasskeys(ctx, k.PersonID)
	reported.Email = person.Email
	for _, p := range passkeys {
		reported.Passkeys = append(reported.Passkeys, p.Name)
	}
	return reported, err
}

// text describes the key in a document.
func (k ReportedKey) text() string {
	end := "revoked"
	if k.Kept {
		end = "kept"
	}
	if k.Email != "" {
		end += fmt.Sprintf("; a membership of %s, with the passkeys %q", k.Email, k.Passkeys)
	}
	return fmt.Sprintf("`%s` %q of %s: %s", k.ID, k.Name, cmp.Or(k.MerchantID, "the operator"), end)
}

// Markdown returns the report as a document.
func (r RecoveryReport) Markdown() string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p("# Recovery of %s\n", clock.Format(time.Unix(r.BegunAt, 0), time.UTC, time.RFC3339))
	p("Why: %s.\n", r.Reason)
	p("- Timeline `%s` began behind event %d. All sessions and links that sign in have ended.", r.Timeline, r.LastSeq)
	p("- The audit log was restored up to entry %d, `%s`. If an archived head is newer, the entries between are lost here.\n", r.Audit.Seq, r.Audit.Hash)
	for _, c := range r.Chains {
		p("## %s: blocks %d to %d, of %s\n", c.ChainKey, c.From, c.To, clock.Format(time.Unix(c.ToTime, 0), time.UTC, time.RFC3339))
		for _, u := range c.Unread {
			p("- Transaction `%s` in block %d could not be read, so its payments and refunds are unknown. `serve` reads it again: see `quittance chain unread`.", u.TxHash, u.Block)
		}
		p("%d invoices are lost, and %d addresses are watched for them. Ask their merchants for copies, and import these with `quittance recover import`.\n", len(c.Lost), c.Watched)
		if c.Unwatched > 0 {
			p("%d of them have too many deposit addresses to be watched, so that payments there appear only once they are imported.\n", c.Unwatched)
		}
		for _, l := range c.Lost {
			p("- `%s`, announced in block %d", l.OnChainID, l.Block)
		}
		for _, o := range c.Foreign {
			p("\n%d more invoices, from block %d on, are of account `%s`, which neither this database nor the configuration knows. "+
				"They belong to another installation that uses the same registry. If the account was your operator, they are lost, too: import their copies.", o.Invoices, o.FirstBlock, o.Account)
		}
		p("\n%d open invoices were closed on chain before they expired, and no payment explains it: somebody made them void, or attributed a payment by hand. They do not expire, and payments after the close do not pay them. "+
			"`serve` makes void those that no payment without an invoice can have paid. Decide about those that it leaves open.\n", len(c.Closed))
		for _, l := range c.Closed {
			p("- `%s`, closed in block %d", l.InvoiceID, l.Block)
		}
		p("\n%d payments since the backup belong to no invoice:\n", len(c.Payments))
		for _, f := range c.Payments {
			note := ""
			if f.OnChainID != "" {
				note = ", for the lost invoice `" + f.OnChainID + "`"
			}
			p("- `%s`: %s %s minor units to `%s`, transaction `%s`%s", f.ID, f.Amount, f.Currency, f.To, f.TxHash, note)
		}
		p("\n%d transfers out of settlement addresses since the backup are no known refunds. Refunds of the payments that they may have refunded cannot be sent until "+
			"somebody has checked the transfers: see `quittance recover transfers`.\n", len(c.Transfers))
		for _, t := range c.Transfers {
			p("- `%s`: %s %s minor units from `%s` to `%s`, transaction `%s`; may refund %s", t.ID, t.Amount, t.Currency, t.From, t.To, t.TxHash, cmp.Or(strings.Join(t.Payments, ", "), "no known payment"))
		}
		p("")
	}
	p("## Refunds\n\n%d prepared refunds were recognized on chain that the backup lacked.\n", len(r.Refunds))
	for _, id := range r.Refunds {
		p("- `%s`", id)
	}
	p("\n## Keys of the API\n")
	for _, k := range r.Keys {
		p("- %s", k.text())
	}
	p("\n%s", recoveryChecks)
	return b.String()
}

// recoveryChecks are checks that the database cannot make.
const recoveryChecks = `## Check by hand

No chain knows what people decided since the backup. Compare with the merchants and with archived audit entries:

- invoices that were made void, amounts that were accepted or waived, and payments that were attributed or dismissed by hand;
- passkeys and accounts of people whose memberships are kept, which may have been removed;
- merchants, keys, payment links, settlement addresses, webhook URLs and secrets, quotas and approval policies that were added, changed or revoked;
- who stopped mails, and creates that merchants repeat: their idempotency keys are lost, so that they make second invoices;
- settlement addresses that were used first after the backup: payments to them are found only once their invoices are imported;
- refunds that were sent and not mined yet: do not send them again;
- transfers listed above that were refunds: note which payments they refunded before you check them;
- drafts, and customers whose data was erased: erase it again.`
