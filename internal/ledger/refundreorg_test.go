package ledger_test

import (
	"context"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/rowtest"
)

// withdraw withdraws the submission in force of a refund. No node has its transaction.
func (w *world) withdraw(refundID string) error {
	w.t.Helper()
	all, err := ledger.NewReader(w.db.store).Submissions(w.t.Context(), refundID)
	w.must(err)
	s, ok := invoice.InForceOf(all)
	if !ok {
		w.t.Fatalf("no submission of %s is in force: %+v", refundID, all)
	}
	_, err = w.WithdrawSubmission(w.as("juan"), ledger.Withdrawal{RefundID: refundID, SubmissionID: s.ID, Gone: s.TxHash})
	return err
}

// TestDroppedRefundIsPrepared drops a refund by hand. Its transaction then pays a prepared refund, so
// the list does not show it separately any more.
func TestDroppedRefundIsPrepared(t *testing.T) {
	eachWorld(t, func(_ *testing.T, w *world) {
		p := w.paid(1000)
		r := w.mustPrepare(p, 600)
		named := w.send(r)
		byHand := tagged(withAmount(named, 100), invoice.Evidence{})
		w.mine(w.head().Time.Unix()+1, byHand)
		w.reorg(1)
		w.mine(w.head().Time.Unix()+1, named) // the same transaction, with other content
		w.wantRefund("mined with the name", r.ID, invoice.RefundPending, 600)
		w.final()
		w.wantRefunded("final", p, 600)
	})
}

// TestMerchantEndsDroppedRefund drops a plain transfer that returned a payment without an invoice. The merchants of the
// address can withdraw it, and no other.
func TestMerchantEndsDroppedRefund(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.create()
		p := w.unattributedPaymentOf(newAccount(t), start+20, 980_000)
		w.final()
		sent := w.back(p.Amount)
		sent.To = p.From
		w.mine(w.head().Time.Unix()+1, sent)
		w.reorg(1)
		w.mine(w.head().Time.Unix() + 1)
		expect.Equal(t, w.payment(p.Transfer).Use, invoice.UseRefunding, "the payment is")
		refunds, err := ledger.NewReader(w.db.store).RefundRecords(t.Context(), ledger.RefundFilter{PaymentID: p.ID, Limit: 2})
		if err != nil || len(refunds) != 1 || refunds[0].MerchantID != "" {
			t.Fatalf("the refunds are %+v, %v", refunds, err)
		}
		all, err := ledger.NewReader(w.db.store).Submissions(t.Context(), refunds[0].ID)
		w.must(err)
		w.seconds.Add(int64(invoice.SubmissionPatience / time.Second))
		end := ledger.Withdrawal{RefundID: refunds[0].ID, SubmissionID: all[0].ID, Gone: all[0].TxHash, MerchantID: "stranger"}
		_, err = w.WithdrawSubmission(t.Context(), end)
		expect.Error(t, db.ErrNotFound, "a stranger withdraws it")(err)
		end.MerchantID = w.merchant
		expect.Success(t)(w.WithdrawSubmission(t.Context(), end))
		expect.Equal(t, w.payment(p.Transfer).Use, invoice.UseUndecided, "after the withdrawal the payment is")
	})
}

// underpaid returns the item of an expired invoice with a payment of a part.
func (w *world) underpaid() (ledger.InboxItem, invoice.Transfer) {
	w.t.Helper()
	w.seconds.Store(w.head().Time.Unix())
	inv := w.create()
	part := w.payFor(inv, 600_000)
	w.mine(w.head().Time.Unix()+1, part)
	w.mine(inv.ExpiresAt.Unix() + 1)
	w.final()
	for _, item := range w.inbox(invoice.ItemUnderpaid) {
		if item.Invoice.ID == inv.ID {
			return item, part
		}
	}
	w.t.Fatalf("%s is not in the inbox", inv.ID)
	return ledger.InboxItem{}, part
}

// accept waives the rest of an invoice's amount.
func (w *world) accept(item ledger.InboxItem) error {
	req := w.dismissal(item)
	req.Outcome = invoice.Accepted
	_, err := w.Decide(w.as("maria"), req)
	return err
}

