package api

import (
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/dispatcher"
	"github.com/quittance/quittance/internal/report"
	"github.com/quittance/quittance/internal/settle"
)

// reader implements Reader by the tables of several packages.
type reader struct {
	settle.Reader
	reports
	events
	audit
}

type (
	reports struct{ report.Reader }
	events  struct{ dispatcher.Reader }
	audit   struct{ access.Reader }
)

// NewReader returns a Reader of a database. It implements SummaryReader, too.
func NewReader(q db.Querier) interface {
	Reader
	SummaryReader
} {
	return reader{settle.NewReader(q), reports{report.NewReader(q)}, events{dispatcher.NewReader(q)}, audit{access.NewReader(q)}}
}
