package dev

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
)

// printer writes the steps of the demo.
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

// styled returns a text in a style, if the output is a terminal.
func styled(terminal bool, code, text string) string {
	if !terminal {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (p *printer) style(code, text string) string { return styled(p.color, code, text) }

// clearLine moves to the start of the line and erases it (ECMA-48: CR, EL).
const clearLine = "\r\x1b[K"

// progress writes the last line of a terminal, which the next line replaces. If the output is not a
// terminal, it writes no line.
func (p *printer) progress(text string) {
	if !p.color {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprint(p.out, clearLine, p.style(dim, text))
}

// begin erases the line of progress.
func (p *printer) begin() {
	if p.color {
		fmt.Fprint(p.out, clearLine)
	}
}

// step writes one line: the time since the start, the scenario, the step and its
// details.
func (p *printer) step(who, what, detail string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begin()
	at := p.elapsed()
	fmt.Fprintf(p.out, "%s  %s %-19s %s\n", p.style(dim, fmt.Sprintf("%5.1fs", at)),
		p.style(cyan, fmt.Sprintf("%-8s", who)), what, detail)
}

// elapsed returns the seconds since the start of the demo.
func (p *printer) elapsed() float64 { return p.now().Sub(p.begun).Seconds() }

func (p *printer) line(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begin()
	fmt.Fprintln(p.out, text)
}

// table writes rows in columns. The first row is the heading.
func (p *printer) table(rows [][]string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	return w.Flush()
}