// TestAcceptedOrRefunded: the rest of an amount cannot be waived for money that goes back, in either
// order.
func TestAcceptedOrRefunded(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		item, part := w.underpaid()
		p := w.payment(part)
		r := w.mustPrepare(p, 1)
		expect.Equal(t, useName(w.accept(item)), "refunding", "accepted while a refund is prepared:")
		w.must(w.CancelRefund(t.Context(), r.ID, ""))
		w.must(w.accept(item))
		if _, err := w.prepare(p, 1); useName(err) != "decided" {
			t.Errorf("refunded after it was accepted: %v", err)
		}
		late := w.pay(invoice.NewAmount(7_000))
		w.mine(w.head().Time.Unix()+1, late)
		w.final()
		_, err := w.attribute(w.payment(late), item.Invoice)
		w.must(err)
		w.mustPrepare(w.payment(late), 0) // it does not count toward the accepted amount

		// A transfer by hand ends the acceptance as soon as it is in a block.
		w.mine(w.head().Time.Unix()+1, w.back(p.Amount))
		inForce, err := ledger.DecisionsInForce(t.Context(), w.db.store, []string{item.Invoice.ID})
		if err != nil || len(inForce) != 0 {
			t.Errorf("in force after the money went back: %+v, %v", inForce, err)
		}

		other, part := w.underpaid()
		w.mine(w.head().Time.Unix()+1, w.back(invoice.NewAmount(600_000)))
		if got := w.payment(part).Use; got != invoice.UseRefunding {
			t.Fatalf("the payment is %s", got)
		}
		expect.Equal(t, useName(w.accept(other)), "refunding", "accepted while the refund is in a block:")
		w.final()
		expect.Error(t, ledger.ErrItemChanged, "accepted after it was refunded")(w.accept(other))
	})
}

// scheduled gives the world's service a separate schedule's clock, and returns it.
func (w *world) scheduled() *atomic.Int64 {
	var at atomic.Int64
	at.Store(w.seconds.Load())
	w.Service = w.service(func(cfg *ledger.Config) {
		cfg.Schedule = func() time.Time { return time.Unix(at.Load(), 0) }
	})
	return &at
}

const lifetime = int64(invoice.RefundLifetime / time.Second)

// TestRefundsWhileTheClockIsAhead prepares two refunds of the same payment while the clock, or the schedule's, is ahead
// by hours. When the clock is right again, no more than one can be sent.
func TestRefundsWhileTheClockIsAhead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		now, scheduled int64 // while a clock is ahead, from the end of the refund
		stored         bool  // the expiry is stored then
		first          bool  // the first can be sent when the clock is back
	}{
		"the clock":                     {now: 3 * 3600, scheduled: -60, stored: true, first: true},
		"the schedule's":                {now: -60, scheduled: 5 * 3600, stored: true, first: true},
		"both, before anything expires": {now: 3 * 3600, scheduled: 5 * 3600, first: true},
		"both":                          {now: 3 * 3600, scheduled: 5 * 3600, stored: true},
	} {
		t.Run(name, func(t *testing.T) {
			eachWorldOnBoth(t, func(t *testing.T, w *world) {
				schedule := w.scheduled()
				p := w.paid(1000)
				first := w.mustPrepare(p, 0)
				end := w.seconds.Load() + lifetime
				w.seconds.Store(end + c.now)
				schedule.Store(end + c.scheduled)
				if c.stored {
					w.must(w.ExpireRefunds(t.Context()))
				}
				second, err := w.prepare(p, 0)
				if c.first {
					expect.Error(t, ledger.ErrRefundExceeds, "a second refund")(err)
				} else {
					w.must(err)
				}
				w.seconds.Store(end - 60)
				_, firstErr := w.SubmitRefund(w.as("maria"), first.ID, w.merchant, invoice.Hash{}, ledger.Once{})
				if (firstErr == nil) != c.first || firstErr != nil && !errors.Is(firstErr, ledger.ErrRefundNotOpen) {
					t.Errorf("the first is sent: %v", firstErr)
				}
				if !c.first {
					w.must(w.SubmitRefund(w.as("juan"), second.ID, w.merchant, invoice.Hash{}, ledger.Once{}))
				}
			})
		})
	}
}

