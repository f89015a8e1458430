package webhooks

import (
	"context"
	"time"

	"github.com/quittance/quittance/internal/db"
)

// clockSkew is how much the order of events' numbers may differ from the order of their times:
// replicas' clocks differ, and an event is made before it is committed.
const clockSkew = 5 * time.Minute

// timePoints is the number of events that one step of a search by time looks at.
const timePoints = 64

// seqsCreated returns bounds of the numbers of events that were created in a span: the numbers are
// above the first bound and, unless it is 0, not above the second.
func seqsCreated(ctx context.Context, q db.Querier, created db.Span) (after, through int64, err error) {
	if !created.From.IsZero() {
		if after, _, err = seqsAt(ctx, q, created.From.Add(-clockSkew), false); err != nil {
			return 0, 0, err
		}
	}
	if created.To.IsZero() {
		return after, 0, nil
	}
	_, behind, err := seqsAt(ctx, q, created.To.Add(clockSkew), true)
	if behind != 0 {
		through = max(1, behind-1) // 0 would be no bound
	}
	return after, through, err
}

// seqsAt returns the numbers of two successive events: the first was created before a time, the second was not. They
// are 0 if there are no such events. It returns the first such events, or the last ones: no earlier, or later, event
// among those it looks at was created on the other side, as an event with a wrong date may be.
func seqsAt(ctx context.Context, q db.Querier, at time.Time, last bool) (before, from int64, err error) {
	newest, err := NewReader(q).LastSeq(ctx)
	if err != nil {
		return 0, 0, err
	}
	type point struct{ seq, created int64 }
	for from = newest + 1; from-before > 1; {
		points, err := db.QueryAll(ctx, q, db.Fields(func(p *point) []any { return []any{&p.seq, &p.created} }), `WITH RECURSIVE points (n) AS (
				SELECT CAST($1 AS BIGINT) UNION ALL SELECT n + CAST($2 AS BIGINT) FROM points WHERE n + CAST($2 AS BIGINT) < CAST($3 AS BIGINT)
			) SELECT (SELECT min(seq) FROM events WHERE seq >= n), (SELECT created_at FROM events WHERE seq >= n ORDER BY seq LIMIT 1) FROM points ORDER BY n`,
			before+1, max(1, (from-before)/timePoints), from)
		if err != nil {
			return 0, 0, err
		}
		nextBefore, nextFrom := before, from
		for _, p := range points {
			if p.seq >= from || !last && nextFrom < from {
				break
			}
			if p.created < at.Unix() {
				nextBefore, nextFrom = p.seq, from
			} else if nextFrom == from {
				nextFrom = p.seq
			}
		}
		if nextBefore == before && nextFrom == from {
			break // no event is between them
		}
		before, from = nextBefore, nextFrom
	}
	if from > newest {
		from = 0
	}
	return before, from, nil
}
