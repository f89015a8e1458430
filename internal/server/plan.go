package server

import (
	"slices"

	"github.com/quittance/quittance/internal/db"
)

// plan is what a replica does in a round.
type plan struct {
	has        []string // that it keeps
	take, give []string
	free       map[string]bool // works without an owner
}

// makePlan returns the plan of a replica. It takes free work, unless a candidate with less work would
// take it: that one has a round's time. It gives up work that it is unable to do, if there is a
// candidate. In each round it also gives up one piece of work if a candidate would have less work than
// this replica even with that piece.
func makePlan(me string, works []string, states map[string]db.SharedWork, wasFree map[string]bool, unable []string) plan {
	p := plan{free: make(map[string]bool)}
	l := loads{me: me, of: make(map[string]int)}
	for _, state := range states {
		l.of[state.Holder]++
	}
	balanced := false
	for _, work := range works {
		state, isUnable := states[work], slices.Contains(unable, work)
		switch {
		case state.Holder == me && (isUnable && l.others(state) || !isUnable && !balanced && l.lighter(state, 2)):
			p.give = append(p.give, work)
			l.of[me]--
			balanced = balanced || !isUnable
		case state.Holder == me:
			p.has = append(p.has, work)
		case state.Holder == "":
			p.free[work] = true
			if l.takes(state, wasFree[work]) {
				p.take = append(p.take, work)
				l.of[me]++
			}
		}
	}
	return p
}

// loads is how many pieces of work each replica has.
type loads struct {
	me string
	of map[string]int
}

// others reports whether there is another candidate.
func (l loads) others(state db.SharedWork) bool {
	return slices.ContainsFunc(state.Candidates, func(c string) bool { return c != l.me })
}

// lighter reports whether another candidate has less work than this replica, by at least the given
// number.
func (l loads) lighter(state db.SharedWork, by int) bool {
	return slices.ContainsFunc(state.Candidates, func(c string) bool { return c != l.me && l.of[c] <= l.of[l.me]-by })
}

// takes reports whether this replica takes the free work.
func (l loads) takes(state db.SharedWork, wasFree bool) bool {
	if !slices.Contains(state.Candidates, l.me) {
		return len(state.Candidates) == 0
	}
	return wasFree || !l.lighter(state, 1)
}
