package browsertest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/testdeps"
)

// Axe reports violations of the rules of axe-core on the page as test errors. web is the
// folder of the checkout's package-lock.json.
func (p *Page) Axe(web string) {
	p.t.Helper()
	for _, v := range p.Violations(web) {
		p.t.Error(v)
	}
}

// Violations returns the violations of the rules of axe-core on the page.
func (p *Page) Violations(web string) (found []string) {
	p.t.Helper()
	modules, err := testdeps.NodeModules(p.t.Context(), "browsertest", web)
	expect.OK(p.t, err)
	source := expect.Must(os.ReadFile(filepath.Join(modules, "axe-core", "axe.min.js")))
	p.Eval("void (() => {"+string(source)+"\n})()", nil)
	var violations []struct {
		ID    string
		Help  string
		Nodes []struct{ HTML, FailureSummary string }
	}
	p.Eval("axe.run(document, { resultTypes: ['violations'] }).then((r) => r.violations)", &violations)
	for _, v := range violations {
		var nodes []string
		for _, n := range v.Nodes {
			nodes = append(nodes, fmt.Sprintf("%s\n%s", n.HTML, n.FailureSummary))
		}
		found = append(found, fmt.Sprintf("axe: %s: %s\n%s", v.ID, v.Help, strings.Join(nodes, "\n")))
	}
	return found
}
