package invoice_test

import (
	"bytes"
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/quittance/quittance/internal/invoice"
)

// decodeID returns the 16 bytes of an identifier, and fails if its form is wrong.
func decodeID(t *testing.T, prefix, id string) []byte {
	t.Helper()
	text, ok := strings.CutPrefix(id, prefix)
	if !ok || len(text) != 26 || text != strings.ToLower(text) {
		t.Fatalf("identifier %q, want %s and 26 lower-case characters", id, prefix)
	}
	u, err := base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding).DecodeString(text)
	if err != nil || len(u) != 16 {
		t.Fatalf("identifier %q holds %x, %v, want Crockford base32 of 16 bytes", id, u, err)
	}
	return u
}

// TestFirstID compares a FirstID with the identifiers of the moments before and after.
func TestFirstID(t *testing.T) {
	t.Parallel()
	for _, second := range []int64{0, 1, 1_700_000_000, 253_402_300_799} {
		first := invoice.FirstID(invoice.PrefixEvent, invoice.Unix(second))
		decodeID(t, "evt_", first)
		for name, rest := range map[string]byte{"zeros": 0, "ones": 0xff} {
			at := time.Unix(second, 0)
			ids := invoice.NewIDs(func() time.Time { return at }, bytes.NewReader(bytes.Repeat([]byte{rest}, 64)))
			if id := ids.New(invoice.PrefixEvent); id <= first {
				t.Errorf("%s: %s is made at %d and does not sort behind %s", name, id, second, first)
			}
			at = at.Add(-time.Nanosecond)
			ids = invoice.NewIDs(func() time.Time { return at }, bytes.NewReader(bytes.Repeat([]byte{rest}, 64)))
			if id := ids.New(invoice.PrefixEvent); second > 0 && id >= first {
				t.Errorf("%s: %s is made before %d and does not sort before %s", name, id, second, first)
			}
		}
	}
}

func TestIDsAreUUIDv7(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1_700_000_000_123).Add(500 * time.Microsecond)
	for name, source := range map[string][]byte{"zeros": make([]byte, 64), "ones": bytes.Repeat([]byte{0xff}, 64)} {
		ids := invoice.NewIDs(func() time.Time { return at }, bytes.NewReader(source))
		u := decodeID(t, "inv_", ids.New(invoice.PrefixInvoice))
		if ms := binary.BigEndian.Uint64(append([]byte{0, 0}, u[:6]...)); ms != 1_700_000_000_123 {
			t.Errorf("%s: milliseconds %d", name, ms)
		}
		if version := u[6] >> 4; version != 7 {
			t.Errorf("%s: version %d, want 7", name, version)
		}
		if half := binary.BigEndian.Uint16(u[6:8]) & 0xfff; half != 2048 {
			t.Errorf("%s: fraction of the millisecond %d/4096, want 2048", name, half)
		}
		if variant := u[8] >> 6; variant != 0b10 {
			t.Errorf("%s: variant %b, want 10", name, variant)
		}
		if !bytes.Equal(u[9:], source[:7]) || u[8]&0x3f != source[0]&0x3f {
			t.Errorf("%s: random part %x", name, u[8:])
		}
	}
}

// TestIDsSortAndNeverRepeat moves the clock forwards, not at all and backwards; the source of randomness returns only
// zeros.
func TestIDsSortAndNeverRepeat(t *testing.T) {
	t.Parallel()
	start := time.UnixMilli(1_700_000_000_000)
	now := start
	ids := invoice.NewIDs(func() time.Time { return now }, zeros{})
	var made []string
	for i := range 20_000 {
		switch {
		case i%7 == 0:
			now = now.Add(300 * time.Nanosecond)
		case i == 5000:
			now = start.Add(-20 * time.Second)
		case i == 15_000:
			now = start.Add(time.Hour)
		}
		made = append(made, ids.New("x_"))
	}
	for i := 1; i < len(made); i++ {
		if made[i] <= made[i-1] {
			t.Fatalf("identifier %d is %s, after %s", i, made[i], made[i-1])
		}
	}
	decodeID(t, "x_", made[len(made)-1])
}

