package access_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/rowtest"
)

func drawEntry(t *rapid.T, name string) access.Entry {
	text := func(field string) string {
		return rapid.StringOfN(rapid.RuneFrom([]rune("ab\x001é")), 0, 4, -1).Draw(t, name+field)
	}
	return access.Entry{
		Seq: rapid.Int64Range(1, 30).Draw(t, name+"seq"), At: time.Unix(rapid.Int64Range(0, 30).Draw(t, name+"at"), 0),
		Origin:     access.Origin{Actor: text("actor"), Client: text("client"), RequestID: text("request")},
		MerchantID: text("merchant"), Action: access.Action(text("action")), Object: text("object"), Before: text("before"), After: text("after"),
		Prev: access.EntryHash{rapid.Byte().Draw(t, name+"prev")},
	}
}

// TestEncodingIsUnambiguous finds no two entries with the same encoding.
func TestEncodingIsUnambiguous(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawEntry(t, "a "), drawEntry(t, "b ")
		if same := bytes.Equal(a.Encoding(), b.Encoding()); same != (a == b) {
			t.Fatalf("%+v and %+v: the encoding is the same: %t", a, b, same)
		}
	})
}

// TestEncodingIsAsDocumented compares the hash with the example of docs/audit.md, because other programs depend on it.
func TestEncodingIsAsDocumented(t *testing.T) {
	e := access.Entry{
		At: time.Unix(1_764_000_000, 0), Origin: access.Origin{Actor: "cli:maria"},
		Action: access.ActionChainRescan, Object: "base", After: `{"from":1}`,
	}.Following(access.Head{})
	var want []byte
	for _, field := range []string{
		"\x00\x00\x00\x11quittance-audit-1", "\x00\x00\x00\x011", "\x00\x00\x00\x0a1764000000", "\x00\x00\x00\x09cli:maria",
		"\x00\x00\x00\x00", "\x00\x00\x00\x00", "\x00\x00\x00\x00", "\x00\x00\x00\x0cchain.rescan", "\x00\x00\x00\x04base",
		"\x00\x00\x00\x00", "\x00\x00\x00\x0a{\"from\":1}", "\x00\x00\x00\x40" + strings.Repeat("0", 64),
	} {
		want = append(want, field...)
	}
	if got := e.Encoding(); !bytes.Equal(got, want) {
		t.Errorf("the encoding is\n%q, want\n%q", got, want)
	}
	if sum := sha256.Sum256(want); e.Hash != sum || e.Hash.String() != hex.EncodeToString(sum[:]) || e.Seq != 1 {
		t.Errorf("entry %d has the hash %s", e.Seq, e.Hash)
	}
}

// TestNewEntry checks where the fields of an entry come from, and their bounds.
func TestNewEntry(t *testing.T) {
	at := time.Unix(5, 999)
	for name, c := range map[string]struct {
		ctx  context.Context
		want string
	}{
		"nobody":  {context.Background(), access.ActorService},
		"open":    {access.WithPrincipal(context.Background(), access.Open()), access.ActorOpen},
		"key":     {access.WithPrincipal(context.Background(), access.Principal{KeyID: "key_7", Scopes: access.Read}), "key_7"},
		"command": {access.WithOrigin(context.Background(), access.Origin{Actor: "cli:\nmaria\xff"}), "cli:\ufffdmaria\ufffd"},
		"request": {access.WithOrigin(access.WithPrincipal(context.Background(), access.Open()), access.Origin{Client: "192.0.2.1"}), access.ActorOpen},
		"long":    {access.WithOrigin(context.Background(), access.Origin{Actor: strings.Repeat("é", 200)}), strings.Repeat("é", 100)},
	} {
		e := access.NewEntry(c.ctx, at, access.Change{Action: access.ActionKeyCreate, Object: "key_7"})
		if e.Actor != c.want || !e.At.Equal(time.Unix(5, 0)) || e.Before != "" || e.After != "" || e.Seq != 0 {
			t.Errorf("%s: %+v, want the actor %q", name, e, c.want)
		}
	}
	for name, v := range map[string]any{"long": strings.Repeat("x", access.MaxChange), "no JSON": func() {}} {
		e := access.NewEntry(context.Background(), at, access.Change{Before: map[string]int{"a": 1}, After: v})
		var after struct{ Omitted string }
		if err := json.Unmarshal([]byte(e.After), &after); err != nil || after.Omitted == "" || e.Before != `{"a":1}` {
			t.Errorf("%s: %q, %v", name, e.After, err)
		}
	}
}

func FuzzNewEntry(f *testing.F) {
	f.Add("cli:maria", strings.Repeat("é", 300))
	f.Add("\xff\x00", "\u2028")
	f.Fuzz(func(t *testing.T, actor, after string) {
		e := access.NewEntry(access.WithOrigin(t.Context(), access.Origin{Actor: actor}), time.Unix(1, 0), access.Change{Object: actor, After: after})
		for _, text := range []string{e.Actor, e.Object, e.After} {
			if !utf8.ValidString(text) || strings.ContainsRune(text, 0) || len(text) > access.MaxChange {
				t.Fatalf("%q cannot be stored", text)
			}
		}
		if len(e.Actor) > access.MaxEntryText || e.Actor == "" || !json.Valid([]byte(e.After)) {
			t.Fatalf("%+v", e)
		}
	})
}

