package access_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
)

var (
	operator     = access.Open()
	merchantAcme = access.Principal{KeyID: "key_1", MerchantID: "acme", Scopes: access.Admin}
	home         = invoice.AllowedAddress{ChainKey: "base", Address: invoice.Address{1}}
	bank         = invoice.AllowedAddress{ChainKey: "base", Address: invoice.Address{2}}
)

// merchantWorld is a manager on a real store, with a clock.
type merchantWorld struct {
	*access.MerchantManager
	db  *db.DB
	now time.Time
}

func (w *merchantWorld) pass(d time.Duration) { w.now = w.now.Add(d) }

// each runs a test with a manager on both databases. The merchant "shop" is configured, and "acme" is created.
func each(t *testing.T, test func(t *testing.T, w *merchantWorld)) {
	dbtest.Each(t, func(t *testing.T, store *db.DB) {
		w := &merchantWorld{db: store, now: time.Unix(1_764_000_000, 0)}
		w.MerchantManager = w.open()
		name := "Acme"
		expect.Success(t)(w.Create(t.Context(), operator, "acme", invoice.MerchantChange{Name: &name}))
		test(t, w)
	})
}

// open returns another manager, as in another process.
func (w *merchantWorld) open() *access.MerchantManager {
	return access.NewMerchants(access.MerchantConfig{
		Store: w.db, Configured: map[string]access.MerchantSettings{"shop": {}},
		Chains: []string{"base"}, Delay: 24 * time.Hour, Now: func() time.Time { return w.now },
	})
}

func (w *merchantWorld) actions(t *testing.T) (actions []access.Action) {
	t.Helper()
	entries, err := access.NewReader(w.db).AuditEntries(t.Context(), access.AuditFilter{MerchantID: "acme", Limit: 99})
	expect.OK(t, err)
	for _, e := range entries {
		actions = append(actions, e.Action)
	}
	return actions
}

func TestCreateAndUpdate(t *testing.T) {
	each(t, func(t *testing.T, w *merchantWorld) {
		text := func(s string) *string { return &s }
		all := invoice.MerchantChange{
			Name: text("Acme ☕ <b>"), Color: text("#AABBCC"), SupportContact: text("help@acme.example"), Statement: text("Thank you."),
			Tolerance: &invoice.Tolerance{BasisPoints: 50}, DefaultAddresses: map[string]invoice.Address{"base": home.Address},
			Allowed: []invoice.AllowedAddress{bank, home},
		}
		got, err := w.Update(t.Context(), operator, "acme", all)
		expect.OK(t, err)
		want := invoice.Merchant{
			ID: "acme", Name: "Acme ☕ <b>", Color: "#aabbcc", SupportContact: "help@acme.example", Statement: "Thank you.",
			Tolerance: invoice.Tolerance{BasisPoints: 50}, Collection: invoice.Direct, DefaultAddresses: map[string]invoice.Address{"base": home.Address},
			Allowed: []invoice.AllowedAddress{home, bank}, CreatedAt: w.now.UTC(), ChangedAt: w.now.UTC(),
		}
		same := cmp.Comparer(func(a, b invoice.Amount) bool { return a == b })
		expect.NoDiff(t, cmp.Diff(want, got, same), "changed")
		if got, err = w.Get(t.Context(), merchantAcme, "acme"); err != nil || cmp.Diff(want, got, same) != "" {
			t.Errorf("read: %v (-want +got):\n%s", err, cmp.Diff(want, got, same))
		}
		for name, c := range map[string]struct {
			err, want error
		}{
			"twice":        {second(w.Create(t.Context(), operator, "acme", all)), access.ErrExists},
			"configured":   {second(w.Create(t.Context(), operator, "shop", all)), access.ErrConfigured},
			"by another":   {second(w.Create(t.Context(), merchantAcme, "beta", all)), access.ErrForbidden},
			"read-only":    {second(w.Update(t.Context(), operator, "shop", all)), access.ErrConfigured},
			"unknown":      {second(w.Update(t.Context(), operator, "beta", all)), access.ErrNotFound},
			"malformed":    {second(w.Get(t.Context(), operator, "a b\x00")), access.ErrNotFound},
			"other's":      {second(w.Get(t.Context(), merchantAcme, "shop")), access.ErrNotFound},
			"own rules":    {second(w.Update(t.Context(), merchantAcme, "acme", all)), access.ErrForbidden},
			"own hosts":    {second(w.Update(t.Context(), merchantAcme, "acme", invoice.MerchantChange{ReturnHosts: []string{}})), access.ErrForbidden},
			"own frames":   {second(w.Update(t.Context(), merchantAcme, "acme", invoice.MerchantChange{EmbedOrigins: []string{}})), access.ErrForbidden},
			"own deposits": {second(w.Update(t.Context(), merchantAcme, "acme", invoice.MerchantChange{Collection: new(invoice.Deposit)})), access.ErrForbidden},
			"at once":      {second(w.Update(t.Context(), merchantAcme, "acme", invoice.MerchantChange{Allowed: []invoice.AllowedAddress{home}, Immediately: true})), access.ErrForbidden},
			"another's":    {second(w.Update(t.Context(), merchantAcme, "shop", invoice.MerchantChange{Allowed: []invoice.AllowedAddress{home}})), access.ErrNotFound},
		} {
			if !errors.Is(c.err, c.want) {
				t.Errorf("%s: %v, want %v", name, c.err, c.want)
			}
		}
		_, err = w.Update(t.Context(), operator, "acme", invoice.MerchantChange{DefaultAddresses: map[string]invoice.Address{"moon": {1}}})
		if field := (*invoice.FieldError)(nil); !errors.As(err, &field) || field.Field != "defaultAddresses" {
			t.Errorf("an address on an unknown chain: %v", err)
		}
		expect.NoDiff(t, cmp.Diff([]access.Action{access.ActionAllowList, access.ActionMerchantCreate}, w.actions(t)), "the log")
	})
}

