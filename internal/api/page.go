package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/quittance/quittance/apitypes"
)

// Limits of what pages take of the memory.
const (
	// MaxPageBytes is the size at which a page ends, whatever its limit: its
	// elements come to no more than this.
	MaxPageBytes = 1 << 20
	// MaxPages is how many pages are served at a time. Each holds about
	// pageBuffer.
	MaxPages = 256
	// PageWait is how long a request waits for its turn, first come, first
	// served.
	PageWait = 5 * time.Second
	// pageBuffer is about how much of a page is held before it is written. Rows
	// are read in parts of about this size.
	pageBuffer = 64 << 10
	// firstRows and mostRows are how many rows are read first, and then at most.
	firstRows, mostRows = 4, 64
)

// pages bounds how many pages are served at a time.
type pages struct{ *semaphore.Weighted }

func newPages() pages { return pages{semaphore.NewWeighted(MaxPages)} }

// enter waits for a turn. It returns what ends it.
func (p pages) enter(ctx context.Context) (leave func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, PageWait)
	defer cancel()
	if err := p.Acquire(ctx, 1); err != nil {
		return nil, problemf(apitypes.CodeUnavailable, "Too many lists are being read at the same time; repeat the request later.")
	}
	return func() { p.Release(1) }, nil
}

// listing is a page of a list that is read and written part by part, so that
// neither many rows nor a slow reader hold much memory.
type listing[T any] struct {
	name  string // of the member that holds the elements
	limit int    // of the elements
	// read returns up to n rows behind the last one, which is nil at first.
	read func(ctx context.Context, last *T, n int) ([]T, error)
	// elements returns what is written of each row.
	elements func(ctx context.Context, rows []T) ([]any, error)
	// cursor returns the page's nextCursor: none when it is empty. more says that
	// there are rows behind the last one, which is nil on a page of none.
	cursor func(last *T, more bool) string
}

// serve answers with the page. It returns an error while nothing is written yet;
// afterwards one cuts the answer off.
func (l listing[T]) serve(a *API, w http.ResponseWriter, r *http.Request) error {
	leave, err := a.pages.enter(r.Context())
	if err != nil {
		return err
	}
	defer leave()
	out := &pageWriter{w: w}
	err = l.write(r.Context(), out)
	if err == nil {
		return nil
	}
	if !out.begun {
		return err
	}
	level := a.logger.ErrorContext
	if out.gone {
		level = a.logger.DebugContext
	}
	level(r.Context(), "answer cut off", "method", r.Method, "path", r.URL.Path, "err", err)
	panic(http.ErrAbortHandler) // the reader must not take it for a whole one
}

func (l listing[T]) write(ctx context.Context, out *pageWriter) error {
	out.text(`{"`, l.name, `":[`)
	var last *T
	total, written, n := 0, 0, firstRows
	for {
		// One more than the page may have says whether there is more.
		n = min(n, l.limit+1-written)
		rows, elements, err := l.part(ctx, last, n)
		if err != nil {
			return err
		}
		size := 0
		for i, element := range elements {
			text, err := json.Marshal(element)
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
			return out.end(l.cursor(last, false))
		}
		n = max(1, min(mostRows, n*pageBuffer/max(1, size)))
	}
}

// part reads rows and what is written of them. Each part has a deadline of its
// own: how fast the reader takes the ones before does not matter to it.
func (l listing[T]) part(ctx context.Context, last *T, n int) ([]T, []any, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), RequestTimeout)
	defer cancel()
	rows, err := l.read(ctx, last, n)
	if err != nil {
		return nil, nil, err
	}
	elements, err := l.elements(ctx, rows)
	return rows, elements, err
}

// pageWriter writes an answer in parts of pageBuffer. One that fits into a
// single part has a Content-Length.
type pageWriter struct {
	bytes.Buffer
	w     http.ResponseWriter
	begun bool // something was written
	gone  bool // the reader takes no more
}

// element writes an element of the list, with a comma before all but the first.
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

// flush writes what is held, if that is enough to write.
func (p *pageWriter) flush() error {
	if p.Len() < pageBuffer {
		return nil
	}
	return p.send()
}

func (p *pageWriter) send() error {
	if !p.begun {
		p.begun = true
		p.w.Header().Set("Content-Type", "application/json")
		p.w.WriteHeader(http.StatusOK)
	}
	_, err := p.w.Write(p.Bytes())
	p.gone = err != nil
	p.Reset()
	return err
}

// end writes the rest.
func (p *pageWriter) end(cursor string) error {
	p.text("]")
	if cursor != "" {
		p.text(`,"nextCursor":`, strconv.Quote(cursor)) // a cursor is plain ASCII
	}
	p.text("}")
	if !p.begun {
		p.w.Header().Set("Content-Length", strconv.Itoa(p.Len()))
	}
	return p.send()
}
