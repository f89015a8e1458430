package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
)

// Start is the input of Remember when a replica starts.
type Start struct {
	Configured chain.ConfiguredChains
	Now        time.Time
	Replica    string    // a random id of the replica; empty if the database has only one
	Scheduled  time.Time // by the schedule's clock, by which replicas note that they run
	// Plan makes Remember compare only, without changes.
	Plan bool
	// Force makes the configuration the newest revision although it is an earlier one and other replicas run.
	Force bool
}

// RevisionTTL is how long a replica counts as running after its last note.
const RevisionTTL = 5 * time.Second

// ReturnedError is the error of a start with the configuration of an earlier revision while others run a newer one.
type ReturnedError struct{ Newest int64 }

// Error explains what to do.
func (e *ReturnedError) Error() string {
	return fmt.Sprintf("this configuration is that of an earlier revision, and other replicas run revision %d, which is newer. "+
		"If theirs is the current one, start with that. If this one is, run quittance config apply --config FILE --yes: the others then stop their work. "+
		"If all replicas were stopped, start again in %s", e.Newest, RevisionTTL)
}

// errPlanned is returned to roll back a transaction that only made a plan.
var errPlanned = errors.New("planned")

// Remember compares the configuration with the recorded one, and applies the difference. It returns the new record, and
// the changes. It must run before blocks are read and invoices created: with Plan before the components are built, and
// without it after everything else that can fail, because it stops replicas with another configuration. If it fails
// with a *chain.RefusedError or a *ReturnedError, it has made no change.
func Remember(ctx context.Context, store *db.DB, start Start) (after chain.RememberedChains, changes []chain.ConfigChange, err error) {
	ctx = access.WithOrigin(ctx, access.Origin{Actor: access.ActorConfig})
	var number int64
	err = store.Update(ctx, func(tx *db.Tx) error {
		if err := tx.LockConfiguration(ctx); err != nil {
			return err
		}
		was, err := Remembered(ctx, tx)
		if err != nil {
			return err
		}
		if changes = chain.CompareConfigured(was, start.Configured); chain.RefuseChanges(changes) != nil {
			return chain.RefuseChanges(changes)
		}
		revision, raised, err := nextRevision(ctx, tx, start)
		if err != nil {
			return err
		}
		if number, after = revision.Number, was; raised {
			if after, err = applyRevision(ctx, tx, was, start, revision); err != nil {
				return err
			}
			if err := access.AppendAudit(ctx, tx, revisionEntry(ctx, start.Now, revision, changes)); err != nil {
				return err
			}
		}
		return start.finish(ctx, tx, number)
	})
	if err != nil && !errors.Is(err, errPlanned) {
		return after, changes, err
	}
	store.SetIDKeys(after.IDKeys())
	if !start.Plan {
		store.SetRevision(number)
	}
	return after, changes, nil
}

// finish records that the replica runs the revision. It returns errPlanned for a plan.
func (s Start) finish(ctx context.Context, tx *db.Tx, number int64) error {
	switch {
	case s.Plan:
		return errPlanned
	case s.Replica == "":
		return nil
	}
	return tx.RunRevision(ctx, s.Replica, number, s.Scheduled, s.Scheduled.Add(RevisionTTL))
}

// auditedRevision is a revision in the audit log.
type auditedRevision struct {
	Changes []string `json:"changes"`
}

// revisionEntry is the entry of the audit log about a new revision.
func revisionEntry(ctx context.Context, now time.Time, r chain.Revision, changes []chain.ConfigChange) access.Entry {
	texts := db.Each(changes, func(c chain.ConfigChange) string { return c.Text })
	return access.NewEntry(ctx, now, access.Change{Action: access.ActionConfigRevision, Object: fmt.Sprint(r.Number), After: auditedRevision{texts}})
}

// nextRevision returns the revision of a starting replica, and whether it is new.
func nextRevision(ctx context.Context, tx *db.Tx, start Start) (r chain.Revision, raised bool, err error) {
	hash := start.Configured.Hash()
	newest, err := tx.NewestRevision(ctx)
	if err != nil && !errors.Is(err, db.ErrNotFound) || newest.Hash == hash {
		return newest, false, err
	}
	returned, err := tx.WasRevision(ctx, hash)
	if err != nil {
		return r, false, err
	}
	if returned && !start.Force {
		others, err := tx.RevisionReplicas(ctx, newest.Number, start.Scheduled)
		if err != nil {
			return r, false, err
		}
		if others > 0 {
			return r, false, &ReturnedError{newest.Number}
		}
	}
	return chain.Revision{Number: newest.Number + 1, Hash: hash}, true, nil
}

// applyRevision stores a new revision. Blocks that a returning token missed are scheduled to be read again.
func applyRevision(ctx context.Context, tx *db.Tx, was chain.RememberedChains, start Start, r chain.Revision) (chain.RememberedChains, error) {
	keys := db.Each(start.Configured.Chains, func(c chain.Chain) string { return c.Key })
	cursors, err := lockBlocks(ctx, tx, keys)
	if err != nil {
		return was, err
	}
	indexed := make(map[string]uint64, len(cursors))
	for key, cur := range cursors {
		indexed[key] = cur.Indexed.Number
	}
	after, missed := chain.Apply(was, start.Configured, indexed)
	for key, from := range missed {
		cur := cursors[key]
		cur.ReadAgain(from)
		if err := SaveCursor(ctx, tx, key, cur); err != nil {
			return was, err
		}
	}
	if err := PutKnownChains(ctx, tx, after.Chains, start.Now); err != nil {
		return was, err
	}
	return after, tx.InsertRevision(ctx, r, start.Now)
}

// Differences returns how the configuration differs from the recorded one. It only reads.
func Differences(ctx context.Context, store *db.DB, chains []chain.Chain) ([]chain.ConfigChange, error) {
	was, err := Remembered(ctx, store)
	return chain.CompareConfigured(was, chain.ConfiguredChains{Chains: chains}), err
}
