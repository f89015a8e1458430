package dashboard_test

import (
	"encoding/csv"
	"hash/fnv"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/test/browsertest"
)

// attack is a text that runs a script if a page does not escape it.
const attack = `"'><img src=x onerror="window.pwned=1"><script>window.pwned=1</script>`

// hostile returns an attack for a field. It begins as formulas of spreadsheets do.
func hostile(field string) string {
	sum := fnv.New32()
	_, _ = sum.Write([]byte(field))
	text := "=+-@"[sum.Sum32()%4:][:1] + "1+1" + attack + field
	switch field {
	case "metadata key":
		return `=1+1"'><svg onload="window.pwned=1">` // 40 characters at most
	case "filter name":
		return `=1+1"'><svg onload="window.pwned=1"></script>filter name` // 60 characters at most
	case "support contact":
		return "https://cafe.example/?" + text
	case "statement":
		return text + "\n" + text
	case "user agent", "endpoint's answer", "webhook URL", "return URL":
		return text + "javascript:pwned=1"
	}
	return text
}

// unseen are fields that pages do not show as they are: escaped in a URL, shortened, or left out by the interface.
var unseen = []string{"webhook URL", "return URL", "metadata key", "attribution note"}

// TestStoredTexts plants an attack in each text that a merchant, a payer or a receiver can send, and
// visits each page as each kind of person. In HTML, in CSV and in JSON, every attack stays a text.
func TestStoredTexts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	planted, shown := make(map[string]bool), make(map[string]bool)
	f, table := fill(w, func(field string) string {
		planted[field] = true
		return hostile(field)
	}, 1), newRouteTable()
	for name, p := range map[string]*person{
		"owner": f.owner, "finance": w.person("cafe", access.Finance), "developer": w.person("cafe", access.Developer),
		"support": w.person("cafe", access.Support), "read-only": w.person("cafe", access.Read), "operator": w.operator,
	} {
		for _, at := range p.crawl(t, table, "/dashboard", "/dashboard?merchantId=cafe").places {
			for field := range planted {
				shown[field] = shown[field] || strings.Contains(at.page.Words(), "</script>"+field)
			}
			at.page.wantTexts(t, name)
		}
	}
	for field := range planted {
		if !shown[field] && !slices.Contains(unseen, field) {
			t.Errorf("no page shows the %s that was planted", field)
		}
	}
	f.wantEchoes(t, table)
}

// TestExtraStoredTextsInBrowser visits the pages with these texts in a browser, where only the page's own scripts run.
func TestExtraStoredTextsInBrowser(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fill(w, hostile, 0)
	for name, p := range map[string]*person{"owner": w.person("cafe", access.Admin), "operator": w.operator} {
		browser := browsertest.Open(t, browsertest.Options{})
		browser.SetCookies(w.url, p.Jar)
		for _, at := range p.scenes(t, newRouteTable()) {
			browser.Go(w.url + at.path)
			var pwned bool
			if browser.Eval("window.pwned !== undefined", &pwned); pwned {
				t.Errorf("the %s's %s runs a script", name, at.path)
			}
		}
		if got := browser.Errors(); len(got) > 0 {
			t.Errorf("the %s's pages report %q", name, got)
		}
	}
}

// wantTexts wants an answer in which all planted attacks are text.
func (a answer) wantTexts(t *testing.T, who string) {
	t.Helper()
	kind, _, _ := strings.Cut(a.header.Get("Content-Type"), ";")
	switch kind {
	case "text/html":
		for _, fault := range strictly(a.body) {
			t.Errorf("%s, %s: %s", who, a.path, fault)
		}
	case "text/csv":
		a.wantCells(t, who)
	case "application/json":
	default:
		t.Errorf("%s, %s: the content is %q", who, a.path, kind)
	}
	policy := a.header.Get("Content-Security-Policy")
	if a.header.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
		t.Errorf("%s, %s: the policy is %q, with %v", who, a.path, policy, a.header)
	}
}

// wantCells wants a table without formulas.
func (a answer) wantCells(t *testing.T, who string) {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(a.body)).ReadAll()
	if err != nil {
		t.Errorf("%s, %s: %v", who, a.path, err)
	}
	for _, row := range rows {
		for _, cell := range row {
			if cell != "" && strings.Contains("=+-@\t\r", cell[:1]) {
				t.Errorf("%s, %s: a spreadsheet calculates %q", who, a.path, cell)
			}
		}
	}
}

// wantEchoes types an attack into each field of each form: the answer shows it as a text.
func (f *filled) wantEchoes(t *testing.T, table *routeTable) {
	t.Helper()
	owner := f.person("cafe", access.Admin)
	n := 0
	for _, at := range owner.crawl(t, table, "/dashboard").places {
		for _, form := range at.page.Forms() {
			values, isTyped := form.Values(), false
			for _, field := range form.All(func(e *element) bool { return e.Name == "input" || e.Name == "textarea" || e.Name == "select" }) {
				if kind := field.Attrs["type"]; field.Attrs["name"] != "" && kind != "checkbox" && kind != "radio" {
					values.Set(field.Attrs["name"], attack)
					isTyped = isTyped || kind != "hidden"
				}
			}
			if !isTyped || strings.HasSuffix(form.Attrs["action"], "/language") {
				continue
			}
			n++
			if form.Attrs["method"] == "post" {
				owner.post(form.Attrs["action"], values).wantTexts(t, "echo of a form")
				continue
			}
			for name := range values {
				owner.get(form.Attrs["action"]+"?"+url.Values{name: {attack}}.Encode()).wantTexts(t, "echo of a filter")
			}
		}
	}
	if n == 0 {
		t.Error("no form has a field")
	}
	f.guest().get("/dashboard/sign-in?"+url.Values{"next": {attack}, "link": {attack}}.Encode()).wantTexts(t, "sign-in")
	f.guest().post("/dashboard/sign-in", url.Values{"key": {attack}, "next": {attack}, "link": {attack}}).wantTexts(t, "sign-in")
	if page := owner.get("/dashboard"); page.status != http.StatusOK {
		t.Errorf("the first page answers %d afterwards", page.status)
	}
}