// TestTimesOfAServiceThatIsOffAtNight lets a refund expire and a key end while the schedule's clock is
// 60 days behind, because the service was off for that long.
func TestTimesOfAServiceThatIsOffAtNight(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.Service = w.service(func(cfg *ledger.Config) {
			cfg.Schedule = func() time.Time { return time.Unix(w.seconds.Load()-60*day, 0) }
			cfg.Confirmed = func() time.Time { return time.Unix(w.seconds.Load(), 0) }
		})
		request := ledger.CreateRequest{Once: ledger.Once{Key: "k"}, Draft: w.draft()}
		request.Draft.ExpiresAt = invoice.Unix(start + 40*day)
		invoiced, err := w.Create(t.Context(), request)
		w.must(err)
		p := w.paid(1000)
		w.mustPrepare(p, 0)
		w.seconds.Add(lifetime + 1)
		w.must(w.ExpireRefunds(t.Context()))
		if _, err := w.prepare(p, 0); err != nil {
			t.Errorf("after the first refund expired: %v", err)
		}
		w.must(w.DeleteOldKeys(t.Context()))
		if again, err := w.Create(t.Context(), request); err != nil || again.ID == invoiced.ID {
			t.Errorf("after a day the key gives %s, %v, want another invoice", again.ID, err)
		}
	})
}

// TestSubmissionSeenBeginsAnew finds a submission's transaction at a node: its 10 minutes start again,
// unless it has another transaction by now.
func TestSubmissionSeenBeginsAnew(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		schedule := w.scheduled()
		pass := func(seconds int64) {
			w.seconds.Add(seconds)
			schedule.Add(seconds)
		}
		const patience = int64(invoice.SubmissionPatience / time.Second)
		r := w.mustPrepare(w.paid(1000), 0)
		s, err := w.SubmitRefund(w.as("maria"), r.ID, w.merchant, invoice.Hash{1}, ledger.Once{})
		w.must(err)
		pass(patience)
		w.must(w.SubmissionSeen(t.Context(), r.ID, s.ID, w.merchant, invoice.Hash{1}))
		of := w.SubmissionSeen(t.Context(), r.ID, s.ID, "other", invoice.Hash{1})
		expect.Error(t, db.ErrNotFound, "of another merchant")(of)
		pass(patience - 1)
		w.must(w.SubmissionSeen(t.Context(), r.ID, s.ID, w.merchant, invoice.Hash{2}))
		wantSubmitted(t, "a second too early", w.withdraw(r.ID), "maria")
		pass(1)
		w.must(w.withdraw(r.ID))
		w.must(w.SubmissionSeen(t.Context(), r.ID, s.ID, w.merchant, invoice.Hash{1}))
		if all, err := ledger.NewReader(w.db.store).Submissions(t.Context(), r.ID); err != nil || all[0].InForce() {
			t.Errorf("seen after it was withdrawn: %+v, %v", all, err)
		}
	})
}

// TestWithdrawnDroppedRefund withdraws the submission of a refund of an open invoice that a reorg dropped, because its
// transaction failed. The refunded amount counts again at once.
func TestWithdrawnDroppedRefund(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		inv := w.create()
		w.confirmed(w.payFor(inv, 400_000))
		back := w.back(invoice.NewAmount(400_000))
		w.mine(w.head().Time.Unix()+1, back)
		w.reorg(1)
		w.wantDue(inv.ID, invoice.Open, 1_000_000)
		record, _ := w.storedRefund(back)
		all, err := ledger.NewReader(w.db.store).Submissions(t.Context(), record.ID)
		w.must(err)
		w.must(w.WithdrawSubmission(w.as("juan"), ledger.Withdrawal{RefundID: record.ID, SubmissionID: all[0].ID, Gone: all[0].TxHash, Failed: true}))
		w.wantDue(inv.ID, invoice.Open, 600_000)
	})
}

// TestNamedTransferIsMinedAgainAsNoRefund mines a dropped refund again, once another transfer has returned what it
// needs. Its submission ends, so that it can be canceled.
func TestNamedTransferIsMinedAgainAsNoRefund(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		r := w.mustPrepare(w.paid(1000), 600)
		first := w.send(r)
		w.mine(w.head().Time.Unix()+1, first)
		w.reorg(1)
		wantSubmitted(t, "canceled while it may be mined again", w.cancel(r.ID), "a transaction that left the chain")
		w.mine(w.head().Time.Unix()+1, w.back(invoice.NewAmount(500)))
		w.mine(w.head().Time.Unix()+1, first)
		w.final()
		w.must(w.cancel(r.ID))
	})
}

// cancel cancels a refund.
func (w *world) cancel(refundID string) error {
	_, err := w.CancelRefund(w.t.Context(), refundID, w.merchant)
	return err
}

