package access

import (
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"
)

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
