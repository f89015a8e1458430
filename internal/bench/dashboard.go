package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/config"
	"github.com/quittance/quittance/internal/dashboard"
	"github.com/quittance/quittance/internal/seed"
	"github.com/quittance/quittance/internal/session"
	"github.com/quittance/quittance/internal/times"
	"github.com/quittance/quittance/internal/wait"
)

const (
	// boardMerchants is the number of merchants; one of boardOpen invoices is open.
	boardMerchants, boardOpen = 1000, 365
	// boardDecimals is the number of decimals of the currency.
	boardDecimals = 6
	// boardAddresses bounds the addresses of a page that are requested in turns.
	boardAddresses = 25
	// boardWarmUp is how often a page is requested before it is measured.
	boardWarmUp = 5
	// boardActAim is the aim for the answer to an act, with the page that it leads to.
	boardActAim = 200 * time.Millisecond
	// boardTransferAim is the aim for what the first load of a page transfers, in bytes.
	boardTransferAim = 100_000
)

// boardAim returns the aim for the 95th percentile of a page.
func boardAim(kind string) time.Duration {
	if kind == "sqlite" {
		return 150 * time.Millisecond
	}
	return 100 * time.Millisecond
}

// measureDashboard measures each page of the dashboard, as the owner of the largest merchant
// and the operator see it, and acts.
func (b *bench) measureDashboard(ctx context.Context, kind string) (err error) {
	database, err := b.url(ctx, kind, "dashboard")
	if err != nil {
		return err
	}
	began := time.Now()
	rows, err := seed.New(seed.Config{
		Invoices: b.board, Merchants: boardMerchants, Open: b.board / boardOpen, Until: time.Now(), KeepEvents: seed.Period, KeepAttempts: config.DefaultRetention,
	})
	if err != nil {
		return err
	}
	w, err := startSeeded(ctx, database, rows, serverConfig{})
	if err != nil {
		return fmt.Errorf("make rows: %w", err)
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	if err := errors.Join(w.waitReady(ctx), seedMerchants(ctx, w, rows), waitForSums(ctx, database)); err != nil {
		return err
	}
	seeded := time.Since(began)
	for _, merchant := range []string{seed.Merchant(0), ""} {
		v, err := newVisitor(ctx, w, merchant)
		if err != nil {
			return err
		}
		if err := b.measureVisitor(ctx, kind, v, rows); err != nil {
			return err
		}
	}
	b.report.row(kind, fmt.Sprintf("rows made for the dashboard: %d invoices", b.board), seeded.Round(time.Second), "", "", "")
	return nil
}

// waitForSums waits until the service has added up what was settled, as it had at the time.
func waitForSums(ctx context.Context, database string) (err error) {
	db, err := openSQL(database)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	for began := time.Now(); ; {
		var through int64
		if err := db.QueryRowContext(ctx, "SELECT through FROM rollup_progress").Scan(&through); err != nil {
			return err
		}
		if time.Unix(through, 0).After(began.Add(-time.Hour)) {
			return nil
		}
		if !wait.Sleep(ctx, time.Second, nil) {
			return ctx.Err()
		}
	}
}

// seedMerchants makes the merchants, each with an address.
func seedMerchants(ctx context.Context, w *world, rows *seed.Maker) error {
	for m := range boardMerchants {
		if _, err := w.server.api.CreateMerchant(ctx, apitypes.CreateMerchantRequest{
			ID: seed.Merchant(m), Name: fmt.Sprintf("Merchant %d", m), DefaultAddresses: map[string]apitypes.Address{chain.Local: rows.Address(m).String()},
		}); err != nil {
			return err
		}
	}
	return nil
}

// measureVisitor measures the pages that a person can reach by links, those of filters, and
// acts.
func (b *bench) measureVisitor(ctx context.Context, kind string, v *visitor, rows *seed.Maker) error {
	pages, err := v.crawl(ctx)
	if err != nil {
		return err
	}
	who := "operator's "
	if v.merchant != "" {
		who = ""
		maps.Copy(pages, boardFilters(rows))
	}
	aim := boardAim(kind)
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		var took []time.Duration
		for i := range boardWarmUp + b.boardTurns {
			answer, err := v.get(ctx, pages[name][i%len(pages[name])])
			if err != nil {
				return err
			}
			if i >= boardWarmUp {
				took = append(took, answer.took)
			}
		}
		p95 := quantile(took, 0.95)
		b.report.row(kind, who+name+", p95", p95, aim, fmt.Sprintf("%.2f", float64(p95)/float64(aim)),
			fmt.Sprintf("aim; median %v; %d addresses", quantile(took, 0.5), len(pages[name])))
	}
	if v.merchant == "" {
		return nil
	}
	b.report.row(kind, "first load, the largest", fmt.Sprintf("%d bytes", v.largest), fmt.Sprintf("%d bytes", boardTransferAim),
		fmt.Sprintf("%.2f", float64(v.largest)/boardTransferAim), "aim; "+v.largestPath)
	return b.measureActs(ctx, kind, v)
}

