package api

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/apiconv"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/web/webpage"
)

// Memory limits of pages.
const (
	// MaxPageBytes bounds the size of a page's elements, whatever its limit.
	MaxPageBytes = 1 << 20
	// MaxPages bounds the pages that are served at a time. An owner of keys has a share of them. Each uses
	// about pageBuffer of memory.
	MaxPages = 256
	// pageBuffer is the approximate size of a part of a page, which is read and written at once.
	pageBuffer = 64 << 10
	// firstRows and maxRows are the number of rows of the first part, and its bound.
	firstRows, maxRows = 4, 64
)

// listing is a page of a list. It is read and written in parts, so that its memory does not depend on
// the number of rows or the speed of the client.
type listing[T any] struct {
	name  string // of the member with the elements
	query *query // of the request; its errors are returned before anything is read
	scope string // of the cursors
	// key returns the sort key of a row, which cursors contain. Without it, there is no other page.
	key func(*T) string
	// find returns up to n rows after a key. If it examined db.MaxExamined rows before it found n, it also returns the key
	// of the last of these.
	find func(ctx context.Context, after string, n int) (rows []T, examined string, err error)
	// read is for lists without find. It returns up to n rows after last, which is nil at first. If it stopped before it found n rows or
	// the end, it also returns the nextCursor of the page. A page then ends there; an export calls read
	// again with last nil, and continues there.
	read readPage[T]
	// elements returns the JSON value of each row.
	elements func(ctx context.Context, rows []T) ([]any, error)
	// cursor returns the page's nextCursor, or "". If more is set, there are rows after last, which is nil
	// on an empty page. It is nil for lists with find.
	cursor func(last *T, more bool) string
	// rest is further members of the response, such as ,"truncated":true.
	rest string
	// table is the list's columns as CSV; nil if there is no such form.
	table *table[T]

	limit int // of elements
}

// readPage reads rows of a page.
type readPage[T any] func(ctx context.Context, last *T, n int) (rows []T, stopped string, err error)

// elementsOf returns a listing's elements for rows that are converted one by one.
func elementsOf[T, E any](convert func(T) E) func(context.Context, []T) ([]any, error) {
	return func(_ context.Context, rows []T) ([]any, error) {
		return db.Each(rows, func(row T) any { return convert(row) }), nil
	}
}

// all returns rows that were found without leaving out examined ones.
func all[T any](rows []T, err error) ([]T, string, error) { return rows, "", err }

// prepared returns the page with read and cursor, or an error of the request.
func (l listing[T]) prepared() (listing[T], error) {
	after := ""
	if l.find != nil {
		after = l.query.cursor(l.scope)
		l.cursor = descendingCursor(l.scope, l.key)
		l.read = func(ctx context.Context, last *T, n int) ([]T, string, error) {
			if last != nil && l.key != nil {
				after = l.key(last)
			}
			rows, examined, err := l.find(ctx, after, n)
			after = cmp.Or(examined, after)
			return rows, stoppedCursor(l.scope, examined), db.During("list "+l.name, err)
		}
	}
	read := l.read
	l.read = func(ctx context.Context, last *T, n int) ([]T, string, error) {
		if l.query.none {
			return nil, "", nil
		}
		return read(ctx, last, n)
	}
	l.limit = l.query.limit()
	return l, l.query.err
}

// serve answers with the page. It returns an error if it fails before the first byte; after that, it
// aborts the connection.
func (l listing[T]) serve(a *API, w http.ResponseWriter, r *http.Request) error {
	if l.table != nil {
		w.Header().Add("Vary", "Accept")
	}
	l, err := l.prepared()
	if err != nil {
		return err
	}
	format, export := l.parseFormat(r)
	if l.query.err != nil {
		return l.query.err
	}
	if export {
		return l.serveCSV(a, w, r, format)
	}
	leave, err := a.pages.enter(r.Context())
	if err != nil {
		return err
	}
	defer leave()
	out := &pageWriter{w: w, r: r, rest: l.rest}
	err = l.write(r.Context(), out)
	if err == nil {
		return nil
	}
	if !out.begun {
		return err
	}
	level := a.conf.Logger.ErrorContext
	if out.gone {
		level = a.conf.Logger.DebugContext
	}
	level(r.Context(), "answer cut off", "method", r.Method, "path", access.Redact(r.URL.Path), "err", err)
	panic(http.ErrAbortHandler) // so that the client does not take the page for complete
}

