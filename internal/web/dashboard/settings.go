package dashboard

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
)

// settingsView is the page of a merchant.
type settingsView struct {
	apitypes.Merchant
	Storage      *apitypes.MerchantStorage
	Error        string
	Typed        map[string]string // values in the forms, by member
	MayProfile   bool              // the person may change the profile
	MayAddresses bool
	Immediately  bool // the person may change addresses without a delay
	Deposits     bool // invoices can have deposit addresses
	LogoKB       int  // maximum size of a logo's file
}

// settings shows the merchant.
func (d *Dashboard) settings(w http.ResponseWriter, r *http.Request) error {
	return d.showSettings(w, r, http.StatusOK, "")
}

// showSettings shows the merchant, with the values of a refused form.
func (d *Dashboard) showSettings(w http.ResponseWriter, r *http.Request, status int, refused string) error {
	v := visitOf(r)
	if v.merchant == "" {
		return d.chooseMerchant(w, r, "settings.title")
	}
	var answer apitypes.MerchantResponse
	if err := d.service.get(r.Context(), id("/api/merchants", v.merchant), nil, &answer); err != nil {
		return err
	}
	m := answer.Merchant
	isOwn := m.Source == apitypes.MerchantDatabase && v.Can(access.KeysWrite)
	view := settingsView{Merchant: m, Storage: answer.Storage, Error: refused, MayAddresses: isOwn, MayProfile: isOwn && v.IsOperator(), Immediately: v.IsOperator(), Deposits: d.hasDeposits(), LogoKB: access.MaxLogoBytes >> 10}
	view.Typed = map[string]string{
		"name": m.Name, "color": m.Color, "supportContact": m.SupportContact, "statement": m.Statement,
		"returnHosts": strings.Join(m.ReturnHosts, "\n"), "embedOrigins": strings.Join(m.EmbedOrigins, "\n"), "allowedAddresses": addressLines(m.AllowedAddresses),
		"timezone": m.Timezone, "tolerance": m.Tolerance, "collection": string(m.Collection), "defaultAddresses": defaultAddressLines(m.DefaultAddresses),
	}
	if refused != "" {
		for name := range view.Typed {
			if r.PostForm.Has(name) {
				view.Typed[name] = r.PostForm.Get(name)
			}
		}
	}
	return d.render(w, r, status, "settings.html", "settings.title", view)
}

// addressLines returns addresses as lines of a chain and an address.
func addressLines(all []apitypes.AllowedAddress) string {
	lines := make([]string, len(all))
	for i, a := range all {
		lines[i] = a.ChainKey + " " + a.Address
	}
	return strings.Join(lines, "\n")
}

// defaultAddressLines returns default addresses as addressLines does, by chain.
func defaultAddressLines(all map[string]apitypes.Address) string {
	lines := make([]string, 0, len(all))
	for _, chainKey := range slices.Sorted(maps.Keys(all)) {
		lines = append(lines, chainKey+" "+all[chainKey])
	}
	return strings.Join(lines, "\n")
}

// cutAddress returns the chain and the address of a line.
func cutAddress(line string) (chainKey, address string) {
	chainKey, address, _ = strings.Cut(line, " ")
	return chainKey, strings.TrimSpace(address)
}

// lines returns the trimmed non-empty lines of a text.
func lines(text string) []string {
	all := make([]string, 0)
	for line := range strings.Lines(text) {
		all = append(all, strings.TrimSpace(line))
	}
	return slices.DeleteFunc(all, func(line string) bool { return line == "" })
}

// setProfile changes the merchant's profile, which payers see.
func (d *Dashboard) setProfile(w http.ResponseWriter, r *http.Request) error {
	if err := parseForm(w, r); err != nil {
		return err
	}
	name, color, contact := r.PostFormValue("name"), r.PostFormValue("color"), r.PostFormValue("supportContact")
	statement := strings.ReplaceAll(r.PostFormValue("statement"), "\r\n", "\n")
	timezone, tolerance := strings.TrimSpace(r.PostFormValue("timezone")), strings.TrimSpace(r.PostFormValue("tolerance"))
	change := apitypes.UpdateMerchantRequest{
		Timezone: &timezone, Tolerance: &tolerance, DefaultAddresses: make(map[string]apitypes.Address),
		Name: &name, Color: &color, SupportContact: &contact, Statement: &statement,
		ReturnHosts: lines(r.PostFormValue("returnHosts")), EmbedOrigins: lines(r.PostFormValue("embedOrigins")),
	}
	for _, line := range lines(r.PostFormValue("defaultAddresses")) {
		chainKey, address := cutAddress(line)
		change.DefaultAddresses[chainKey] = address
	}
	if collection := apitypes.Collection(r.PostFormValue("collection")); collection != "" {
		change.Collection = &collection
	}
	return d.changeMerchant(w, r, change)
}

// setAddresses changes the addresses that the merchant's money may go to.
func (d *Dashboard) setAddresses(w http.ResponseWriter, r *http.Request) error {
	if err := parseForm(w, r); err != nil {
		return err
	}
	request := apitypes.UpdateMerchantRequest{Immediately: r.PostFormValue("immediately") != ""}
	for _, line := range lines(r.PostFormValue("allowedAddresses")) {
		chainKey, address := cutAddress(line)
		request.AllowedAddresses = append(request.AllowedAddresses, apitypes.AllowedAddress{ChainKey: chainKey, Address: address})
	}
	return d.changeMerchant(w, r, request)
}

// changeMerchant makes a change, and shows the merchant.
func (d *Dashboard) changeMerchant(w http.ResponseWriter, r *http.Request, change apitypes.UpdateMerchantRequest) error {
	v := visitOf(r)
	if v.merchant == "" {
		return errNotFound
	}
	return d.settingsChanged(w, r, d.service.send(r.Context(), http.MethodPatch, id("/api/merchants", v.merchant), change, nil))
}

// settingsChanged shows the merchant after a change, or the interface's refusal.
func (d *Dashboard) settingsChanged(w http.ResponseWriter, r *http.Request, err error) error {
	switch refused, err := detail(err); {
	case err != nil:
		return err
	case refused != "":
		return d.showSettings(w, r, status(refused), refused)
	}
	d.redirect(w, r, "/dashboard/settings")
	return nil
}
