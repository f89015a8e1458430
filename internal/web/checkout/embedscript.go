package checkout

import "net/http"

// embedScript answers with the script that opens payment pages in a dialog of a merchant's page.
// Content-Location is the path of this version; its content never changes.
func (c *Checkout) embedScript(w http.ResponseWriter, r *http.Request) error {
	a := assets["embed.js"]
	w.Header().Set("Content-Location", a.Path)
	shareScript(w)
	c.Sent(r, a.Send(w, r, "public, max-age=3600"))
	return nil
}

// shareScript lets pages of all origins load a script, and compare it with a hash.
func shareScript(w http.ResponseWriter) {
	w.Header().Set("Access-Control-Allow-Origin", "*")
	w.Header().Set("Cross-Origin-Resource-Policy", "cross-origin")
}
