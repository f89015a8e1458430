package checkout

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/quittance/quittance/internal/web/checkout/locale"
)

// stopView is the page on which a person stops the mails of a merchant.
type stopView struct {
	Path, Merchant, Address string
	Stopped                 bool
}

// stopPage answers with the page of a mail's token.
func (c *Checkout) stopPage(w http.ResponseWriter, r *http.Request) error {
	token := r.PathValue("token")
	m, stopped, err := c.conf.Mails.MailByToken(r.Context(), validToken(token))
	if err != nil {
		return err
	}
	profile, _, err := c.findMerchant(r.Context(), m.MerchantID)
	if err != nil {
		return err
	}
	v := stopView{
		Path: "/mails/" + token + "?lang=" + locale.For(r).Lang(), Stopped: stopped,
		Merchant: cmp.Or(profile.Name, m.MerchantID), Address: cmp.Or(m.Recipient, "…"), // the address may be erased
	}
	return c.render(w, r, http.StatusOK, "stopmails.html", v)
}

// stopMails stops the mails or, with the member allow, allows them again, and answers with the page. Mail programs post
// to it, too, and must not be redirected (RFC 8058).
func (c *Checkout) stopMails(w http.ResponseWriter, r *http.Request) error {
	if err := parseForm(w, r); err != nil {
		return err
	}
	if err := c.conf.Mails.Stop(r.Context(), validToken(r.PathValue("token")), r.PostForm.Get("allow") == ""); err != nil {
		return err
	}
	return c.stopPage(w, r)
}

// validToken returns a token of a page, or "" if no page can have it.
func validToken(token string) string {
	if len(token) > MaxID || strings.ContainsFunc(token, isNotIDChar) {
		return "" // not every text is valid in a database
	}
	return token
}
