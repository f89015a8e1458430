package invoice_test

import (
	"bytes"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/expect"
)

func TestRefundTag(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		ms := rapid.Int64Range(0, 1<<48-1).Draw(r, "ms")
		random := rapid.SliceOfN(rapid.Byte(), 8, 8).Draw(r, "random")
		tx := invoice.Hash(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(r, "tx"))
		payment := invoice.TransferID(invoice.PrefixPayment, "base", tx, rapid.IntRange(0, 9).Draw(r, "ordinal"))
		refund := invoice.NewIDs(func() time.Time { return time.UnixMilli(ms) }, bytes.NewReader(random)).New(invoice.PrefixRefund)
		tag, err := invoice.RefundTag(payment, refund)
		expect.OK(r, err)
		gotPayment, gotRefund, at, ok := invoice.ParseRefundTag(tag)
		if gotPayment != payment || gotRefund != refund || at.UnixMilli() != ms || !ok {
			r.Errorf("%s names %s, %s of %s, %t; want %s, %s", tag, gotPayment, gotRefund, at, ok, payment, refund)
		}
	})
	for _, ids := range [][2]string{{"", ""}, {"pay_1", "ref_1"}, {invoice.FirstID(invoice.PrefixRefund, time.Unix(1, 0)), invoice.FirstID(invoice.PrefixPayment, time.Unix(1, 0))}} {
		if tag, err := invoice.RefundTag(ids[0], ids[1]); err == nil || !tag.IsZero() {
			t.Errorf("%q has the tag %s", ids, tag)
		}
	}
}

// FuzzParseRefundTag requires that the identifiers read from a tag give the same tag again.
func FuzzParseRefundTag(f *testing.F) {
	f.Add(make([]byte, 32))
	f.Add(bytes.Repeat([]byte{0x77}, 32))
	f.Add(bytes.Repeat([]byte{0x87, 0x78}, 16))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) != 32 {
			return
		}
		tag := invoice.Hash(b)
		payment, refund, _, ok := invoice.ParseRefundTag(tag)
		if !ok {
			return
		}
		if again, err := invoice.RefundTag(payment, refund); err != nil || again != tag {
			t.Errorf("%s names %s and %s, whose tag is %s, %v", tag, payment, refund, again, err)
		}
	})
}
