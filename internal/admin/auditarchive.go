package admin

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/apiconv"
	"github.com/quittance/quittance/internal/db"
)

const (
	// MinArchiveAge is how old an entry of the audit log must be to be archived: streams of redelivered
	// events continue from newer ones. An entry dated less than this from now, in either direction, ends
	// an archive.
	MinArchiveAge = 24 * time.Hour
	// maxYounger bounds how many entries in a row that are not older than the given time are archived
	// because an older one follows. Such entries were written while a clock was ahead, or the older one
	// while it was behind.
	maxYounger = 20
	// archiveBatch is how many entries are read, and deleted, at a time.
	archiveBatch = 1000
	// maxArchiveLine bounds a line of an archive, in bytes. An entry has two texts of 8 KiB, which
	// JSON may make six times as long.
	maxArchiveLine = 256 << 10
)

// Errors of ArchiveAudit.
var (
	ErrNothingToArchive = errors.New("no entry of the audit log is that old")
	ErrArchiveAge       = fmt.Errorf("entries of the last %d hours stay in the audit log", MinArchiveAge/time.Hour)
)

// ArchiveAudit writes the oldest entries of the audit log to a file, one as JSON on each line. It ends
// after the last entry that is older than the given time; entries that were written while a clock was ahead
// do not end it, up to maxYounger in a row. Then it stores a checkpoint, which the
// keyring signs, and deletes the entries. It is safe while a service runs. If it stops after it stored
// the checkpoint, the next call deletes the remaining entries.
func ArchiveAudit(ctx context.Context, database string, k *access.Keyring, before time.Time, file string) (made access.Checkpoint, entries int64, err error) {
	if time.Since(before) < MinArchiveAge {
		return made, 0, ErrArchiveAge
	}
	err = WithStore(ctx, database, func(store *db.DB) error {
		if err := deleteArchived(ctx, store); err != nil {
			return err
		}
		if made, entries, err = writeArchive(ctx, store, k, before, file); err != nil {
			return err
		}
		made.At = time.Now().UTC().Truncate(time.Second)
		made = made.Signed(k)
		err := store.Update(ctx, func(tx *db.Tx) error {
			if err := access.InsertAuditCheckpoint(ctx, tx, made); err != nil {
				return err
			}
			return access.AppendAudit(ctx, tx, access.NewEntry(ctx, made.At, access.Change{
				Action: access.ActionAuditArchive, Object: made.Head.String(), After: auditedArchive{entries, fmt.Sprintf("%x", made.Archive)},
			}))
		})
		if err != nil {
			return fmt.Errorf("store the checkpoint; the file %s can be removed: %w", file, err)
		}
		return deleteArchived(ctx, store)
	})
	return made, entries, err
}

// auditedArchive is the form of an archive in the audit log.
type auditedArchive struct {
	Entries int64  `json:"entries"`
	SHA256  string `json:"sha256"`
}

// deleteArchived deletes the archived entries, in short transactions.
func deleteArchived(ctx context.Context, store *db.DB) error {
	for {
		n, err := access.DeleteArchivedAudit(ctx, store, archiveBatch)
		if err != nil {
			return fmt.Errorf("delete archived entries: %w", err)
		}
		if n < archiveBatch {
			return access.RecountAudit(ctx, store)
		}
	}
}

// writeArchive writes entries to a file, which must not exist, and returns the checkpoint after them
// without a time and a signature. It verifies each entry first.
func writeArchive(ctx context.Context, store *db.DB, k *access.Keyring, before time.Time, file string) (made access.Checkpoint, entries int64, err error) {
	checkpoints, err := access.AuditCheckpoints(ctx, store)
	if err != nil {
		return made, 0, err
	}
	v := access.NewVerifier()
	if n := len(checkpoints); n > 0 {
		if err := errors.Join(checkpoints[n-1].Verify(k), v.StartAt(checkpoints[n-1].Head)); err != nil {
			return made, 0, err
		}
	}
	const mode = 0o600
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return made, 0, err
	}
	sum := sha256.New()
	buffered := bufio.NewWriter(io.MultiWriter(out, sum))
	entries, err = writeEntries(ctx, store, v, before, json.NewEncoder(buffered))
	if err == nil && entries == 0 {
		err = ErrNothingToArchive
	}
	if err = errors.Join(err, buffered.Flush(), out.Sync(), out.Close()); err != nil {
		return made, 0, errors.Join(err, os.Remove(file))
	}
	made.Head = v.Head()
	copy(made.Archive[:], sum.Sum(nil))
	return made, entries, nil
}

// writeEntries writes the next entries, up to the last one that is older than a time. It stops at
// maxYounger entries in a row that are not older, and at an entry of the last MinArchiveAge.
func writeEntries(ctx context.Context, store *db.DB, v *access.Verifier, before time.Time, to *json.Encoder) (n int64, err error) {
	var younger []access.Entry // since the last written one
	now := time.Now()
	for after := v.Head().Seq; ; {
		page, err := access.AuditPage(ctx, store, after, archiveBatch)
		if err != nil {
			return n, err
		}
		for _, e := range page {
			after, younger = e.Seq, append(younger, e)
			if !e.At.Before(before) {
				if len(younger) > maxYounger || now.Sub(e.At).Abs() <= MinArchiveAge {
					return n, nil
				}
				continue
			}
			if err := writeAll(v, younger, to); err != nil {
				return n, err
			}
			n += int64(len(younger))
			younger = younger[:0]
		}
		if len(page) < archiveBatch {
			return n, nil
		}
	}
}

// writeAll verifies and writes entries.
func writeAll(v *access.Verifier, entries []access.Entry, to *json.Encoder) error {
	for _, e := range entries {
		if err := errors.Join(v.Next(e), to.Encode(apiconv.AuditEntry(e))); err != nil {
			return err
		}
	}
	return nil
}

// readArchives returns the entries in files, one after the other.
func readArchives(files []string) iter.Seq2[access.Entry, error] {
	return func(yield func(access.Entry, error) bool) {
		for _, file := range files {
			if err := readArchive(file, yield); err != nil {
				if !errors.Is(err, errEnough) {
					yield(access.Entry{}, fmt.Errorf("archive %s: %w", file, err))
				}
				return
			}
		}
	}
}

// errEnough is the error of a reader that needs no more.
var errEnough = errors.New("enough")

func readArchive(file string, yield func(access.Entry, error) bool) (err error) {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxArchiveLine)
	for lines.Scan() {
		var line apitypes.AuditEntry
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return err
		}
		e, err := apiconv.ParseAuditEntry(line)
		if err != nil {
			return err
		}
		if !yield(e, nil) {
			return errEnough
		}
	}
	return lines.Err()
}

// SignCheckpoints signs the checkpoints of the audit log with the keyring's newest key. It fails for a
// checkpoint with a signature that no key of the keyring verifies. If keyLost is set, it signs such
// checkpoints too, and counts them as unverified.
func SignCheckpoints(ctx context.Context, store *db.DB, k *access.Keyring, keyLost bool) (unverified int, err error) {
	err = store.Update(ctx, func(tx *db.Tx) error {
		unverified = 0
		all, err := access.AuditCheckpoints(ctx, tx)
		if err != nil {
			return err
		}
		for _, c := range all {
			if err := c.Verify(k); keyLost && errors.Is(err, access.ErrNoKey) {
				unverified++
			} else if err != nil {
				return err
			}
			if err := access.SignAuditCheckpoint(ctx, tx, c.Signed(k)); err != nil {
				return err
			}
		}
		return nil
	})
	return unverified, err
}