// TestIDsFollowTheClock sets the clock far back. The identifiers stay near it, so that lists find new objects by them.
func TestIDsFollowTheClock(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_700_000_000_000)
	ids := invoice.NewIDs(func() time.Time { return now }, zeros{})
	last := ids.New("x_")
	for _, back := range []time.Duration{30 * time.Second, 31 * time.Second, 2 * time.Hour, 40 * 24 * time.Hour} {
		now = now.Add(-back)
		for range 3 {
			id := ids.New("x_")
			if id < invoice.FirstID("x_", now) || id >= invoice.FirstID("x_", now.Add(time.Minute)) {
				t.Errorf("set back by %s: %s is not within a minute of the clock", back, id)
			}
			if forward := id > last; forward != (back == 30*time.Second) && last >= invoice.FirstID("x_", now.Add(time.Minute)) {
				t.Errorf("set back by %s: %s follows %s", back, id, last)
			}
			last = id
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestIDsAreSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1_700_000_000_000)
	ids := invoice.NewIDs(func() time.Time { return at }, rand.Reader)
	const makers, each = 16, 500
	made := make([][]string, makers)
	var wg sync.WaitGroup
	for m := range made {
		wg.Go(func() {
			for range each {
				made[m] = append(made[m], ids.New("x_"))
			}
		})
	}
	wg.Wait()
	for m := range made {
		if !slices.IsSorted(made[m]) {
			t.Errorf("the identifiers of maker %d go backwards", m)
		}
	}
	all := slices.Concat(made...)
	slices.Sort(all)
	if got := len(slices.Compact(all)); got != makers*each {
		t.Errorf("%d different identifiers, want %d", got, makers*each)
	}
}

func TestIDsPanicWithoutRandomness(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("New made an identifier without randomness")
		}
	}()
	invoice.NewIDs(func() time.Time { return time.Unix(0, 0) }, iotest.ErrReader(errors.New("empty"))).New("x_")
}

func TestTransferID(t *testing.T) {
	t.Parallel()
	// Computed by another program: base32 of the first half of sha256(chainKey, 0x00, txHash, ordinal as 8 bytes).
	tx := invoice.Hash{0: 0xab, 31: 0xcd}
	if got, want := invoice.TransferID(invoice.PrefixPayment, "base", tx, 0), "pay_g0na548zdsjy09yptyq87x3p0w"; got != want {
		t.Errorf("TransferID = %s, want %s", got, want)
	}
	if got, want := invoice.TransferID(invoice.PrefixRefund, "ethereum-sepolia", tx, 300), "ref_9ngz4ey7evkvbnfehjg6bxd9ym"; got != want {
		t.Errorf("TransferID = %s, want %s", got, want)
	}
	seen := make(map[string]bool)
	n := 0
	for _, prefix := range []string{invoice.PrefixPayment, invoice.PrefixRefund} {
		for _, chainKey := range []string{"base", "base-sepolia", ""} {
			for _, hash := range []invoice.Hash{{}, {1}, {31: 1}} {
				for _, ordinal := range []int{0, 1, 255, 256, 1 << 20} {
					id := invoice.TransferID(prefix, chainKey, hash, ordinal)
					if again := invoice.TransferID(prefix, chainKey, hash, ordinal); again != id {
						t.Fatalf("the same transfer is %s and %s", id, again)
					}
					decodeID(t, prefix, id)
					seen[id] = true
					n++
				}
			}
		}
	}
	if len(seen) != n {
		t.Errorf("%d transfers have %d identifiers", n, len(seen))
	}
}

// TestDeliveryID expects the same id for the same event, and another id if any part of the event differs.
func TestDeliveryID(t *testing.T) {
	first := invoice.DeliveryID(invoice.EventPaid, "inv_1", "shop", "inv_1")
	if again := invoice.DeliveryID(invoice.EventPaid, "inv_1", "shop", "inv_1"); again != first {
		t.Errorf("%s, then %s", first, again)
	}
	seen := map[string]bool{first: true}
	for _, id := range []string{
		invoice.DeliveryID(invoice.EventExpired, "inv_1", "shop", "inv_1"),
		invoice.DeliveryID(invoice.EventPaid, "inv_2", "shop", "inv_1"),
		invoice.DeliveryID(invoice.EventPaid, "inv_1", "shop2", "inv_1"),
		invoice.DeliveryID(invoice.EventPaid, "inv_1", "shop", ""),
		invoice.DeliveryID(invoice.EventPaid, "inv_1", "sho", "pinv_1"),
	} {
		if seen[id] || len(id) != len("dlv_")+26 || !strings.HasPrefix(id, "dlv_") {
			t.Errorf("%s for another event, or of another form", id)
		}
		seen[id] = true
	}
}

