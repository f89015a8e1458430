package dashboard

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
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
	Confirm    bool // the person must confirm before addresses and the policy are changed
}

// settings shows the merchant.
func (d *Dashboard) settings(w http.ResponseWriter, r *http.Request) error {
	return d.showSettings(w, r, http.StatusOK, "", nil)
}

// showSettings shows the merchant, with the values of a refused form. change, if any, sets other members of the page.
func (d *Dashboard) showSettings(w http.ResponseWriter, r *http.Request, status int, refused string, change func(*settingsView)) error {
	v := visitOf(r)
	if v.merchant == "" {
		return d.chooseMerchant(w, r, "invoice.merchant")
	}
	answer := get[apitypes.MerchantResponse](d, r, id("/api/merchants", v.merchant), nil)
	m := answer.Merchant
	view := settingsView{
		Merchant: m, Storage: answer.Storage, Error: refused, Configured: m.Source == apitypes.MerchantConfig, Deposits: d.hasDeposits(),
		Defaults: defaultRows(m.DefaultAddresses), Allowed: allowedRows(m.AllowedAddresses), LogoKB: access.MaxLogoBytes >> 10,
		DelayedTo: d.cfg.Now().Add(d.cfg.AddressDelay).Unix(), Confirm: !v.session.Confirmed(d.cfg.Now()),
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

// addressRow is a row of a form of addresses.
type addressRow struct {
	ChainKey, Address string
	Networks          []option
	Error             string // of the address
}

// emptyRows is how many addresses can be added at a time.
const emptyRows = 2

// addressRows returns the rows of addresses, and emptyRows empty ones. A row has a menu of the service's
// chains, and of its own if the service no longer has that.
func (v *visit) addressRows(all []addressRow) []addressRow {
	networks := v.networks()
	rows := append(slices.Clone(all), make([]addressRow, emptyRows)...)
	for i, row := range rows {
		rows[i].Networks = networks
		if !slices.ContainsFunc(networks, func(o option) bool { return o.Value == row.ChainKey }) && row.ChainKey != "" {
			rows[i].Networks = append(slices.Clone(networks), option{Value: row.ChainKey, Text: v.Network(row.ChainKey)})
		}
	}
	return rows
}

// allowedRows returns the rows of allowed addresses.
func allowedRows(all []apitypes.AllowedAddress) []addressRow {
	return db.Each(all, func(a apitypes.AllowedAddress) addressRow {
		return addressRow{ChainKey: a.ChainKey, Address: a.Address}
	})
}

// defaultRows returns the rows of default addresses, by chain.
func defaultRows(all map[string]apitypes.Address) []addressRow {
	return db.Each(slices.Sorted(maps.Keys(all)), func(key string) addressRow { return addressRow{ChainKey: key, Address: all[key]} })
}

// typedRows returns the rows of a form without those that were cleared, and whether each address is
// one, with the right checksum. With once, a chain has one address.
func typedRows(r *http.Request, once bool) (rows []addressRow, valid bool) {
	text, valid := visitOf(r).text, true
	chains, addresses := r.PostForm["chainKey"], r.PostForm["address"]
	for i := range min(len(chains), len(addresses)) {
		row := addressRow{ChainKey: chains[i], Address: strings.TrimSpace(addresses[i])}
		if row.Address == "" {
			continue
		}
		_, malformed := invoice.ParseAddress(row.Address)
		_, wrong := chain.ParseAddress(row.Address)
		switch {
		case malformed != nil:
			row.Error = text.T("settings.address.form", nil)
		case wrong != nil:
			row.Error = text.T("settings.address.checksum", nil)
		case once && slices.ContainsFunc(rows, func(other addressRow) bool { return other.ChainKey == row.ChainKey }):
			row.Error = text.T("settings.address.twice", nil)
		}
		valid = valid && row.Error == ""
		rows = append(rows, row)
	}
	return rows, valid
}

// Sizes of the form with a logo.
const (
	// LogoFormBytes is the size of a form with the largest logo. The rest of the form takes less than 16 KiB.
	LogoFormBytes = access.MaxLogoBytes + 16<<10
	// MaxLogoForm is the size up to which a form that is too large is read and dropped. A browser shows
	// the answer only after it has sent the request.
	MaxLogoForm = 16 << 20
)

// logo answers with the merchant's logo.
func (d *Dashboard) logo(w http.ResponseWriter, r *http.Request) error {
	v := visitOf(r)
	return d.service.pass(w, r, logoOf(v), nil, http.Header{"Accept": {"image/png"}})
}

// logoOf returns the path of the merchant's logo in the interface.
func logoOf(v *visit) string { return id("/api/merchants", v.merchant) + "/logo" }

// setLogo sets the merchant's logo to the file of a form.
func (d *Dashboard) setLogo(w http.ResponseWriter, r *http.Request) error {
	v := visitOf(r)
	image, err := readFile(w, r, "logo", access.MaxLogoBytes)
	if errors.Is(err, errFileTooLarge) {
		return d.showSettings(w, r, http.StatusRequestEntityTooLarge, v.text.T("settings.logo.large", map[string]any{"KB": access.MaxLogoBytes >> 10}), nil)
	}
	if err != nil {
		return err
	}
	return d.settingsChanged(w, r, d.service.call(r.Context(), http.MethodPut, logoOf(v), nil, "", image, nil), nil)
}

// removeLogo removes the merchant's logo.
func (d *Dashboard) removeLogo(w http.ResponseWriter, r *http.Request) error {
	v := visitOf(r)
	return d.settingsChanged(w, r, d.service.send(r.Context(), http.MethodDelete, logoOf(v), nil, nil), nil)
}

// errFileTooLarge is the error of a form with a file that is too large.
var errFileTooLarge = errors.New("the file is too large")

// readFile returns the file of a form's field, of at most limit bytes, and reads the form to its
// end. Errors are errForm and errFileTooLarge.
func readFile(w http.ResponseWriter, r *http.Request, field string, limit int64) ([]byte, error) {
	r.Body = http.MaxBytesReader(w, r.Body, MaxLogoForm)
	form, err := r.MultipartReader()
	if err != nil {
		return nil, errForm
	}
	var file []byte
	for {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil && part.FormName() == field {
			file, err = io.ReadAll(io.LimitReader(part, limit+1))
		}
		if err == nil {
			_, err = io.Copy(io.Discard, part)
		}
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			return nil, errFileTooLarge
		}
		if err != nil {
			return nil, errForm
		}
	}
	if int64(len(file)) > limit {
		return nil, errFileTooLarge
	}
	return file, nil
}