func second(_ invoice.Merchant, err error) error { return err }

// TestAllowListIsDelayed changes the list with a merchant's key. The change takes effect a day later,
// in all processes, and the log and the API announce it before.
func TestAllowListIsDelayed(t *testing.T) {
	each(t, func(t *testing.T, w *merchantWorld) {
		expect.Success(t)(w.Update(t.Context(), merchantAcme, "acme", invoice.MerchantChange{Allowed: []invoice.AllowedAddress{home}}))
		other := w.open()
		find := func(when string, want invoice.AllowedAddress) {
			t.Helper()
			for n, m := range []*access.MerchantManager{w.MerchantManager, other} {
				got, known, err := m.Find(t.Context(), "acme")
				if err != nil || !known || len(got.Allowed) != 1 || got.Allowed[0] != want {
					t.Errorf("%s, in process %d: %+v, known %t, %v", when, n, got.Allowed, known, err)
				}
			}
		}
		find("the first list", home)
		changed, err := w.Update(t.Context(), merchantAcme, "acme", invoice.MerchantChange{Allowed: []invoice.AllowedAddress{bank}})
		effective := w.now.Add(24 * time.Hour)
		if err != nil || changed.Pending == nil || !changed.Pending.EffectiveAt.Equal(effective) {
			t.Fatalf("pending: %+v, %v", changed.Pending, err)
		}
		entries, err := access.NewReader(w.db).AuditEntries(t.Context(), access.AuditFilter{Action: access.ActionAllowList, Limit: 1})
		if err != nil || len(entries) != 1 || !strings.Contains(entries[0].After, `"pendingAllowedAddresses":["base 0x0200`) ||
			!strings.Contains(entries[0].After, `"effectiveAt":1764086400`) {
			t.Errorf("the log: %+v, %v", entries, err)
		}
		w.pass(24*time.Hour - time.Second)
		find("a second before", home)
		w.pass(time.Second)
		find("a day later", bank)
		expect.Success(t)(w.Update(t.Context(), operator, "acme", invoice.MerchantChange{Allowed: []invoice.AllowedAddress{home}, Immediately: true}))
		w.pass(time.Second)
		find("at once", home)
		contact, bankOnly := "help@acme.example", []invoice.AllowedAddress{bank}
		expect.Success(t)(w.Update(t.Context(), operator, "acme", invoice.MerchantChange{SupportContact: &contact, Allowed: bankOnly}))
		entries, err = access.NewReader(w.db).AuditEntries(t.Context(), access.AuditFilter{Limit: 1})
		if err != nil || len(entries) != 1 || entries[0].Action != access.ActionAllowList {
			t.Errorf("the log of a list with another member: %+v, %v", entries, err)
		}
		w.pass(24 * time.Hour)
		text, moved := "Acme Ltd", map[string]invoice.Address{"base": bank.Address}
		for _, list := range []map[string]invoice.Address{moved, {}} { // the second waits
			expect.Success(t)(w.Update(t.Context(), merchantAcme, "acme", invoice.MerchantChange{Name: &text, DefaultAddresses: list}))
		}
		stored, err := w.Get(t.Context(), merchantAcme, "acme")
		if err != nil || stored.Name != text || !maps.Equal(stored.DefaultAddresses, moved) || stored.PendingDefaults == nil || len(stored.PendingDefaults.Addresses) != 0 {
			t.Errorf("default addresses: %+v, pending %+v, %v", stored, stored.PendingDefaults, err)
		}
		if entries, err = access.NewReader(w.db).AuditEntries(t.Context(), access.AuditFilter{Limit: 1}); err != nil || !strings.Contains(entries[0].After, `"defaultAddressesEffectiveAt":`) {
			t.Errorf("the log of default addresses: %+v, %v", entries, err)
		}
	})
}