// boardFilters returns addresses of lists and searches by what rows have.
func boardFilters(rows *seed.Maker) map[string][]string {
	all := make(map[string][]string)
	for i := range boardAddresses {
		row := i * (rows.Invoices / boardAddresses)
		for rows.Owner(row) != 0 || len(rows.Payments(row)) == 0 { // of the largest merchant
			row++
		}
		inv, p := rows.Invoice(row), rows.Payments(row)[0]
		for name, query := range map[string]string{
			"search by reference": "search?q=order-%d", "invoices by reference": "invoices?reference=order-%d",
		} {
			all[name] = append(all[name], "/dashboard/"+fmt.Sprintf(query, row))
		}
		amount := inv.Amount.Major(boardDecimals)
		for name, path := range map[string]string{
			"search by id": "search?q=" + inv.ID, "search by hash": "search?q=" + p.TxHash.String(), "search by payer": "search?q=" + p.From.String(),
			"payments by hash": "payments?q=" + p.TxHash.String(), "payments by payer": "payments?q=" + p.From.String(), "payments by amount": "payments?q=" + amount,
			"invoices by amount": "invoices?amount=" + amount, "invoices, late": "invoices?exception=late", "invoices, open": "invoices?status=open",
			"events by invoice": "events?invoiceId=" + inv.ID, "payments without an invoice": "payments?show=unattributed",
			"statement of a month": "statement?month=" + times.Format(rows.At(row), time.UTC, "2006-01"),
		} {
			all[name] = append(all[name], "/dashboard/"+path)
		}
	}
	return all
}

// visitor is a person with a browser, who is signed in.
type visitor struct {
	client   *http.Client
	base     string
	merchant string // empty: the operator
	routes   *http.ServeMux
	assets   map[string]int // bytes of the files that pages load

	largest     int // bytes of the first load of a page
	largestPath string
}

