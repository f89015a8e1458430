package api

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/webhooks"
)

// position is a place in the logs, as cursors encode it. Its numbers belong to its timeline.
type position struct {
	timeline string // id; empty for the first one, as in cursors of versions without timelines
	root     string // id of the first timeline; empty with an empty timeline
	shared   int64  // last event that its timeline shares with the first one, of which it is not a part
	webhooks.Position
	removed int64 // its reader knows that events up to this number were removed
}

// key returns the position as the key of a cursor: [timeline/root.shared:]event[.change][~removed].
func (p position) key() string {
	text := strconv.FormatInt(p.Event, 10)
	if p.Change >= 0 {
		text += "." + strconv.FormatInt(p.Change, 10)
	}
	if p.timeline != "" {
		text = fmt.Sprintf("%s/%s.%d:%s", p.timeline, p.root, p.shared, text)
	}
	if p.removed > p.Event {
		text += "~" + strconv.FormatInt(p.removed, 10)
	}
	return text
}

// parsePosition returns the position in a cursor. Its Change is -1 if the cursor is not the id
// of a stream with deliveries. ok is false unless key returns the cursor's key.
func parsePosition(scope, cursor string) (p position, ok bool) {
	key, ok := parseCursor(scope, cursor)
	if !ok {
		return p, false
	}
	p, ok = parsePositionKey(key)
	return p, ok && p.key() == key
}

// parsePositionKey reads what key writes, and more.
func parsePositionKey(key string) (p position, ok bool) {
	ok = true
	number := func(text string) int64 {
		n, err := strconv.ParseInt(text, 10, 64)
		ok = ok && err == nil && n >= 0
		return n
	}
	timeline, rest, named := strings.Cut(key, ":")
	if p.Change = -1; !named {
		rest = key
	} else {
		var shared string
		p.timeline, timeline, _ = strings.Cut(timeline, "/")
		p.root, shared, _ = strings.Cut(timeline, ".")
		p.shared = number(shared)
		ok = ok && p.timeline != "" && p.root != ""
	}
	rest, removed, knows := strings.Cut(rest, "~")
	if knows {
		p.removed = number(removed)
	}
	event, change, both := strings.Cut(rest, ".")
	if p.Event = number(event); both {
		p.Change = number(change)
	}
	return p, ok
}

// history decides which positions can be continued.
type history struct{ webhooks.LogState }

// history reads it for a reader of the events of a merchant or, if that is empty, of all.
func (a *API) history(ctx context.Context, merchantID string) (history, error) {
	if merchantID != "" && !invoice.ValidMerchantID(merchantID) { // it has no events, and may not be valid in a database
		state, err := a.conf.Reader.LogState(ctx, "")
		state.Removed = 0
		return history{state}, err
	}
	state, err := a.conf.Reader.LogState(ctx, merchantID)
	return history{state}, err
}

func (h history) current() webhooks.Timeline { return h.Timelines[len(h.Timelines)-1] }

// since returns the numbers up to which the timelines from an index on share their logs with the one
// before them: MaxInt64 without such timelines.
func (h history) since(first int) (event, change int64) {
	event, change = math.MaxInt64, math.MaxInt64
	for _, t := range h.Timelines[first:] {
		event, change = min(event, t.LastSeq), min(change, t.LastAudit)
	}
	return event, change
}

// at returns a position on the current timeline.
func (h history) at(event, change, removed int64) position {
	p := position{Position: webhooks.Position{Event: event, Change: change}, removed: removed}
	if len(h.Timelines) > 1 { // in an upgrade, a replica of a version without timelines may get the cursor
		p.timeline, p.root = h.current().ID, h.Timelines[0].ID
		p.shared, _ = h.since(1)
	}
	return p
}

// start returns the position before the oldest event. Its reader does not expect removed events.
func (h history) start() position { return h.at(max(0, h.Oldest-1), -1, h.Removed) }

// Values of the member reason: why a cursor is gone.
const (
	goneRestored = "restored" // the log continues from a backup
	goneReplaced = "replaced" // this database never had the cursor's timeline
	goneRemoved  = "removed"  // retention removed events behind it
)