// TestReleaseAfterADelayedList takes an address back that was on a list until a delayed change took effect.
func TestReleaseAfterADelayedList(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *merchantWorld) {
		list := func(a invoice.AllowedAddress) error {
			return second(w.Update(t.Context(), merchantAcme, "acme", invoice.MerchantChange{Allowed: []invoice.AllowedAddress{a}}))
		}
		expect.OK(t, errors.Join(list(home), list(bank)))
		release := func() error { return w.Release(t.Context(), operator, "acme", home.Address) }
		if field := (*invoice.FieldError)(nil); !errors.As(release(), &field) {
			t.Errorf("an address on the list in force was released: %v", release())
		}
		w.pass(24 * time.Hour)
		if err := release(); err != nil {
			t.Errorf("an address that left the list was not released: %v", err)
		}
	})
}

func TestFindAndList(t *testing.T) {
	each(t, func(t *testing.T, w *merchantWorld) {
		for id, want := range map[string]bool{"acme": true, "shop": true, "beta": false, "": false, "a\x00": false} {
			if _, known, err := w.Find(t.Context(), id); known != want || err != nil || w.Known(id) != want {
				t.Errorf("%q is known: %t, %v", id, known, err)
			}
		}
		name := "Beta"
		expect.Success(t)(w.open().Create(t.Context(), operator, "beta", invoice.MerchantChange{Name: &name}))
		w.pass(time.Second)
		if !w.Known("beta") {
			t.Error("a merchant that another process created is unknown a second later")
		}
		for _, c := range []struct {
			by    access.Principal
			after string
			limit int
			want  string
		}{
			{operator, "", 9, "acme beta shop"}, {operator, "", 2, "acme beta"}, {operator, "beta", 2, "shop"}, {operator, "shop", 2, ""},
			{merchantAcme, "", 9, "acme"}, {merchantAcme, "acme", 9, ""}, {access.Principal{MerchantID: "zeta", Scopes: access.Read}, "", 9, ""},
		} {
			found, err := w.List(t.Context(), c.by, c.after, c.limit)
			var ids []string
			for _, m := range found {
				ids = append(ids, m.ID)
			}
			if got := strings.Join(ids, " "); got != c.want || err != nil {
				t.Errorf("after %q: %q, %v; want %q", c.after, got, err, c.want)
			}
		}
	})
}

// picture returns an image.
func picture(w, h int) image.Image {
	p := image.NewPaletted(image.Rect(0, 0, w, h), color.Palette{color.White, color.Black})
	p.SetColorIndex(w/2, h/2, 1)
	return p
}

func encoded(t *testing.T, encode func(*bytes.Buffer) error) []byte {
	t.Helper()
	var out bytes.Buffer
	expect.OK(t, encode(&out))
	return out.Bytes()
}

// bomb returns a PNG of a few bytes that declares many pixels.
func bomb(t *testing.T, w, h uint32) []byte {
	t.Helper()
	small := encoded(t, func(out *bytes.Buffer) error { return png.Encode(out, picture(16, 16)) })
	const header = 8 + 8 // signature, and length and type of IHDR
	binary.BigEndian.PutUint32(small[header:], w)
	binary.BigEndian.PutUint32(small[header+4:], h)
	binary.BigEndian.PutUint32(small[header+13:], crc32.ChecksumIEEE(small[header-4:header+13]))
	return small
}

