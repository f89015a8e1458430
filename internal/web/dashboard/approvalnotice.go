package dashboard

import (
	"context"
	"net/url"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/clock"
)

// noticeInterval is how often new requests for approval are looked for. People of one merchant are mailed each time.
const noticeInterval = 10 * time.Second

// notifyApprovers mails people about requests for approval until ctx ends. The mails wait with those that sign in.
func (d *Dashboard) notifyApprovers(ctx context.Context) {
	for clock.Sleep(ctx, noticeInterval, nil) {
		notices, err := d.cfg.Sessions.TakeApprovalNotices(ctx)
		for i := 0; i < len(notices) && err == nil; i++ {
			err = d.queueNotice(notices[i])
		}
		if err != nil && ctx.Err() == nil {
			d.cfg.Logger.ErrorContext(ctx, "e-mails about requests for approval failed", "err", err)
		}
	}
}

// queueNotice queues the mail of a notice, unless too many were sent to the person.
func (d *Dashboard) queueNotice(n access.ApprovalNotice) error {
	if !d.mails.people.Take(mailed{toApprove, n.Person.Email}).OK {
		return nil
	}
	page := pathApprovals
	if n.Requests == 1 {
		page = id(pathApprovals, n.ApprovalID)
	}
	v := &visit{text: texts().Named(n.Person.Language)} // English without a language
	return d.cfg.Mail.Queue(func(ctx context.Context) error {
		return d.mail(ctx, v, n.Person.Email, "mail.approve", page+"?"+url.Values{"merchantId": {n.MerchantID}}.Encode(), map[string]any{"Merchant": n.Merchant})
	})
}
