package checkout

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/quittance/quittance/internal/invoice"
)

// frame describes the merchant's page that shows a page in a frame, if any.
type frame struct {
	// Origins are the origins that may show the page, separated by spaces. It is empty for a page that
	// must not be framed.
	Origins string
	lang    string // the language that the request asks for; empty without
}

// newFrame returns the frame of a request for a page of the merchant. It is zero unless the request
// has the parameter embed and the merchant has a list of origins.
func newFrame(r *http.Request, m invoice.Merchant) frame {
	query := r.URL.Query()
	f := frame{lang: query.Get("lang")}
	if query.Get("embed") == "1" {
		f.Origins = strings.Join(m.EmbedOrigins, " ")
	}
	return f
}

// setHeaders permits exactly the origins to show the page in a frame.
func (f frame) setHeaders(w http.ResponseWriter) {
	if f.Origins == "" {
		return
	}
	header := w.Header()
	header.Del("X-Frame-Options") // it cannot name origins
	allow(header, "frame-ancestors", f.Origins)
}

// Address returns the beginning of the page's address in another language.
func (f frame) Address() string {
	if f.Origins != "" {
		return "?embed=1&"
	}
	return "?"
}

// query returns the query that keeps the frame and the language on the next page, with further pairs
// of a name and a value. It is empty without any.
func (f frame) query(pairs ...string) string {
	values := make(url.Values)
	if f.Origins != "" {
		values.Set("embed", "1")
	}
	if f.lang != "" {
		values.Set("lang", f.lang)
	}
	for pair := range slices.Chunk(pairs, 2) {
		values.Set(pair[0], pair[1])
	}
	if len(values) == 0 {
		return ""
	}
	return "?" + values.Encode()
}