func TestLogo(t *testing.T) {
	each(t, func(t *testing.T, w *merchantWorld) {
		plain := encoded(t, func(out *bytes.Buffer) error { return png.Encode(out, picture(40, 20)) })
		// A text chunk after the header, as an editor writes one.
		chunk := append([]byte("tEXt"), "Comment\x00secret"...)
		chunk = binary.BigEndian.AppendUint32(append(binary.BigEndian.AppendUint32(nil, uint32(len(chunk)-4)), chunk...), crc32.ChecksumIEEE(chunk))
		commented := append(append(append([]byte{}, plain[:33]...), chunk...), plain[33:]...)
		for name, upload := range map[string][]byte{
			"png":            plain,
			"with a comment": commented,
			"jpeg":           encoded(t, func(out *bytes.Buffer) error { return jpeg.Encode(out, picture(40, 20), nil) }),
			"gif": encoded(t, func(out *bytes.Buffer) error {
				frame := picture(40, 20).(*image.Paletted)
				return gif.EncodeAll(out, &gif.GIF{Image: []*image.Paletted{frame, frame}, Delay: []int{1, 1}})
			}),
		} {
			m, err := w.SetLogo(t.Context(), operator, "acme", upload)
			if err != nil || m.Logo == nil || m.Logo.Width != 40 || m.Logo.Height != 20 {
				t.Errorf("%s: %+v, %v", name, m.Logo, err)
				continue
			}
			stored, err := access.NewReader(w.db).LogoPNG(t.Context(), "acme")
			if _, kind, decodeErr := image.Decode(bytes.NewReader(stored)); err != nil || decodeErr != nil || kind != "png" || bytes.Contains(stored, []byte("secret")) {
				t.Errorf("%s is stored as %q, %v, %v", name, kind, err, decodeErr)
			}
		}
		for name, upload := range map[string][]byte{
			"empty":     nil,
			"svg":       []byte(`<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`),
			"text":      []byte("GIF89a"),
			"truncated": plain[:len(plain)-20],
			"tiny":      encoded(t, func(out *bytes.Buffer) error { return png.Encode(out, picture(15, 40)) }),
			"wide":      encoded(t, func(out *bytes.Buffer) error { return png.Encode(out, picture(1025, 20)) }),
			"bomb":      bomb(t, 60_000, 60_000),
			"high bomb": bomb(t, 16, 1<<31-1),
			"too long":  append(plain, make([]byte, access.MaxLogoBytes)...),
		} {
			_, err := w.SetLogo(t.Context(), operator, "acme", upload)
			if field := (*invoice.FieldError)(nil); !errors.As(err, &field) || field.Field != "logo" {
				t.Errorf("%s: %v, want it refused", name, err)
			}
		}
		if _, err := w.SetLogo(t.Context(), merchantAcme, "acme", plain); err != nil {
			t.Errorf("by the merchant: %v", err)
		}
		expect.OK(t, w.DropLogo(t.Context(), operator, "acme"))
		if m, err := w.Get(t.Context(), operator, "acme"); err != nil || m.Logo != nil {
			t.Errorf("after it was dropped: %+v, %v", m.Logo, err)
		}
		if _, err := access.NewReader(w.db).LogoPNG(t.Context(), "acme"); !errors.Is(err, db.ErrNotFound) {
			t.Errorf("after it was dropped: %v", err)
		}
		for _, id := range []string{"shop", "beta"} {
			if err := w.DropLogo(t.Context(), operator, id); err == nil {
				t.Errorf("the logo of %s is dropped", id)
			}
		}
	})
}

// TestNoChangeIsNotLogged makes changes without effect.
func TestNoChangeIsNotLogged(t *testing.T) {
	each(t, func(t *testing.T, w *merchantWorld) {
		list := invoice.MerchantChange{Allowed: []invoice.AllowedAddress{home}}
		before, err := w.Update(t.Context(), operator, "acme", list)
		expect.OK(t, err)
		logged := len(w.actions(t))
		w.pass(time.Minute)
		name := "Acme"
		for what, c := range map[string]invoice.MerchantChange{"nothing": {}, "the name it has": {Name: &name}, "the list in force": list} {
			got, err := w.Update(t.Context(), operator, "acme", c)
			if err != nil || !got.ChangedAt.Equal(before.ChangedAt) {
				t.Errorf("%s: changed at %v, want %v; %v", what, got.ChangedAt, before.ChangedAt, err)
			}
		}
		expect.NoError(t, w.DropLogo(t.Context(), operator, "acme"))
		if got := w.actions(t); len(got) != logged {
			t.Errorf("the log has %v", got)
		}
	})
}

