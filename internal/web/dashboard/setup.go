package dashboard

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
)

// pathSetup is the page that leads the operator of a new service to the first paid invoice.
const pathSetup = "/dashboard/operator/setup"

// setupState is how far a step of the setup is.
type setupState string

// The states of a step.
const (
	setupDone    setupState = "done"
	setupTodo    setupState = "todo"    // the person does it next
	setupFailed  setupState = "failed"  // Problem says why
	setupWaiting setupState = "waiting" // for something that the person cannot do here
)

// setupStep is a step of the setup.
type setupStep struct {
	State   setupState
	Problem string // in the words of the service or a node
}

// setupChain is a chain on the page.
type setupChain struct {
	operatedChain
	Problem  string // why it is not read
	Working  int    // nodes
	Contract map[chain.Contract]string
}

// setupView is the page of the setup.
type setupView struct {
	Database  setupStep
	Kind      string // of the database
	Address   setupStep
	PublicURL string
	Reached   string // the address at which the person reached the page
	Network   setupStep
	Chains    []setupChain
	Merchant  setupStep
	First     apitypes.MerchantOverview // the merchant that the next steps are about
	Form      merchantForm
	Webhook   setupStep
	Key       setupStep
	Invoice   setupStep
	Newest    []apitypes.Invoice // of the merchant, at most one
	Checkout  string             // its page for payers
}

// merchantForm is the form of the first merchant.
type merchantForm struct {
	ID, Name, Error string
	Address         []addressRow // one
}

// Contracts returns the service's contracts. It is for templates.
func (setupView) Contracts() []chain.Contract { return chain.Contracts }

// Done reports whether all steps are done. It is for templates.
func (s setupView) Done() bool {
	return !slices.ContainsFunc([]setupStep{s.Database, s.Network, s.Merchant, s.Webhook, s.Key, s.Invoice}, func(s setupStep) bool { return s.State != setupDone })
}

// showSetup shows how far the service is.
func (d *Dashboard) showSetup(w http.ResponseWriter, r *http.Request, _ int, form merchantForm) error {
	service, chains := d.readService(r)
	form.Address = visitOf(r).addressRows(form.Address)[:1]
	view := setupView{Kind: service.Database, Database: setupStep{State: setupDone}, Form: form}
	if service.DatabaseState != "ok" {
		view.Database = setupStep{setupFailed, service.DatabaseState}
	}
	d.addSetupAddress(r, &view)
	d.addSetupChains(chains, &view)
	d.addSetupMerchant(r, &view)
	return d.render(w, r, status(form.Error), "setup.html", "setup.title", view)
}

// addSetupAddress compares the address of payers' pages with the one at which the person came.
func (d *Dashboard) addSetupAddress(r *http.Request, view *setupView) {
	view.PublicURL, view.Reached = d.cfg.PublicURL, d.reachedAt(r)
	switch {
	case view.PublicURL == "":
		view.Address.State = setupTodo
	case view.PublicURL == view.Reached:
		view.Address.State = setupDone
	default: // the dashboard may have another address
		view.Address.State = setupWaiting
	}
}

// addSetupChains adds the chains. The step is done if every chain is read.
func (d *Dashboard) addSetupChains(chains []operatedChain, view *setupView) {
	if view.Network.State = setupDone; len(chains) == 0 {
		view.Network.State = setupTodo
	}
	for _, c := range chains {
		one := setupChain{operatedChain: c, Contract: make(map[chain.Contract]string)}
		failed := !c.Ready || c.Halted != ""
		if failed {
			one.Problem, view.Network.State = cmp.Or(c.Halted, c.Error), setupFailed
		}
		for _, node := range c.Nodes {
			if node.Health == apitypes.NodeOK {
				one.Working++
			}
			if failed {
				one.Problem = cmp.Or(one.Problem, node.Reason, node.LastError)
			}
		}
		at := d.chains[c.ChainKey]
		for contract, address := range map[chain.Contract]invoice.Address{
			chain.DepositFactory: at.DepositFactory, chain.AuthorizationRelay: at.AuthorizationRelay, chain.Registry: at.Registry,
		} {
			if !address.IsZero() {
				one.Contract[contract] = chain.Checksum(address)
			}
		}
		view.Chains = append(view.Chains, one)
	}
}

// addSetupMerchant adds the steps of the merchant: the page's, or the first one.
func (d *Dashboard) addSetupMerchant(r *http.Request, view *setupView) {
	view.Merchant.State, view.Webhook.State, view.Key.State, view.Invoice.State = setupTodo, setupWaiting, setupWaiting, setupWaiting
	list := get[apitypes.MerchantOverviewList](d, r, "/api/operator/merchants", limited(nil))
	wanted := visitOf(r).merchant
	i := max(0, slices.IndexFunc(list.Merchants, func(m apitypes.MerchantOverview) bool { return m.ID == wanted }))
	if i >= len(list.Merchants) {
		return
	}
	m := list.Merchants[i]
	view.First, view.Merchant.State = m, setupDone
	switch view.Webhook.State = setupTodo; m.Endpoint {
	case "ok":
		view.Webhook.State = setupDone
	case "none":
	case "unused":
		view.Webhook.State = setupWaiting
	default:
		view.Webhook = setupStep{setupFailed, m.EndpointError}
	}
	if view.Key.State = setupTodo; m.ActiveKeys > 0 {
		view.Key.State = setupDone
	}
	d.addSetupInvoice(r, view)
}

// addSetupInvoice adds the step of the first invoice, which is done when one was paid.
func (d *Dashboard) addSetupInvoice(r *http.Request, view *setupView) {
	view.Invoice.State = setupTodo
	if !visitOf(r).Can(access.InvoicesRead) {
		return
	}
	for _, status := range []apitypes.InvoiceStatus{apitypes.StatusPaid, apitypes.StatusOpen} {
		query := url.Values{"merchantId": {view.First.ID}, "status": {string(status)}, "limit": {"1"}}
		if list := get[apitypes.InvoiceList](d, r, "/api/invoices", query); len(list.Invoices) > 0 {
			view.Newest, view.Checkout = list.Invoices, d.publicURL(r)+"/checkout/"+list.Invoices[0].ID
			if view.Invoice.State = setupWaiting; status == apitypes.StatusPaid {
				view.Invoice.State = setupDone
			}
			return
		}
	}
}

// createMerchant creates a merchant with a name and, if one was typed, a default address.
func (d *Dashboard) createMerchant(w http.ResponseWriter, r *http.Request) error {
	rows, valid := typedRows(r, true)
	form := merchantForm{ID: r.PostFormValue("id"), Name: r.PostFormValue("name"), Address: rows}
	if !valid {
		form.Error = rows[0].Error
		return d.showSetup(w, r, 0, form)
	}
	request := apitypes.CreateMerchantRequest{ID: form.ID, Name: form.Name, DefaultAddresses: make(map[string]apitypes.Address)}
	for _, row := range rows {
		request.DefaultAddresses[row.ChainKey] = row.Address
	}
	err := d.service.send(r.Context(), http.MethodPost, "/api/merchants", request, nil)
	if form.Error, err = detail(err); err != nil {
		return err
	}
	if form.Error != "" {
		return d.showSetup(w, r, 0, form)
	}
	return d.redirect(w, r, nil, pathSetup, "merchantId", form.ID)
}
