package demo

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
)

// printer writes the steps of the demo as they happen.
type printer struct {
	mu    sync.Mutex
	out   io.Writer
	color bool
	now   func() time.Time
	begun time.Time
}

// Styles of a terminal (ECMA-48), used when the output is one.
const (
	bold  = "1"
	dim   = "2"
	green = "32"
	red   = "31"
	cyan  = "36"
)

func (p *printer) style(code, text string) string {
	if !p.color {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// clearLine goes to the start of the line and empties it (ECMA-48: CR, EL).
const clearLine = "\r\x1b[K"

// progress shows what is waited for on the last line of a terminal, until the
// next line takes its place. In a pipe it shows nothing.
func (p *printer) progress(text string) {
	if !p.color {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprint(p.out, clearLine, p.style(dim, text))
}

// begin empties the line that progress may have written.
func (p *printer) begin() {
	if p.color {
		fmt.Fprint(p.out, clearLine)
	}
}

// step writes one line: the time since the start, whose step it is, what
// happened, and what names it.
func (p *printer) step(who, what, detail string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begin()
	at := p.elapsed()
	fmt.Fprintf(p.out, "%s  %s %-19s %s\n", p.style(dim, fmt.Sprintf("%5.1fs", at)),
		p.style(cyan, fmt.Sprintf("%-8s", who)), what, detail)
}

// elapsed is how many seconds the demo has taken so far.
func (p *printer) elapsed() float64 { return p.now().Sub(p.begun).Seconds() }

func (p *printer) line(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begin()
	fmt.Fprintln(p.out, text)
}

// table writes rows in columns; the first row is the heading.
func (p *printer) table(rows [][]string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	return w.Flush()
}