// TestConfiguredAddresses checks that the merchant to which the configuration gives an address holds
// it, and that a merchant that had claimed it loses it.
func TestConfiguredAddresses(t *testing.T) {
	each(t, func(t *testing.T, w *merchantWorld) {
		list := invoice.MerchantChange{Allowed: []invoice.AllowedAddress{home}}
		expect.Success(t)(w.Update(t.Context(), merchantAcme, "acme", list))
		started := access.NewMerchants(access.MerchantConfig{
			Store: w.db, Chains: []string{"base"}, Delay: time.Hour, Now: func() time.Time { return w.now },
			Configured: map[string]access.MerchantSettings{"shop": {Merchant: invoice.Merchant{Allowed: list.Allowed}}, "cafe": {}},
		})
		for range 2 {
			expect.OK(t, started.HoldConfigured(t.Context()))
		}
		_, err := w.Update(t.Context(), merchantAcme, "acme", list)
		if field := (*invoice.FieldError)(nil); !errors.As(err, &field) || field.Field != "allowedAddresses[0].address" {
			t.Errorf("the merchant that lost the address lists it: %v", err)
		}
		if got := w.actions(t); got[0] != access.ActionAddressLost || got[1] != access.ActionAllowList {
			t.Errorf("the log has %v", got)
		}
		more := invoice.MerchantChange{Allowed: []invoice.AllowedAddress{bank, home}, Immediately: true}
		expect.Success(t)(w.Update(t.Context(), operator, "acme", more))
		if _, err := w.Update(t.Context(), merchantAcme, "acme", list); err == nil {
			t.Error("an operator who added another address gave the lost one back")
		}
		expect.Success(t)(w.Update(t.Context(), operator, "acme", more))
		if _, err := w.Update(t.Context(), merchantAcme, "acme", list); err != nil {
			t.Errorf("the operator gave the list again, to share the address: %v", err)
		}
	})
}

// TestFindWithinTheShare occupies all connections that requests may use. Another request cannot read a
// merchant, but the service itself can.
func TestFindWithinTheShare(t *testing.T) {
	t.Parallel()
	w := &merchantWorld{db: dbtest.Open(t, dbtest.Postgres(t)), now: time.Unix(1_764_000_000, 0)}
	w.MerchantManager = w.open()
	const requests = 60 // more than there are connections
	released, full := make(chan struct{}), make(chan struct{}, requests)
	var group sync.WaitGroup
	for range requests {
		group.Go(func() {
			err := w.db.Update(db.WithShare(t.Context(), db.Writes), func(*db.Tx) error { <-released; return nil })
			if errors.Is(err, db.ErrBusy) {
				full <- struct{}{}
			} else if err != nil {
				t.Error(err)
			}
		})
	}
	defer group.Wait()
	defer close(released)
	select {
	case <-full:
	case <-time.After(2 * db.ShareWait):
		t.Fatal("requests have no share of the connections")
	}

	brief, cancel := context.WithTimeout(db.WithShare(t.Context(), db.MerchantReads), 100*time.Millisecond)
	defer cancel()
	if _, _, err := w.Find(brief, "acme"); !errors.Is(err, db.ErrBusy) {
		t.Errorf("a request beyond the share: %v, want ErrBusy", err)
	}
	if _, known, err := w.Find(t.Context(), "acme"); known || err != nil {
		t.Errorf("the service: %t, %v", known, err)
	}
}

// noise returns an image that no PNG compresses, with 16 bits for each channel.
func noise(w, h int) image.Image {
	random := rand.New(rand.NewPCG(1, 2))
	picture := image.NewNRGBA64(image.Rect(0, 0, w, h))
	for i := range picture.Pix {
		picture.Pix[i] = byte(random.Uint32())
	}
	return picture
}

