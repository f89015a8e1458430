package access

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Entry is an entry of the audit log: one change that a person, a key or the service made. Its hash
// covers all its fields and the hash of the entry before it.
type Entry struct {
	Seq int64     // 1 for the first entry; without gaps
	At  time.Time // in whole seconds
	Origin
	// MerchantID is the merchant that may read the entry. It is empty if only the operator may.
	MerchantID string
	Action     Action
	Object     string // identifier of the changed object
	// Before and After are JSON without secrets, of at most MaxChange bytes. They are empty for changes
	// without content.
	Before, After string
	Prev          EntryHash // of the entry before; zero for the first entry
	Hash          EntryHash // SHA-256 of Encoding
}

// EntryHash is the hash of an entry.
type EntryHash [sha256.Size]byte

// String returns the hash in lower-case hex.
func (h EntryHash) String() string { return hex.EncodeToString(h[:]) }

// ParseEntryHash parses 64 lower-case hex digits.
func ParseEntryHash(text string) (h EntryHash, err error) {
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != len(h) || text != strings.ToLower(text) {
		return h, fmt.Errorf("%.80q is not a SHA-256 hash in lower-case hex", text)
	}
	return EntryHash(raw), nil
}

// Origin is who asked for a change, and from where.
type Origin struct {
	Actor     string // id of a key, or one of the other actors
	Client    string // address of the client; empty for commands
	RequestID string // empty for commands
}

// Actors that are not keys. A command's actor is ActorCommand and the user's name.
const (
	ActorConfig  = "config" // the service's configuration
	ActorOpen    = "open"   // a caller of an API that is open to all
	ActorService = "service"
	ActorCommand = "cli:"
)

// Action is the kind of a change.
type Action string

// IsOfAccess reports whether the action is about keys and sessions, which no open page shows.
func (a Action) IsOfAccess() bool {
	return strings.HasPrefix(string(a), "key.") || strings.HasPrefix(string(a), "session.")
}

// Actions.
const (
	ActionKeyCreate         Action = "key.create"
	ActionKeyRotate         Action = "key.rotate"
	ActionKeyRevoke         Action = "key.revoke"
	ActionSessionBegin      Action = "session.begin"
	ActionSessionEnd        Action = "session.end"
	ActionSignInLink        Action = "session.link"
	ActionInvite            Action = "person.invite"
	ActionUninvite          Action = "person.uninvite"
	ActionAccountAdd        Action = "account.add"
	ActionAccountRemove     Action = "account.remove"
	ActionPasskeyAdd        Action = "passkey.add"
	ActionPasskeyRemove     Action = "passkey.remove"
	ActionMerchantCreate    Action = "merchant.create"
	ActionMerchantUpdate    Action = "merchant.update"
	ActionMerchantRetire    Action = "merchant.retire"
	ActionMerchantResume    Action = "merchant.resume"
	ActionAllowList         Action = "merchant.allowlist"
	ActionPendingDrop       Action = "merchant.pending.drop"
	ActionAddressLost       Action = "merchant.address.lost"
	ActionAddressRelease    Action = "merchant.address.release"
	ActionLinkCreate        Action = "link.create"
	ActionLinkUpdate        Action = "link.update"
	ActionLinkArchive       Action = "link.archive"
	ActionInvoiceVoid       Action = "invoice.void"
	ActionInvoiceDelete     Action = "invoice.delete"
	ActionCustomerErase     Action = "customer.erase"
	ActionCustomerErased    Action = "customer.erased"
	ActionEndpointUpdate    Action = "endpoint.update"
	ActionSecretStage       Action = "endpoint.secret.stage"
	ActionSecretPromote     Action = "endpoint.secret.promote"
	ActionSecretDrop        Action = "endpoint.secret.drop"
	ActionSecretConfirm     Action = "secret.confirm"
	ActionSecretsReseal     Action = "secrets.reseal"
	ActionSecretsReplace    Action = "secrets.replace"
	ActionAttributionAssign Action = "attribution.assign"
	ActionRefundPrepare     Action = "refund.prepare"
	ActionRefundApprove     Action = "refund.approve"
	ActionRefundCancel      Action = "refund.cancel"
	ActionRefundSubmit      Action = "refund.submit"
	ActionRefundWithdraw    Action = "refund.withdraw"
	ActionInboxDecide       Action = "inbox.decide"
	ActionInboxUndo         Action = "inbox.undo"
	ActionEventRedeliver    Action = "event.redeliver"
	ActionChainRescan       Action = "chain.rescan"
	ActionChainResume       Action = "chain.resume"
	ActionUnreadRetry       Action = "transaction.retry"
	ActionUnreadDismiss     Action = "transaction.dismiss"
	ActionRegistryAdd       Action = "registry.add"
	ActionRecoveryBegin     Action = "recovery.begin"
	ActionRecoveryEnd       Action = "recovery.end"
	ActionRecoveryTransfer  Action = "recovery.transfer"
	ActionRecoveryDismiss   Action = "recovery.dismiss"
	ActionConfigRevision    Action = "config.revision"
	ActionTokenRetire       Action = "token.retire"
	ActionChainRetire       Action = "chain.retire"
	ActionChainRename       Action = "chain.rename"
	ActionDepositSweep      Action = "deposit.sweep"
	ActionDepositSwept      Action = "deposit.swept"
	ActionAuditArchive      Action = "audit.archive"
	ActionMerchantQuotas    Action = "merchant.quotas"
	ActionApprovalPolicy    Action = "approval.policy"
	ActionApprovalRequest   Action = "approval.request"
	ActionApprovalApprove   Action = "approval.approve"
	ActionApprovalRefuse    Action = "approval.refuse"
	ActionApprovalUse       Action = "approval.use"
)

