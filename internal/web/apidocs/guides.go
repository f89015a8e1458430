package apidocs

import (
	"bytes"
	"fmt"
	"html/template"
	"path"
	"strings"
	"sync"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/quittance/quittance"
)

// pathGuides is where the guides are served.
const pathGuides = "/docs/guides"

// repository is where files are that the service does not serve.
const repository = "https://github.com/quittance/quittance/blob/main/"

// groups are the guides, by whom they are for.
var groups = []struct {
	Title string
	names string
}{
	{"Start", "quickstart accept-payments testing go-live"},
	{"Payments", "payment-links embedding refunds deposits payments states reconciliation reports exports dashboard"},
	{"Programs", "webhooks events lists errors access versioning merchants audit"},
	{"Operation", "install deploy configuration changing operations recovery runbooks postgresql scaling upgrade"},
}

// guide is a guide as a page.
type guide struct {
	Name, Title string
	Body        template.HTML
}

// Path returns the path of the guide's page.
func (g guide) Path() string { return pathGuides + "/" + g.Name }

// guideGroup is a group of guides.
type guideGroup struct {
	Title  string
	Guides []guide
}

// guidePage is the data of a page.
type guidePage struct {
	Groups []guideGroup
	Guide  *guide // nil on the page that lists them
}

// allGuides are the rendered guides of all groups.
var allGuides = sync.OnceValue(func() (all []guideGroup) {
	markdown := goldmark.New(
		goldmark.WithExtensions(extension.Table),
		goldmark.WithParserOptions(parser.WithAutoHeadingID(), parser.WithASTTransformers(util.Prioritized(links{}, 1))),
	)
	for _, group := range groups {
		is := guideGroup{Title: group.Title}
		for name := range strings.FieldsSeq(group.names) {
			source, err := quittance.Guides.ReadFile("docs/" + name + ".md")
			if err != nil {
				panic(fmt.Errorf("read an embedded guide: %w", err))
			}
			var body bytes.Buffer
			if err := markdown.Convert(source, &body); err != nil {
				panic(fmt.Errorf("render the guide %s: %w", name, err))
			}
			heading, _, _ := strings.Cut(strings.TrimPrefix(string(source), "# "), "\n")
			is.Guides = append(is.Guides, guide{name, strings.ReplaceAll(heading, "`", ""), template.HTML(accessible.Replace(body.String()))}) //nolint:gosec // of this repository; raw HTML is left out
		}
		all = append(all, is)
	}
	return all
})

// accessible lets keyboards scroll what is wider than the page, and says that the corner of a table is no header.
var accessible = strings.NewReplacer("<pre>", `<pre tabindex="0">`, "<table>", `<table tabindex="0">`, "<th></th>", "<td></td>")

// guideNamed returns one of the guides in groups.
func guideNamed(name string) *guide {
	for _, group := range allGuides() {
		for _, g := range group.Guides {
			if g.Name == name {
				return &g
			}
		}
	}
	panic("there is no guide " + name)
}

var guidesTemplate = sync.OnceValue(func() *template.Template { return template.Must(template.ParseFS(assets, "assets/guides.html")) })

// guidesPage returns the page of a guide, or without one the page that lists all.
func guidesPage(g *guide) []byte {
	var page bytes.Buffer
	if err := guidesTemplate().Execute(&page, guidePage{allGuides(), g}); err != nil {
		panic(fmt.Errorf("render the guides: %w", err))
	}
	return page.Bytes()
}

// links changes the relative links of a guide: to other guides, the reference, or the repository.
type links struct{}

// Transform implements parser.ASTTransformer.
func (links) Transform(document *ast.Document, _ text.Reader, _ parser.Context) {
	_ = ast.Walk(document, func(node ast.Node, entering bool) (ast.WalkStatus, error) { // the function returns no error
		if link, ok := node.(*ast.Link); ok && entering {
			link.Destination = []byte(destination(string(link.Destination)))
		}
		return ast.WalkContinue, nil
	})
}

// destination returns the address of a link in a guide.
func destination(to string) string {
	if strings.Contains(to, "://") || strings.HasPrefix(to, "#") {
		return to
	}
	file, fragment, found := strings.Cut(to, "#")
	if found {
		fragment = "#" + fragment
	}
	name, isGuide := strings.CutSuffix(file, ".md")
	for _, group := range groups {
		if isGuide && strings.Contains(" "+group.names+" ", " "+name+" ") {
			return pathGuides + "/" + name + fragment
		}
	}
	if file == "../openapi.yaml" {
		return "/docs"
	}
	return repository + path.Join("docs", file) + fragment
}