func newVisitor(ctx context.Context, w *world, merchant string) (*visitor, error) {
	key := operatorKey().Reveal()
	if merchant != "" {
		_, secret, err := w.server.api.CreateKey(ctx, apitypes.CreateKeyRequest{Name: "owner", MerchantID: merchant, Scopes: []string{"owner"}})
		if err != nil {
			return nil, err
		}
		key = secret
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	v := &visitor{
		client: &http.Client{Jar: jar, Transport: &http.Transport{DisableCompression: true}}, base: w.server.url, merchant: merchant,
		routes: http.NewServeMux(), assets: make(map[string]int),
	}
	board := dashboard.New(dashboard.Config{API: http.NotFoundHandler(), Sessions: new(session.Manager), Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
	for _, r := range board.Routes() {
		if !r.Long && !strings.HasSuffix(r.Pattern, ".csv") {
			v.routes.Handle(r.Pattern, r.Handler)
		}
	}
	_, err = v.post(ctx, "/dashboard/sign-in", url.Values{"key": {key}})
	return v, err
}

// visited is the answer to a visitor's request.
type visited struct {
	took time.Duration
	body string
}

func (v *visitor) get(ctx context.Context, path string) (visited, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, v.base+path, nil)
	if err != nil {
		return visited{}, err
	}
	return v.do(r)
}

// post sends a form, and follows to the page that it leads to.
func (v *visitor) post(ctx context.Context, path string, form url.Values) (visited, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, v.base+path, strings.NewReader(form.Encode()))
	if err != nil {
		return visited{}, err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return v.do(r)
}

func (v *visitor) do(r *http.Request) (visited, error) {
	began := time.Now()
	res, err := v.client.Do(r)
	if err != nil {
		return visited{}, err
	}
	defer res.Body.Close() //nolint:errcheck // it was read to its end
	body, err := io.ReadAll(res.Body)
	if err == nil && (res.StatusCode != http.StatusOK || strings.HasPrefix(res.Request.URL.Path, "/dashboard/sign-in")) {
		err = fmt.Errorf("%s %s leads to %s with status %d: %.500s", r.Method, r.URL, res.Request.URL, res.StatusCode, body)
	}
	return visited{time.Since(began), string(body)}, err
}

var (
	boardLink = regexp.MustCompile(`href="(/dashboard[^"#]*)"`)
	boardFile = regexp.MustCompile(`(?:href|src)="(/dashboard/static/[^"]*)"`)
)

// crawl follows links, and returns the addresses of each route, and of each with parameters.
func (v *visitor) crawl(ctx context.Context) (map[string][]string, error) {
	pages, seen := make(map[string][]string), make(map[string]bool)
	for waiting := []string{"/dashboard"}; len(waiting) > 0; waiting = waiting[1:] {
		path := strings.ReplaceAll(waiting[0], "&amp;", "&")
		u, err := url.Parse(path)
		if err != nil {
			return nil, err
		}
		_, name := v.routes.Handler(&http.Request{Method: http.MethodGet, URL: u, Host: "localhost"})
		if name == "" { // an export
			continue
		}
		for _, parameter := range slices.Sorted(maps.Keys(u.Query())) {
			name += " " + parameter
		}
		if seen[path] || strings.Contains(name, "/static/") || len(pages[name]) >= boardAddresses {
			continue
		}
		seen[path] = true
		if pages[name] = append(pages[name], path); len(pages[name]) > 1 && !strings.Contains(name, "cursor") {
			continue // its links are like those of the first
		}
		answer, err := v.get(ctx, path)
		if err != nil {
			return nil, err
		}
		if err := v.weigh(ctx, path, answer); err != nil {
			return nil, err
		}
		for _, found := range boardLink.FindAllStringSubmatch(answer.body, -1) {
			waiting = append(waiting, found[1])
		}
	}
	return pages, nil
}

// weigh notes what the first load of a page transfers, without headers.
func (v *visitor) weigh(ctx context.Context, path string, page visited) error {
	all, err := v.transferred(ctx, path)
	if err != nil {
		return err
	}
	for _, found := range boardFile.FindAllStringSubmatch(page.body, -1) {
		if _, ok := v.assets[found[1]]; !ok {
			if v.assets[found[1]], err = v.transferred(ctx, found[1]); err != nil {
				return err
			}
		}
		all += v.assets[found[1]]
	}
	if all > v.largest {
		v.largest, v.largestPath = all, path
	}
	return nil
}

// transferred returns the size of a compressed response.
func (v *visitor) transferred(ctx context.Context, path string) (int, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, v.base+path, nil)
	if err != nil {
		return 0, err
	}
	r.Header.Set("Accept-Encoding", "gzip")
	answer, err := v.do(r)
	return len(answer.body), err
}