// branch returns the event and the change up to which a position's timeline and the current one are
// the same, and why they end there.
func (h history) branch(p position) (event, change int64, reason string) {
	for i, t := range h.Timelines {
		if t.ID == p.timeline || i == 0 && p.timeline == "" {
			event, change = h.since(i + 1)
			return event, change, goneRestored
		}
	}
	if p.root != h.Timelines[0].ID {
		return 0, 0, goneReplaced
	}
	// Both timelines began from the first one, and are the same up to the event where the first of them left it.
	if event, change = h.since(1); len(h.Timelines) == 1 {
		change = 0
	}
	return min(event, p.shared), change, goneReplaced
}

// move returns where a cursor continues on the current timeline. If other events follow there than its
// reader expects, the error is a problemError with the position from which to continue.
func (h history) move(scope string, p position) (position, error) {
	event, change, reason := h.branch(p)
	next := h.at(min(p.Event, event), min(p.Change, change), min(p.removed, event))
	if next.Event > h.Head { // the log has lost its end
		next.Event, next.Change = h.current().LastSeq, min(p.Change, h.current().LastAudit)
		event = next.Event
	}
	if p.Event <= event {
		return next, nil
	}
	if event == 0 { // from the beginning, whatever that is
		change := next.Change
		next = h.start()
		next.Change = change
	}
	return next, h.gone(scope, next, reason)
}

// resume is move for a reader of all events. It fails if retention has removed events after the position.
func (h history) resume(scope string, p position) (position, error) {
	next, err := h.move(scope, p)
	if err == nil && max(next.Event, next.removed) < h.Removed {
		next.Event, next.removed = max(next.Event, h.Oldest-1), h.Removed
		err = h.gone(scope, next, goneRemoved)
	}
	return next, err
}

// resumeBefore returns where a newest-first list continues: before a number. shared is the number up to which the logs
// are the same, and head is the newest number. Otherwise the error has a cursor to begin again at the newest element.
func (h history) resumeBefore(scope string, p position, shared, head int64, reason string) (int64, error) {
	if p.Event-1 > shared {
		return 0, h.gone(scope, h.at(head+1, -1, 0), reason)
	}
	return p.Event, nil
}

// gone returns the problem of a cursor.
func (h history) gone(scope string, next position, reason string) error {
	detail := "The database was restored from a backup at " + at(h.current().StartedAt) + ", and other events follow than those that were lost; some come again, with the ids that they had. Continue with after."
	switch {
	case reason == goneRestored && len(h.Timelines) == 1:
		detail = "The database lacks events up to this cursor: an older copy of it seems to have been put in its place. Continue with after; events may come again, with the ids that they had."
	case reason == goneReplaced:
		detail = "This cursor is of a database that was replaced by the current one, or by the backup that it was restored from. Continue with after; events may come again, with the ids that they had."
	case reason == goneRemoved && h.RemovedBefore.IsZero():
		detail = "Events behind this cursor were removed, because they were older than the service keeps them. Continue with after, at the oldest event that is kept."
	case reason == goneRemoved:
		detail = "Events behind this cursor were removed, because they were created before " + at(h.RemovedBefore) + ", and the service keeps only newer ones. Continue with after, at the oldest event that is kept."
	}
	return &problemError{code: apitypes.CodeCursorGone, after: formatCursor(scope, next.key()), reason: reason, detail: detail}
}

// at formats a time for a detail.
func at(t time.Time) string { return clock.Format(t, time.UTC, time.RFC3339) }

// A cursor contains the sort key of a page's last element, after a checksum of the key
// and the list's scope. So a cursor is valid only for its own list, and not after a
// change. The checksum is not a secret: a forged cursor gives no additional access.

// checksumSize is the length of a cursor's checksum, in bytes.
const checksumSize = 8

// formatCursor returns the cursor of the element with the key, in the list with the scope.
func formatCursor(scope, key string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "cursor 2 %q %q", scope, key))
	return base64.RawURLEncoding.EncodeToString(append(sum[:checksumSize], key...))
}

// parseCursor returns the key of a cursor. ok is false unless formatCursor returns the
// same cursor for the key and the scope.
func parseCursor(scope, cursor string) (key string, ok bool) {
	if len(cursor) > MaxCursor {
		return "", false
	}
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(text) <= checksumSize {
		return "", false
	}
	key = string(text[checksumSize:])
	return key, isVisibleASCII(key) && cursor == formatCursor(scope, key) // not every text is valid in a database
}
