package dashboard

import (
	"net/http"
	"slices"
	"strings"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
)

// settingsView is the page of a merchant.
type settingsView struct {
	apitypes.Merchant
	Storage    *apitypes.MerchantStorage
	Error      string
	Typed      map[string]string // values in the forms, by member
	Defaults   []addressRow
	Allowed    []addressRow
	Configured bool  // the configuration has the merchant
	May        bool  // the person may change what owners change
	MayAll     bool  // also the rules of invoices, and addresses without a delay
	DelayedTo  int64 // when a change of addresses that is made now takes effect, in Unix seconds
	Deposits   bool  // invoices can have deposit addresses
	LogoKB     int   // maximum size of a logo's file
	Policy     policyForm
}

// settings shows the merchant.
func (d *Dashboard) settings(w http.ResponseWriter, r *http.Request) error {
	return d.showSettings(w, r, http.StatusOK, "", nil)
}

// showSettings shows the merchant, with the values of a refused form. change sets other members of the
// page, unless it is nil.
func (d *Dashboard) showSettings(w http.ResponseWriter, r *http.Request, status int, refused string, change func(*settingsView)) error {
	v := visitOf(r)
	if v.merchant == "" {
		return d.chooseMerchant(w, r, "invoice.merchant")
	}
	var answer apitypes.MerchantResponse
	if err := d.service.get(r.Context(), id("/api/merchants", v.merchant), nil, &answer); err != nil {
		return err
	}
	m := answer.Merchant
	view := settingsView{
		Merchant: m, Storage: answer.Storage, Error: refused, Configured: m.Source == apitypes.MerchantConfig, Deposits: d.hasDeposits(),
		Defaults: defaultRows(m.DefaultAddresses), Allowed: allowedRows(m.AllowedAddresses), LogoKB: access.MaxLogoBytes >> 10,
		DelayedTo: d.cfg.Now().Add(d.cfg.AddressDelay).Unix(),
	}
	before, after := hoursTexts(m.ReminderHours)
	view.May = !view.Configured && v.Can(access.KeysWrite)
	view.MayAll = view.May && v.IsOperator()
	view.Typed = map[string]string{
		"name": m.Name, "color": m.Color, "supportContact": m.SupportContact, "statement": m.Statement,
		"returnHosts": strings.Join(m.ReturnHosts, "\n"), "embedOrigins": strings.Join(m.EmbedOrigins, "\n"),
		"timezone": m.Timezone, "before": before, "after": after, "tolerance": m.Tolerance, "collection": string(m.Collection),
	}
	var err error
	if view.Policy, err = d.policyForm(r, refused); err != nil {
		return err
	}
	for name := range view.Typed {
		if refused != "" && r.PostForm.Has(name) {
			view.Typed[name] = r.PostForm.Get(name)
		}
	}
	if change != nil {
		change(&view)
	}
	view.Defaults, view.Allowed = v.addressRows(view.Defaults), v.addressRows(view.Allowed)
	return d.render(w, r, status, "settings.html", "invoice.merchant", view)
}

// lines returns the trimmed non-empty lines of a text.
func lines(text string) []string {
	all := make([]string, 0)
	for line := range strings.Lines(text) {
		all = append(all, strings.TrimSpace(line))
	}
	return slices.DeleteFunc(all, func(line string) bool { return line == "" })
}

// setProfile changes what payers see of the merchant, its time zone and its reminders.
func (d *Dashboard) setProfile(w http.ResponseWriter, r *http.Request) error {
	name, color, contact := r.PostFormValue("name"), r.PostFormValue("color"), r.PostFormValue("supportContact")
	statement, timezone := strings.ReplaceAll(r.PostFormValue("statement"), "\r\n", "\n"), strings.TrimSpace(r.PostFormValue("timezone"))
	hours, ok := typedHours(r)
	if !ok {
		return d.showSettings(w, r, http.StatusBadRequest, visitOf(r).text.T("mail.hours.wrong", nil), nil)
	}
	return d.changeMerchant(w, r, apitypes.UpdateMerchantRequest{
		Name: &name, Color: &color, SupportContact: &contact, Statement: &statement, Timezone: &timezone, ReminderHours: hours,
	}, nil)
}

// setRules changes the rules of the merchant's invoices.
func (d *Dashboard) setRules(w http.ResponseWriter, r *http.Request) error {
	tolerance := strings.TrimSpace(r.PostFormValue("tolerance"))
	change := apitypes.UpdateMerchantRequest{
		Tolerance: &tolerance, ReturnHosts: lines(r.PostFormValue("returnHosts")), EmbedOrigins: lines(r.PostFormValue("embedOrigins")),
	}
	if collection := apitypes.Collection(r.PostFormValue("collection")); collection != "" {
		change.Collection = &collection
	}
	return d.changeMerchant(w, r, change, nil)
}

// setDefaults changes the addresses that invoices settle to if they name none.
func (d *Dashboard) setDefaults(w http.ResponseWriter, r *http.Request) error {
	rows, valid := typedRows(r, true)
	typed := func(view *settingsView) { view.Defaults = rows }
	if !valid {
		return d.showSettings(w, r, http.StatusBadRequest, "", typed)
	}
	change := apitypes.UpdateMerchantRequest{DefaultAddresses: make(map[string]apitypes.Address, len(rows))}
	for _, row := range rows {
		change.DefaultAddresses[row.ChainKey] = row.Address
	}
	return d.changeMerchant(w, r, change, typed)
}

// setAddresses changes the addresses that the merchant's money may go to.
func (d *Dashboard) setAddresses(w http.ResponseWriter, r *http.Request) error {
	rows, valid := typedRows(r, false)
	typed := func(view *settingsView) { view.Allowed = rows }
	if !valid {
		return d.showSettings(w, r, http.StatusBadRequest, "", typed)
	}
	change := apitypes.UpdateMerchantRequest{Immediately: r.PostFormValue("immediately") != "", AllowedAddresses: make([]apitypes.AllowedAddress, len(rows))}
	for i, row := range rows {
		change.AllowedAddresses[i] = apitypes.AllowedAddress{ChainKey: row.ChainKey, Address: row.Address}
	}
	return d.changeMerchant(w, r, change, typed)
}

// changeMerchant makes a change, and shows the merchant. A refused change is shown as typed sets it.
func (d *Dashboard) changeMerchant(w http.ResponseWriter, r *http.Request, change apitypes.UpdateMerchantRequest, typed func(*settingsView)) error {
	v := visitOf(r)
	return d.settingsChanged(w, r, d.service.send(r.Context(), http.MethodPatch, id("/api/merchants", v.merchant), change, nil), typed)
}

// settingsChanged shows the merchant after a change, or the interface's refusal.
func (d *Dashboard) settingsChanged(w http.ResponseWriter, r *http.Request, err error, typed func(*settingsView)) error {
	refused, err := detail(err)
	if refused != "" {
		return d.showSettings(w, r, status(refused), refused, typed)
	}
	return d.redirect(w, r, err, "/dashboard/settings")
}
