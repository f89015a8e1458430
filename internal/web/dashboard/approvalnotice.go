package dashboard

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/mailer"
)

// noticeInterval is how often new requests for approval are looked for.
const noticeInterval = 10 * time.Second

// NotifyApprovers mails people about requests for approval until ctx ends, one at a time. So these mails take no places
// of mails that sign in. A mail that was sent when the process ends unexpectedly is sent again.
func (d *Dashboard) NotifyApprovers(ctx context.Context) {
	for d.cfg.Mail != nil && clock.Sleep(ctx, noticeInterval, nil) {
		for ctx.Err() == nil {
			err := d.notifyApprover(context.WithoutCancel(ctx))
			if errors.Is(err, db.ErrNotFound) {
				break
			}
			if err != nil {
				d.cfg.Logger.ErrorContext(ctx, "notices of requests for approval failed, will retry", "err", err)
				break
			}
		}
	}
}

// notifyApprover sends the next mail about requests for approval. One that fails, or is beyond the merchant's limit of
// a day, is due again later. A mail that a server answered counts for that limit, so that it is not repeated to a
// recipient without end. The error is db.ErrNotFound without one.
func (d *Dashboard) notifyApprover(ctx context.Context) error {
	due, err := d.cfg.Sessions.TakeApprovalNotices(ctx)
	to := func(n access.ApprovalNotice) mailed { return mailed{toApprove, n.Person.Email, n.MerchantID} }
	i := slices.IndexFunc(due, func(n access.ApprovalNotice) bool { return d.mails.days.Take(to(n)).OK })
	if err != nil || i < 0 {
		return err
	}
	n := due[i]
	page := pathApprovals
	if len(n.Approvals) == 1 {
		page = id(pathApprovals, n.Approvals[0])
	}
	v := &visit{text: texts().Named(n.Person.Language)} // English without a language
	err = d.mail(ctx, v, n.Person.Email, "mail.approve", page+"?"+url.Values{"merchantId": {n.MerchantID}}.Encode(), map[string]any{"Merchant": n.Merchant})
	switch {
	case errors.As(err, new(*mailer.RefusedError)):
		d.cfg.Logger.ErrorContext(ctx, "e-mail about requests for approval failed, given up", "err", err)
	case err != nil:
		if !errors.As(err, new(*mailer.AnswerError)) {
			d.mails.days.Return(to(n))
		}
		d.cfg.Logger.WarnContext(ctx, "e-mail about requests for approval failed, will retry", "err", err)
		return nil
	}
	return d.cfg.Sessions.EndApprovalNotice(ctx, n)
}