// forget deletes a prepared refund that was not sent, like a restored backup.
func (w *world) forget(r invoice.RefundRecord) {
	w.t.Helper()
	for _, statement := range []string{"DELETE FROM refund_submissions WHERE refund_id = $1", "DELETE FROM refund_records WHERE id = $1"} {
		w.must(w.db.sql.ExecContext(w.t.Context(), statement, r.ID))
	}
	w.must(w.db.store.Update(w.t.Context(), func(tx *db.Tx) error { return ledger.RefreshUses(w.t.Context(), tx, r.PaymentID) }))
}

// TestForeignTagsRestoreNothing sends transfers with tags that name a payment that they do not refund,
// or another refund.
func TestForeignTagsRestoreNothing(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		p, q := w.paid(1000), w.paid(500)
		known := w.mustPrepare(q, 100)
		lost := w.mustPrepare(p, 600, to(invoice.Address{0xee}))
		w.forget(lost)
		tooMuch, elsewhere, otherToken, taken := w.send(lost), w.send(lost), w.send(lost), w.send(lost)
		tooMuch.Amount = invoice.NewAmount(1001)
		elsewhere.From = payer
		otherToken.Token, otherToken.Currency = eurc, "EURC"
		var err error
		taken.Evidence.Calldata, err = invoice.RefundTag(p.ID, known.ID)
		w.must(err)
		w.mine(w.head().Time.Unix()+1, tooMuch, elsewhere, otherToken, taken)
		w.final()
		if _, err := ledger.NewReader(w.db.store).RefundRecord(t.Context(), lost.ID); err == nil {
			t.Errorf("it restored %s", lost.ID)
		}
		w.wantRefunded("foreign", p, 0)
		w.wantRefund("known", known.ID, invoice.RefundPending, 0)
	})
}

// TestUnrecognizedTransfers finds transfers out of a settlement address during a recovery. Refunds of the payments that they
// may have refunded cannot be sent, until a person has checked the transfers.
func TestUnrecognizedTransfers(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		small, large := w.paid(1000), w.paid(5000)
		prepared := w.mustPrepare(large, 400, to(invoice.Address{0xee}))
		w.mine(w.head().Time.Unix()+1, tagged(w.back(invoice.NewAmount(77)), invoice.Evidence{})) // before the recovery
		w.final()
		w.Service = w.service(func(c *ledger.Config) { c.Recovery = true })
		out := func(n uint64, to invoice.Address) invoice.Transfer {
			t := w.back(invoice.NewAmount(n))
			t.To = to
			return t
		}
		elsewhere, equal, tooMuch := out(1001, invoice.Address{0x99}), out(1000, invoice.Address{0x98}), out(1_000_000, invoice.Address{0x97})
		inEuro := inEUR(out(10, invoice.Address{0x96}))
		w.mine(w.head().Time.Unix()+1, elsewhere, equal, tooMuch, inEuro, w.send(prepared), out(5, payer))
		w.final()
		later := w.paid(9000) // after the transfers
		all, err := ledger.UnrecognizedTransfers(ctx, w.db.store, w.chainKey, ledger.UnrecognizedTransfer{}, 10)
		w.must(err)
		found := make(map[invoice.Hash][]string)
		for _, u := range all {
			found[u.TxHash] = u.Payments
			if u.From != w.address || u.ChainKey != w.chainKey || u.Token != usdc && u.TxHash != inEuro.TxHash {
				t.Errorf("found %+v", u)
			}
		}
		want := map[invoice.Hash][]string{elsewhere.TxHash: {large.ID}, equal.TxHash: {large.ID, small.ID}, tooMuch.TxHash: {}, inEuro.TxHash: {}}
		expect.NoDiff(t, cmp.Diff(want, found, cmpopts.EquateEmpty()), "unrecognized transfers and their payments")
		w.Service = w.service()
		r, free := w.mustPrepare(small, 0), w.mustPrepare(later, 0)
		now := at(w.seconds.Load())
		if got := w.refund(r.ID); got.CanBeSent(now) || !slices.Contains(got.Warnings(now), invoice.WarnMayBeRefunded) {
			t.Errorf("the refund can be sent: %v, with %v", got.CanBeSent(now), got.Warnings(now))
		}
		if _, err := w.SubmitRefund(ctx, r.ID, "", invoice.Hash{}, ledger.Once{}); !errors.Is(err, ledger.ErrRefundNotOpen) {
			t.Errorf("the refund is submitted: %v", err)
		}
		if got := w.refund(free.ID); !got.CanBeSent(now) {
			t.Errorf("the refund of a payment that came after the transfers has %v", got.Warnings(now))
		}
		for _, u := range all {
			w.must(w.db.store.Update(ctx, func(tx *db.Tx) error { return ledger.CheckTransfer(ctx, tx, u.ID) }))
		}
		if got := w.refund(r.ID); !got.CanBeSent(now) || slices.Contains(got.Warnings(now), invoice.WarnMayBeRefunded) {
			t.Errorf("after the check the refund has %v", got.Warnings(now))
		}
	})
}

