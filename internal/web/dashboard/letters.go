package dashboard

import (
	"bytes"
	"fmt"
	"html/template"

	"github.com/quittance/quittance/internal/mailer"
	"github.com/quittance/quittance/internal/web/checkout/locale"
)

// letterHTML is a mail with a link.
var letterHTML = template.Must(template.New("").Parse(`<!doctype html><html lang="{{.Lang}}" dir="{{.Dir}}"><meta charset="utf-8"><title>{{.Subject}}</title>` +
	`<p>{{.Text}}</p><p><a href="{{.Link}}">{{.Link}}</a></p><p>{{.Hint}}</p></html>`))

// letter returns a mail with a link. Its texts have ids that begin with kind.
func letter(text *locale.Text, kind, link string, values map[string]any) (mailer.Message, error) {
	m := mailer.Message{Subject: text.T(kind+".subject", values)}
	parts := struct{ Lang, Dir, Subject, Text, Link, Hint string }{
		text.Lang(), text.Dir(), m.Subject, text.T(kind+".text", values), link, text.T(kind+".hint", values),
	}
	m.Text = fmt.Sprintf("%s\n\n%s\n\n%s\n", parts.Text, link, parts.Hint)
	var html bytes.Buffer
	err := letterHTML.Execute(&html, parts)
	m.HTML = html.String()
	return m, err
}
