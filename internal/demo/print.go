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

// step writes one line: the time since the start, whose step it is, what
// happened, and what names it.
func (p *printer) step(who, what, detail string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.now().Sub(p.begun).Seconds()
	fmt.Fprintf(p.out, "%s  %s %-19s %s\n", p.style(dim, fmt.Sprintf("%5.1fs", at)),
		p.style(cyan, fmt.Sprintf("%-8s", who)), what, detail)
}

func (p *printer) line(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
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