// TestEventID expects the same id for the same event, with the beginning of the invoice's id, and another id if any
// part of the event differs.
func TestEventID(t *testing.T) {
	t.Parallel()
	made := invoice.NewIDs(func() time.Time { return time.Unix(1_800_000_000, 0) }, rand.Reader).New(invoice.PrefixInvoice)
	first := invoice.EventID(invoice.EventPaid, made, "shop", made)
	if again := invoice.EventID(invoice.EventPaid, made, "shop", made); again != first {
		t.Errorf("the same event is %s, and then %s", first, again)
	}
	if got, want := decodeID(t, "evt_", first)[:6], decodeID(t, "inv_", made)[:6]; !bytes.Equal(got, want) {
		t.Errorf("it begins with %x, and the invoice with %x", got, want)
	}
	ids := []string{
		first, invoice.EventID(invoice.EventExpired, made, "shop", made), invoice.EventID(invoice.EventPaid, made+"0", "shop", made),
		invoice.EventID(invoice.EventPaid, made, "shop2", made), invoice.EventID(invoice.EventPaid, made, "shop", ""),
		invoice.EventID(invoice.EventPaid, "inv_1", "shop", "inv_1"), // an invoice with an id of another form
		"evt_" + strings.TrimPrefix(invoice.DeliveryID(invoice.EventPaid, made, "shop", made), "dlv_"),
	}
	for i, id := range ids {
		decodeID(t, "evt_", id)
		if slices.Index(ids, id) != i {
			t.Errorf("the id %s is twice in %v", id, ids)
		}
	}
}

func TestAddressAndHashText(t *testing.T) {
	t.Parallel()
	lower := "0x" + strings.Repeat("0123456789abcdef0123", 2)
	for name, test := range map[string]struct {
		text string
		ok   bool
	}{
		"lower case":         {lower, true},
		"upper case":         {"0x" + strings.ToUpper(lower[2:]), true},
		"mixed case":         {lower[:20] + strings.ToUpper(lower[20:]), true},
		"zero":               {"0x" + strings.Repeat("0", 40), true},
		"empty":              {"", false},
		"prefix alone":       {"0x", false},
		"no prefix":          {lower[2:], false},
		"capital prefix":     {"0X" + lower[2:], false},
		"another digit":      {"1x" + lower[2:], false},
		"a digit short":      {lower[:41], false},
		"a digit long":       {lower + "0", false},
		"not hex":            {lower[:41] + "g", false},
		"space for a digit":  {lower[:41] + " ", false},
		"two-byte character": {lower[:40] + "é", false},
	} {
		a, err := invoice.ParseAddress(test.text)
		if (err == nil) != test.ok {
			t.Errorf("%s: ParseAddress(%q) gives the error %v", name, test.text, err)
		}
		if test.ok && a.String() != strings.ToLower(test.text) {
			t.Errorf("%s: ParseAddress(%q) is written as %s", name, test.text, a)
		}
	}
	if _, err := invoice.ParseHash(lower); err == nil {
		t.Error("ParseHash takes an address")
	}
	if _, err := invoice.ParseAddress("0x" + strings.Repeat("0", 64)); err == nil {
		t.Error("ParseAddress takes a hash")
	}
	if !(invoice.Address{}).IsZero() || (invoice.Address{19: 1}).IsZero() {
		t.Error("Address.IsZero is wrong about the zero address or its neighbour")
	}
	if !(invoice.Hash{}).IsZero() || (invoice.Hash{31: 1}).IsZero() {
		t.Error("Hash.IsZero is wrong about the zero hash or its neighbour")
	}
}

func FuzzParseAddress(f *testing.F) {
	f.Add("0x" + strings.Repeat("aB", 20))
	f.Add("0x")
	f.Fuzz(func(t *testing.T, s string) {
		if a, err := invoice.ParseAddress(s); err == nil && a.String() != strings.ToLower(s) {
			t.Fatalf("ParseAddress(%q) is written as %s", s, a)
		}
	})
}