// preparedRefund returns a pending refund record of the first sample payment.
func preparedRefund(id string) invoice.RefundRecord {
	p := rowtest.SamplePayment(1)
	return invoice.RefundRecord{
		ID: id, PaymentID: p.ID, ChainKey: p.ChainKey, Token: p.Token, Currency: p.Currency, From: p.To, Payer: p.From, Left: p.Amount, PaymentStatus: p.Status,
		Status: invoice.RefundPending, CreatedAt: rowtest.At(2000), Tag: invoice.Hash{9, byte(len(id))}, Amount: invoice.NewAmount(60), To: p.From,
		Reason: "naïve \"quotes\" ☕", Account: invoice.AccountUnknown, ManyInvoices: true, ClaimToken: strings.Repeat("t", 32), ExpiresAt: rowtest.At(3000),
	}
}

// savePrepared stores a payment with a prepared refund and an observed one that was not prepared.
func savePrepared(t *testing.T, s *db.DB) (prepared invoice.RefundRecord, observed invoice.Refund) {
	t.Helper()
	rowtest.StartChain(t, s, "base")
	rowtest.Insert(t, s, rowtest.Sample("inv_1", "m"))
	prepared, observed = preparedRefund("ref_prepared"), rowtest.RefundOf(rowtest.SamplePayment(1))
	rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
		if err := ledger.SavePayments(ctx, tx, []ledger.PaymentRow{rowtest.SamplePayment(1)}); err != nil {
			return err
		}
		if err := ledger.InsertPreparedRefund(ctx, tx, prepared, "m", "key", invoice.Hash{5}); err != nil {
			return err
		}
		return ledger.SaveRefunds(ctx, tx, observed)
	})
	return prepared, observed
}

func TestRefundRecordRoundTrip(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		prepared, observed := savePrepared(t, s)
		got, err := ledger.NewReader(s).RefundRecord(t.Context(), prepared.ID)
		rowtest.Must(t, err)
		token := prepared.ClaimToken
		prepared.ClaimToken, prepared.ClaimHash = "", invoice.HashClaimToken(token) // this is all that is stored
		expect.NoDiff(t, cmp.Diff(prepared, got, rowtest.Equal), "")
		byKey, hash, err := ledger.RefundByKey(t.Context(), s, prepared.PaymentID, "m", "key")
		if err != nil || byKey.ID != prepared.ID || hash != (invoice.Hash{5}) {
			t.Errorf("by its key: %s, %s, %v", byKey.ID, hash, err)
		}
		byToken, err := ledger.RefundByClaimToken(t.Context(), s, token)
		if err != nil || byToken.ID != prepared.ID {
			t.Errorf("by its token: %s, %v", byToken.ID, err)
		}
		stored := invoice.HashClaimToken(token)
		if r, err := ledger.RefundByClaimToken(t.Context(), s, hex.EncodeToString(stored[:])); !errors.Is(err, db.ErrNotFound) {
			t.Errorf("by the hash that is stored of its token: %s, %v", r.ID, err)
		}
		// The transfer is linked to the prepared refund, unlinked and linked again.
		for _, id := range []string{prepared.ID, "", prepared.ID} {
			observed.PreparedID = id
			rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error { return ledger.SaveRefunds(ctx, tx, observed) })
			list, err := ledger.NewReader(s).RefundRecords(t.Context(), ledger.RefundFilter{PaymentID: prepared.PaymentID, Limit: 9})
			rowtest.Must(t, err)
			transfers, err := ledger.RefundsByID(t.Context(), s, []string{observed.ID})
			rowtest.Must(t, err)
			for _, r := range list {
				if r.Transfer.ID != "" && !r.Transfer.BlockTime.Equal(observed.BlockTime) {
					t.Errorf("paid by %q: the block of the transfer has the time %v, want %v", id, r.Transfer.BlockTime, observed.BlockTime)
				}
			}
			if want := map[string]int{"": 2, prepared.ID: 1}[id]; len(list) != want || len(transfers) != 1 || transfers[0].PreparedID != id {
				t.Errorf("paid by %q: %d records, the transfer is %+v", id, len(list), transfers)
			}
		}
	})
}

