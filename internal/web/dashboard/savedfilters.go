package dashboard

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/web/webpage"
)

// keptFilter is a saved filter, on the page of its list.
type keptFilter struct {
	Name    string
	Address string
	Here    bool // the page shows it
}

// keptFilters are the person's saved filters of a list.
type keptFilters struct {
	Kept []keptFilter
	// SavePath and RemovePath take the forms that change saved filters.
	SavePath, RemovePath string

	Query string // the page's own filter, encoded
}

// Name returns the name of the page's own filter, or "" if it is not saved. It is for templates.
func (k keptFilters) Name() string {
	if i := slices.IndexFunc(k.Kept, func(f keptFilter) bool { return f.Here }); i >= 0 {
		return k.Kept[i].Name
	}
	return ""
}

// addKept adds the person's saved filters of a list.
func (d *Dashboard) addKept(r *http.Request, frame *listFrame) error {
	v := visitOf(r)
	all, err := d.cfg.Sessions.Filters(r.Context(), v.session, frame.Page)
	if err != nil {
		return err
	}
	frame.Query, frame.SavePath, frame.RemovePath = frame.Filter.Encode(), v.Link("/dashboard/filters/save"), v.Link("/dashboard/filters/remove")
	for _, f := range all {
		filter, err := url.ParseQuery(f.Query)
		if err != nil {
			return err
		}
		frame.Kept = append(frame.Kept, keptFilter{f.Name, filteredPage(v, frame.Page, filter), f.Query == frame.Query})
	}
	return nil
}

// filterRoutes returns the routes of saved filters.
func (d *Dashboard) filterRoutes() []webpage.Route {
	return []webpage.Route{
		d.route("POST /dashboard/filters/save", "", d.saveFilter),
		d.route("POST /dashboard/filters/remove", "", d.removeFilter),
	}
}

// filteredLists are the pages of the lists with saved filters.
var filteredLists = []string{invoiceList.page, paymentList.page, refundList.page, linkList.page, approvalList.page, customerList.page}

// postedFilter returns the filter of a form.
func postedFilter(r *http.Request) (access.SavedFilter, url.Values, error) {
	f := access.SavedFilter{List: r.PostFormValue("list"), Name: r.PostFormValue("name")}
	filter, err := url.ParseQuery(r.PostFormValue("query"))
	if err != nil || !slices.Contains(filteredLists, f.List) {
		return access.SavedFilter{}, nil, errForm
	}
	f.Query = filter.Encode()
	return f, filter, nil
}

// saveFilter saves a filter for the person, and leads to its list.
func (d *Dashboard) saveFilter(w http.ResponseWriter, r *http.Request) error {
	f, filter, err := postedFilter(r)
	if err != nil {
		return err
	}
	v := visitOf(r)
	if err := d.cfg.Sessions.SaveFilter(r.Context(), v.session, f); err != nil {
		return err
	}
	return lead(w, r, filteredPage(v, f.List, filter))
}

// removeFilter deletes a saved filter of the person, and leads to its list.
func (d *Dashboard) removeFilter(w http.ResponseWriter, r *http.Request) error {
	f, _, err := postedFilter(r)
	if err != nil {
		return err
	}
	v := visitOf(r)
	return d.redirect(w, r, d.cfg.Sessions.RemoveFilter(r.Context(), v.session, f.List, f.Name), f.List)
}