func TestParseHead(t *testing.T) {
	hash := strings.Repeat("ab", 32)
	for _, text := range []string{"1:" + hash, "9223372036854775807:" + hash, "0:" + strings.Repeat("0", 64)} {
		if h, err := access.ParseHead(text); err != nil || h.String() != text {
			t.Errorf("%s: %s, %v", text, h, err)
		}
	}
	for _, text := range []string{"", "1", "1:", ":" + hash, "-1:" + hash, "01:" + hash, "+1:" + hash, "1:" + strings.ToUpper(hash), "1:" + hash + "0",
		"1:" + strings.Repeat("0", 64), "0:" + hash, "9223372036854775808:" + hash} {
		if h, err := access.ParseHead(text); err == nil {
			t.Errorf("%q is parsed as %s", text, h)
		}
	}
}

// TestAuditQuota writes entries with a merchant's key up to its quota. Others, the operator and acts
// that take access away are not refused. The key may write again after the quota was raised.
func TestAuditQuota(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		entry := func(action access.Action) access.Entry {
			e := rowtest.AuditEntry(1, "acme")
			e.Action, e.After = action, strings.Repeat("x", 1000)
			return e
		}
		write := func(merchantID string, e access.Entry) error {
			ctx := access.WithPrincipal(t.Context(), access.Principal{KeyID: "key_1", MerchantID: merchantID, Scopes: access.Standard})
			return s.Update(ctx, func(tx *db.Tx) error { return access.AppendAudit(ctx, tx, e) })
		}
		quota := func(merchantID string, n int64) {
			t.Helper()
			rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error { return access.SetQuotas(ctx, tx, merchantID, n, 0) })
		}
		quota("acme", 5000)
		written := 0
		var err error
		for ; err == nil; written++ {
			err = write("acme", entry(access.ActionEndpointUpdate))
		}
		exceeded := (*limits.ExceededError)(nil)
		if !errors.As(err, &exceeded) || exceeded.Limit != access.AuditQuotaName || written != 4 {
			t.Errorf("after %d entries: %v", written, err)
		}
		for name, err := range map[string]error{
			"another merchant":    write("globex", entry(access.ActionEndpointUpdate)),
			"the operator":        write("", entry(access.ActionEndpointUpdate)),
			"an end of a key":     write("acme", entry(access.ActionKeyRevoke)),
			"an end of a session": write("acme", entry(access.ActionSessionEnd)),
			"a removed passkey":   write("acme", entry(access.ActionPasskeyRemove)),
			"an uninvited person": write("acme", entry(access.ActionUninvite)),
		} {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		head, err := access.VerifyAudit(t.Context(), s, access.AuditSources{})
		if err != nil || head.Seq != 9 {
			t.Errorf("the log has %s, %v; want the 9 entries that were not refused", head, err)
		}
		all, err := access.ListStorage(t.Context(), s, "", 10)
		if err != nil || len(all) != 3 || all[0].MerchantID != "" || all[0].AuditQuota != access.DefaultAuditQuota || all[0].InvoiceQuota != access.DefaultInvoiceQuota {
			t.Fatalf("%+v, %v", all, err)
		}
		for i, merchantID := range []string{"acme", "globex"} {
			if got, err := access.NewReader(s).MerchantStorage(t.Context(), merchantID); err != nil || got != all[i+1] {
				t.Errorf("%s alone: %+v, %v; want %+v", merchantID, got, err, all[i+1])
			}
		}
		nothing := access.Storage{MerchantID: "initech", AuditQuota: access.DefaultAuditQuota, InvoiceQuota: access.DefaultInvoiceQuota}
		if got, err := access.NewReader(s).MerchantStorage(t.Context(), "initech"); err != nil || got != nothing {
			t.Errorf("a merchant that stored nothing: %+v, %v", got, err)
		}
		if acme := all[1]; acme.AuditBytes <= 3000 || acme.AuditBytes > 5000 || acme.AuditQuota != 5000 || !acme.OwnAudit || acme.OwnInvoices || acme.InvoiceQuota != access.DefaultInvoiceQuota {
			t.Errorf("%+v", acme)
		}
		quota("acme", -1)
		if err := write("acme", entry(access.ActionEndpointUpdate)); err != nil {
			t.Errorf("with the quota of all: %v", err)
		}
		quota("", 1000)
		for _, merchantID := range []string{"acme", "globex"} {
			if err := write(merchantID, entry(access.ActionEndpointUpdate)); !errors.As(err, &exceeded) {
				t.Errorf("%s, beyond the quota of all: %v", merchantID, err)
			}
		}
		if err := access.RecountAudit(t.Context(), s); err != nil { // no stored key wrote them
			t.Fatal(err)
		}
		if all, err = access.ListStorage(t.Context(), s, "acme", 1); err != nil || all[0].AuditBytes != 0 {
			t.Errorf("%+v, %v", all, err)
		}
	})
}

// TestRecountAudit counts the remaining entries that a merchant's own keys caused.
func TestRecountAudit(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		key := sampleKey(t, 2, "acme")
		insertKeys(t, s, key)
		ctx := access.WithPrincipal(t.Context(), access.Principal{KeyID: key.ID, MerchantID: "acme", Scopes: access.Standard})
		for n := range 3 {
			e := rowtest.AuditEntry(n, "acme")
			e.Actor, e.After = key.ID, fmt.Sprint(n)
			expect.OK(t, s.Update(ctx, func(tx *db.Tx) error { return access.AppendAudit(ctx, tx, e) }))
		}
		stored := func() int64 {
			t.Helper()
			all, err := access.ListStorage(t.Context(), s, "acme", 1)
			expect.OK(t, err)
			return all[0].AuditBytes
		}
		before := stored()
		if err := access.RecountAudit(t.Context(), s); err != nil || before == 0 || stored() != before {
			t.Errorf("%d bytes were counted, and are %d when counted again, %v", before, stored(), err)
		}
	})
}