func (l listing[T]) write(ctx context.Context, out *pageWriter) error {
	out.text(`{"`, l.name, `":[`)
	var last *T
	total, written, n := 0, 0, firstRows
	for {
		// One row more than the limit shows whether there are more.
		n = min(n, l.limit+1-written)
		rows, elements, stopped, err := l.part(ctx, last, n)
		if err != nil {
			return err
		}
		size := 0
		for i, element := range elements {
			text, err := apiconv.JSON(element)
			if err != nil {
				return fmt.Errorf("encode a page: %w", err)
			}
			if written == l.limit || total+len(text) > MaxPageBytes && written > 0 {
				return out.end(l.cursor(last, true))
			}
			if err := out.element(text, written == 0); err != nil {
				return err
			}
			size += len(text) + 1
			total += len(text) + 1
			written++
			last = &rows[i]
		}
		if len(rows) < n {
			return out.end(cmp.Or(stopped, l.cursor(last, false)))
		}
		n = max(1, min(maxRows, n*pageBuffer/max(1, size)))
	}
}

// part reads the rows and elements of one part, with a deadline that does not depend on how fast the client reads.
func (l listing[T]) part(ctx context.Context, last *T, n int) (rows []T, elements []any, stopped string, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), RequestTimeout)
	defer cancel()
	rows, stopped, err = l.read(ctx, last, n)
	if err != nil {
		return nil, nil, "", err
	}
	elements, err = l.elements(ctx, rows)
	return rows, elements, stopped, err
}

// pageWriter writes a response in parts of pageBuffer. A response of a single part has a Content-Length.
type pageWriter struct {
	bytes.Buffer
	w     http.ResponseWriter
	r     *http.Request
	body  *webpage.Stream // nil until the first part is sent, unless it is the last
	rest  string          // members that end the response
	begun bool            // something was written
	gone  bool            // a write has failed
}

// element writes an element, after a comma unless it is the first.
func (p *pageWriter) element(text []byte, first bool) error {
	if !first {
		p.text(",")
	}
	p.Write(text)
	return p.flush()
}

func (p *pageWriter) text(parts ...string) {
	for _, part := range parts {
		p.WriteString(part)
	}
}

// flush writes the buffer if it is full.
func (p *pageWriter) flush() error {
	if p.Len() < pageBuffer {
		return nil
	}
	return p.send()
}

// send sends the buffer, if it is not the last part.
func (p *pageWriter) send() error {
	if !p.begun {
		p.begun = true
		p.w.Header().Set("Content-Type", "application/json")
		p.body = webpage.NewStream(p.w, p.r, true)
		p.w.WriteHeader(http.StatusOK)
	}
	_, err := p.body.Write(p.Bytes())
	p.gone = err != nil
	p.Reset()
	return err
}

// end writes the rest of the response.
func (p *pageWriter) end(cursor string) error {
	p.text("]")
	if cursor != "" {
		p.text(`,"nextCursor":`, strconv.Quote(cursor)) // a cursor is ASCII
	}
	p.text(p.rest, "}")
	if !p.begun {
		p.begun = true
		err := webpage.SendData(p.w, p.r, http.StatusOK, "application/json", p.Bytes())
		p.gone = err != nil
		return err
	}
	err := p.send()
	if err == nil {
		err = p.body.Close()
		p.gone = err != nil
	}
	return err
}