func TestImpossibleRefundRecordsAreRefused(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, u string) {
		s := dbtest.Open(t, u)
		savePrepared(t, s)
		conn := dbtest.SQL(t, u)
		for _, set := range []string{
			"status = 'paid'", "status = 'orphaned'", "status = 'confirmed'", "status = 'canceled'", "status = 'awaiting_address'",
			"status = 'awaiting_approval', recipient = NULL, account = NULL",
			"refund_id = 'ref_none', tx_hash = '0x" + strings.Repeat("1", 64) + "'", "refund_id = 'ref_of_pay_1'", "tx_hash = '0x" + strings.Repeat("1", 64) + "'",
			"tag = NULL", "tag = '0x1'", "sender = NULL", "sender = '0x1'", "token = NULL", "token = '0x1'", "submitted_tx = '0x1'", "amount = NULL", "amount = '0'", "amount = '-1'", "recipient = NULL", "recipient = '0x1'", "account = NULL", "account = 'exchange'",
			"recipient = NULL, account = NULL, claim_token = NULL", "many_invoices = 2", "many_invoices = NULL", "claim_token = 'short'", "claim_signature = '0x1'",
			"reason = ''", "expires_at = NULL", "idem_key = NULL", "idem_scope = NULL", "request_hash = NULL", "payment_id = 'pay_none'", "merchant_id = 'nobody'",
			"chain_key = 'mars'", "id = 'pay_1'", "item = 'late'",
		} {
			result, err := conn.ExecContext(t.Context(), "UPDATE refund_records SET "+set+" WHERE id = 'ref_prepared'")
			if err == nil {
				n, _ := result.RowsAffected()
				t.Errorf("nothing refuses %s (%d rows)", set, n)
			}
		}
		for _, set := range []string{"status = 'canceled'", "recipient = from_address", "refund_id = NULL, tx_hash = NULL", "canceled_at = 1", "claim_token = '" + strings.Repeat("u", 32) + "'"} {
			if _, err := conn.ExecContext(t.Context(), "UPDATE refund_records SET "+set+" WHERE id = 'ref_of_pay_1'"); err == nil {
				t.Errorf("nothing refuses %s of a transfer that was not prepared", set)
			}
		}
	})
}

// TestTwoTagsWithOneID mines two transfers that name one refund of two payments. Their sender chooses the id. Only the
// first restores the refund, and the block is stored.
func TestTwoTagsWithOneID(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		first, second := w.paid(1000), w.paid(500)
		id := invoice.NewIDs(func() time.Time { return at(start + 1000) }, w.random).New(invoice.PrefixRefund)
		a, b := w.back(invoice.NewAmount(100)), w.back(invoice.NewAmount(200))
		for transfer, paid := range map[*invoice.Transfer]string{&a: first.ID, &b: second.ID} {
			tag, err := invoice.RefundTag(paid, id)
			w.must(err)
			transfer.Evidence.Calldata = tag
		}
		w.mine(w.head().Time.Unix()+1, a, b)
		w.final()
		r, err := ledger.NewReader(w.db.store).RefundRecord(t.Context(), id)
		w.must(err)
		expect.Equal(t, r.PaymentID, first.ID, "the refund pays back")
	})
}

// TestWithdrawalWhileTheClockIsAhead withdraws another person's submission, a moment after it began,
// while the clock is ahead by hours.
func TestWithdrawalWhileTheClockIsAhead(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		schedule := w.scheduled()
		r := w.mustPrepare(w.paid(1000), 0)
		w.must(w.SubmitRefund(w.as("maria"), r.ID, w.merchant, invoice.Hash{1}, ledger.Once{}))
		w.seconds.Add(3 * 3600)
		schedule.Add(1)
		wantSubmitted(t, "withdrawn at once", w.withdraw(r.ID), "maria")
		schedule.Add(int64(invoice.SubmissionPatience / time.Second))
		w.must(w.withdraw(r.ID))
	})
}