// TestLogoIsSmall stores logos of every size. No logo makes a page heavy.
func TestLogoIsSmall(t *testing.T) {
	const most = 32 << 10
	each(t, func(t *testing.T, w *merchantWorld) {
		for name, test := range map[string]struct {
			upload []byte
			size   image.Point
		}{
			"small":        {encoded(t, func(out *bytes.Buffer) error { return png.Encode(out, picture(40, 20)) }), image.Pt(40, 20)},
			"large":        {encoded(t, func(out *bytes.Buffer) error { return png.Encode(out, picture(1024, 1024)) }), image.Pt(144, 144)},
			"wide":         {encoded(t, func(out *bytes.Buffer) error { return png.Encode(out, picture(1024, 16)) }), image.Pt(480, 7)},
			"high":         {encoded(t, func(out *bytes.Buffer) error { return png.Encode(out, picture(16, 1024)) }), image.Pt(2, 144)},
			"small noise":  {encoded(t, func(out *bytes.Buffer) error { return png.Encode(out, noise(160, 48)) }), image.Pt(160, 48)},
			"shown as is":  {encoded(t, func(out *bytes.Buffer) error { return png.Encode(out, noise(150, 144)) }), image.Pt(50, 48)},
			"a photograph": {encoded(t, func(out *bytes.Buffer) error { return jpeg.Encode(out, noise(600, 180), nil) }), image.Pt(160, 48)},
		} {
			m, err := w.SetLogo(t.Context(), operator, "acme", test.upload)
			if err != nil || m.Logo == nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			stored, err := access.NewReader(w.db).LogoPNG(t.Context(), "acme")
			if err != nil || len(stored) > most {
				t.Errorf("%s: %d bytes of %d are stored, %v", name, len(stored), len(test.upload), err)
			}
			decoded, err := png.Decode(bytes.NewReader(stored))
			if got := image.Pt(m.Logo.Width, m.Logo.Height); err != nil || got != test.size || decoded.Bounds().Size() != got {
				t.Errorf("%s: stored with %v, want %v; %v", name, got, test.size, err)
			}
		}
	})
}

// TestLogosAreLimited uploads logos while another is encoded, and more than a merchant may. Together the images would
// take all memory.
func TestLogosAreLimited(t *testing.T) {
	each(t, func(t *testing.T, w *merchantWorld) {
		upload := encoded(t, func(out *bytes.Buffer) error { return png.Encode(out, picture(40, 20)) })
		set := func(id string) error {
			_, err := w.SetLogo(t.Context(), operator, id, upload)
			return err
		}
		release := w.HoldLogos()
		if err := set("acme"); !errors.Is(err, limits.ErrBusy) {
			t.Errorf("while another is encoded: %v, want %v", err, limits.ErrBusy)
		}
		release()
		for range access.LogosOfMerchant {
			expect.OK(t, set("acme"))
		}
		if exceeded := (*limits.ExceededError)(nil); !errors.As(set("acme"), &exceeded) {
			t.Error("a merchant may upload any number of logos")
		}
		if err := set("other"); !errors.Is(err, access.ErrNotFound) {
			t.Errorf("after another merchant's uploads: %v, want %v", err, access.ErrNotFound)
		}
	})
}

// TestLogoKeepsItsColors scales down a logo with a red left half and a transparent right half.
func TestLogoKeepsItsColors(t *testing.T) {
	each(t, func(t *testing.T, w *merchantWorld) {
		half := image.NewNRGBA(image.Rect(0, 0, 960, 288))
		red := color.NRGBA{0xc0, 0x10, 0x20, 0xff}
		for y := range 288 {
			for x := range 480 {
				half.Set(x, y, red)
			}
		}
		expect.Success(t)(w.SetLogo(t.Context(), operator, "acme", encoded(t, func(out *bytes.Buffer) error { return png.Encode(out, half) })))
		stored, err := access.NewReader(w.db).LogoPNG(t.Context(), "acme")
		expect.OK(t, err)
		decoded, err := png.Decode(bytes.NewReader(stored))
		expect.OK(t, err)
		for x, want := range map[int]color.NRGBA{0: red, 239: red, 240: {}, 479: {}} {
			if got := color.NRGBAModel.Convert(decoded.At(x, 70)); got != want {
				t.Errorf("at %d it is %v, want %v", x, got, want)
			}
		}
	})
}
