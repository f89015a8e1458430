package api

import (
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/mailer"
	"github.com/quittance/quittance/internal/report"
	"github.com/quittance/quittance/internal/webhooks"
)

// reader implements Reader by the tables of several packages.
type reader struct {
	ledger.Reader
	reports
	events
	audit
	mails
}

type (
	reports struct{ report.Reader }
	events  struct{ webhooks.Reader }
	audit   struct{ access.Reader }
	mails   struct{ mailer.Reader }
)

// NewReader returns a Reader of a database. It implements SummaryReader, too.
func NewReader(q db.Querier) interface {
	Reader
	SummaryReader
} {
	return reader{ledger.NewReader(q), reports{report.NewReader(q)}, events{webhooks.NewReader(q)}, audit{access.NewReader(q)}, mails{mailer.NewReader(q)}}
}