// Limits of an entry's fields, in bytes.
const (
	MaxChange    = 8 << 10 // Before and After
	MaxEntryText = 200     // every other text
)

// encodingName begins the encoding of every entry.
const encodingName = "quittance-audit-1"

// Encoding returns the bytes that Hash covers: encodingName, Seq, At in Unix seconds, Actor, Client, RequestID,
// MerchantID, Action, Object, Before, After and Prev in lower-case hex. Each is preceded by its length in bytes, a
// big-endian integer of 4 bytes. Numbers are decimal.
func (e Entry) Encoding() []byte {
	var out []byte
	for _, field := range []string{
		encodingName, strconv.FormatInt(e.Seq, 10), strconv.FormatInt(e.At.Unix(), 10),
		e.Actor, e.Client, e.RequestID, e.MerchantID, string(e.Action), e.Object, e.Before, e.After, e.Prev.String(),
	} {
		out = binary.BigEndian.AppendUint32(out, uint32(len(field)))
		out = append(out, field...)
	}
	return out
}

// Following returns e as the entry that follows a head, with its hash.
func (e Entry) Following(head Head) Entry {
	e.Seq, e.Prev = head.Seq+1, head.Hash
	e.Hash = sha256.Sum256(e.Encoding())
	return e
}

// Change is a change for NewEntry. Before and After are marshaled to JSON; nil means that
// the object does not exist. They must hold no secrets.
type Change struct {
	MerchantID    string
	Action        Action
	Object        string
	Before, After any
}

// NewEntry returns the entry of a change that is made at a time on behalf of the origin
// that ctx carries. It has no number and no hash yet.
func NewEntry(ctx context.Context, at time.Time, c Change) Entry {
	o := OriginFrom(ctx)
	return Entry{
		At:         at.UTC().Truncate(time.Second),
		Origin:     Origin{Actor: entryText(o.Actor), Client: entryText(o.Client), RequestID: entryText(o.RequestID)},
		MerchantID: c.MerchantID, Action: c.Action, Object: entryText(c.Object),
		Before: changeText(c.Before), After: changeText(c.After),
	}
}

// NewAddressLost returns the entry for a merchant that loses its claim to a settlement address because
// the operator gave the address to another merchant.
func NewAddressLost(ctx context.Context, at time.Time, merchantID, address string) Entry {
	return NewEntry(ctx, at, Change{
		MerchantID: merchantID, Action: ActionAddressLost, Object: merchantID, Before: map[string]string{"address": address},
	})
}

// entryText returns a text without control characters, cut to MaxEntryText.
func entryText(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return utf8.RuneError
		}
		return r
	}, text) // replaces invalid UTF-8, too
	if len(text) <= MaxEntryText {
		return text
	}
	cut := MaxEntryText
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut]
}

// omitted replaces a value with JSON that is too long or cannot be made.
type omitted struct {
	Omitted string `json:"omitted"`          // why
	Bytes   int    `json:"bytes,omitempty"`  // length of the JSON
	SHA256  string `json:"sha256,omitempty"` // of the JSON
}

// changeText returns the JSON of a value, or "" for nil. It replaces a text longer than MaxChange by its hash.
func changeText(v any) string {
	if v == nil {
		return ""
	}
	text, err := json.Marshal(v)
	if err == nil && len(text) <= MaxChange {
		return string(text)
	}
	short := omitted{Omitted: "cannot be encoded"}
	if err == nil {
		sum := sha256.Sum256(text)
		short = omitted{"too long", len(text), hex.EncodeToString(sum[:])}
	}
	text, _ = json.Marshal(short) // cannot fail
	return string(text)
}

type originKey struct{}

// WithOrigin returns a context for changes of the origin. Its actor may be empty if the context carries a principal.
func WithOrigin(ctx context.Context, o Origin) context.Context {
	return context.WithValue(ctx, originKey{}, o)
}

// OriginFrom returns the origin that ctx carries. Without an actor, that is the principal
// of ctx, or the service itself.
func OriginFrom(ctx context.Context) Origin {
	o, _ := ctx.Value(originKey{}).(Origin)
	if o.Actor != "" {
		return o
	}
	switch p := FromContext(ctx); {
	case p.KeyID != "":
		o.Actor = p.KeyID
	case p.Scopes != 0:
		o.Actor = ActorOpen
	default:
		o.Actor = ActorService
	}
	return o
}
