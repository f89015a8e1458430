package dashboard

import (
	"html/template"
	"net/http"
	"net/url"
	"strconv"

	"github.com/quittance/quittance/apitypes"
)

// maxMoments is how many entries of a timeline a page shows.
const maxMoments = 200

// moment is an entry of an invoice's timeline.
type moment struct {
	apitypes.TimelineEntry
	Explorer string        // page of the transaction in the block explorer, or empty
	Cost     template.HTML // of the transaction, or empty
}

// Failed reports whether an attempt to deliver an event failed. It is for templates.
func (m moment) Failed() bool { return m.Error != "" }

// addTimeline adds the timeline of an invoice to its page, from the cursor in the parameter
// timeline on.
func (d *Dashboard) addTimeline(r *http.Request, view *invoiceView) error {
	query := url.Values{"limit": {strconv.Itoa(maxMoments)}}
	if cursor := r.URL.Query().Get("timeline"); cursor != "" {
		query.Set("cursor", cursor)
	}
	var list apitypes.Timeline
	if err := d.service.get(r.Context(), id("/api/invoices", view.ID)+"/timeline", query, &list); err != nil {
		return err
	}
	for _, e := range list.Entries {
		m := moment{TimelineEntry: e, Explorer: d.explorer(view.ChainKey, e.TxHash)}
		if e.CostGwei != "" {
			m.Cost = visitOf(r).coins(e.CostGwei, gweiDecimals, view.ChainKey)
		}
		view.Timeline = append(view.Timeline, m)
	}
	view.Truncated = list.Truncated
	if list.NextCursor != "" {
		view.MoreMoments = visitOf(r).Link(view.path(), "timeline", list.NextCursor)
	}
	return nil
}

// path returns the path of the page.
func (view *invoiceView) path() string { return "/dashboard/invoices/" + view.ID }
