package access

import (
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Head is the number and the hash of the newest entry of an audit log. Stored elsewhere, it shows later whether entries
// up to it were changed or removed. It is zero for an empty log.
type Head struct {
	Seq  int64
	Hash EntryHash
}

// String returns SEQ:HASH.
func (h Head) String() string { return fmt.Sprint(h.Seq, ":", h.Hash) }

// ParseHead parses what String returns.
func ParseHead(text string) (h Head, err error) {
	seq, hash, _ := strings.Cut(text, ":")
	if h.Seq, err = strconv.ParseInt(seq, 10, 64); err == nil {
		h.Hash, err = ParseEntryHash(hash)
	}
	if err != nil || h.Seq < 0 || text != h.String() || (h.Seq == 0) != (h.Hash == EntryHash{}) {
		return Head{}, fmt.Errorf("%.100q is not the head of an audit log; want SEQ:HASH", text)
	}
	return h, nil
}

// Damage is the kind of a fault of an audit log.
type Damage string

// Kinds of damage.
const (
	Changed   Damage = "changed"   // a field or the hash of the entry
	Removed   Damage = "removed"   // the entry
	Reordered Damage = "reordered" // the entry had another number
	Truncated Damage = "truncated" // the entry and all after it are removed
	Rewritten Damage = "rewritten" // the entry is not the one that a head names
	Added     Damage = "added"     // the entry follows the log's stored head, or precedes its first entry
)

// FaultError is the first fault of an audit log.
type FaultError struct {
	Seq    int64  `json:"seq"` // of the first bad entry
	Damage Damage `json:"damage"`
	Detail string `json:"detail"`
}

// Error returns a sentence about the fault.
func (f *FaultError) Error() string {
	return fmt.Sprintf("entry %d of the audit log was %s: %s", f.Seq, f.Damage, f.Detail)
}

// Verifier checks the entries of an audit log, one after the other from the first.
type Verifier struct {
	last  Head
	heads []Head // that are not reached
}

// NewVerifier returns a Verifier that also requires the entries that the heads name.
func NewVerifier(heads ...Head) *Verifier { return &Verifier{heads: heads} }

// ArchivedError is the error of a head with an entry that is no longer in the log.
type ArchivedError struct{ Head Head }

// Error names the head.
func (e *ArchivedError) Error() string {
	return fmt.Sprintf("entry %d of the audit log is archived; the head %s can be checked with the archive", e.Head.Seq, e.Head)
}

// StartAt makes the verification begin after an archived entry. The error is an *ArchivedError for a
// head before it, and a *FaultError for a different head with its number.
func (v *Verifier) StartAt(archived Head) error {
	for _, h := range v.heads {
		switch {
		case h.Seq < archived.Seq:
			return &ArchivedError{h}
		case h.Seq == archived.Seq && h.Hash != archived.Hash:
			return &FaultError{h.Seq, Rewritten, fmt.Sprintf("the checkpoint says %s, and the head says %s", archived.Hash, h.Hash)}
		}
	}
	v.last = archived
	return nil
}

// Head returns the head of the entries that were checked.
func (v *Verifier) Head() Head { return v.last }

// maxMove is how far from its number Next searches for the original number of a reordered entry.
const maxMove = 1000

// Next checks the next entry. The error is a *FaultError.
func (v *Verifier) Next(e Entry) error {
	want := v.last.Seq + 1
	switch {
	case e.Seq > want:
		return &FaultError{want, Removed, fmt.Sprintf("the next entry is %d", e.Seq)}
	case e.Seq < want:
		return &FaultError{e.Seq, Added, fmt.Sprintf("entry %d is expected there", want)}
	}
	if e.Hash != sha256.Sum256(e.Encoding()) {
		if was, ok := originalSeq(e); ok {
			return &FaultError{e.Seq, Reordered, fmt.Sprintf("its hash is that of entry %d", was)}
		}
		return &FaultError{e.Seq, Changed, "its fields do not have its hash"}
	}
	if e.Prev != v.last.Hash {
		return &FaultError{max(1, v.last.Seq), Changed, fmt.Sprintf("entry %d was written after one with another hash", e.Seq)}
	}
	v.last = Head{Seq: e.Seq, Hash: e.Hash}
	for _, h := range v.heads {
		if h.Seq == e.Seq && h.Hash != e.Hash {
			return &FaultError{e.Seq, Rewritten, fmt.Sprintf("its hash is %s, and the head says %s", e.Hash, h.Hash)}
		}
	}
	return nil
}

// originalSeq returns the number with which the entry has its hash.
func originalSeq(e Entry) (int64, bool) {
	moved := e
	for seq := max(1, e.Seq-maxMove); seq <= e.Seq+maxMove; seq++ {
		moved.Seq = seq
		if e.Hash == sha256.Sum256(moved.Encoding()) {
			return seq, true
		}
	}
	return 0, false
}

// End checks that the entries reach all heads, and do not pass the stored head that is
// read after the last entry. The error is a *FaultError.
func (v *Verifier) End(stored Head) error {
	for _, h := range append(v.heads, stored) {
		if h.Seq > v.last.Seq {
			return &FaultError{v.last.Seq + 1, Truncated, fmt.Sprintf("the log ended at entry %d", h.Seq)}
		}
	}
	if stored.Seq < v.last.Seq {
		return &FaultError{stored.Seq + 1, Added, fmt.Sprintf("the log's head is entry %d", stored.Seq)}
	}
	return nil
}

// Checkpoint is the entry up to which an audit log was archived. Verification continues from there.
type Checkpoint struct {
	Head    Head      // the last entry that was archived
	At      time.Time // when it was made, in whole seconds
	Archive [sha256.Size]byte
	// PublicKey and Signature are a signature of Text by the service's master key.
	PublicKey ed25519.PublicKey
	Signature []byte
}

// Text returns the text that the signature of the checkpoint covers.
func (c Checkpoint) Text() []byte {
	return fmt.Appendf(nil, "quittance-audit-checkpoint-1\n%s\n%d\n%x\n", c.Head, c.At.Unix(), c.Archive)
}

// ErrUnsigned means that a checkpoint of the audit log cannot be verified, because there is no master key.
var ErrUnsigned = errors.New("the audit log has a checkpoint, and no master key is configured that could verify it")

// Signed returns the checkpoint with a signature.
func (c Checkpoint) Signed(by *Keyring) Checkpoint {
	c.PublicKey, c.Signature = by.Sign(c.Text())
	return c
}

// Verify returns an error unless the signer, which may be nil, verifies the checkpoint.
func (c Checkpoint) Verify(by *Keyring) error {
	if by == nil {
		return ErrUnsigned
	}
	if err := by.Verify(c.PublicKey, c.Text(), c.Signature); err != nil {
		return fmt.Errorf("the checkpoint at entry %d of the audit log: %w", c.Head.Seq, err)
	}
	return nil
}
