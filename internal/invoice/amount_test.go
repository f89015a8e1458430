package invoice_test

import (
	"errors"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/invoice"
)

// max256 is 2^256-1, computed by another library than the one under test.
var max256 = new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 256), big.NewInt(1))

// amounts draws amounts of every length, and often amounts next to the end of a limb, where carries can be lost.
func amounts() *rapid.Generator[invoice.Amount] {
	return rapid.Custom(func(t *rapid.T) invoice.Amount {
		var word [32]byte
		length := rapid.IntRange(0, 32).Draw(t, "length")
		kind := rapid.SampledFrom([]string{"any", "any", "ones", "power"}).Draw(t, "kind")
		for i := 32 - length; i < 32; i++ {
			switch kind {
			case "any":
				word[i] = rapid.Byte().Draw(t, "byte")
			case "ones":
				word[i] = 0xff
			}
		}
		if kind == "power" && length > 0 {
			word[32-length] = 1
		}
		return invoice.AmountFromBytes(word)
	})
}

func bigOf(a invoice.Amount) *big.Int {
	word := a.Bytes()
	return new(big.Int).SetBytes(word[:])
}

func TestAmountAgreesWithBig(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := amounts().Draw(t, "a"), amounts().Draw(t, "b")
		x, y := bigOf(a), bigOf(b)
		if got := a.String(); got != x.String() {
			t.Fatalf("String() = %s, want %s", got, x)
		}
		if back, err := invoice.ParseAmount(x.String()); err != nil || back != a {
			t.Fatalf("ParseAmount(%s) = %s, %v", x, back, err)
		}
		if got := a.Cmp(b); got != x.Cmp(y) {
			t.Fatalf("%s.Cmp(%s) = %d, want %d", x, y, got, x.Cmp(y))
		}
		if got := a.Less(b); got != (x.Cmp(y) < 0) {
			t.Fatalf("%s.Less(%s) = %t", x, y, got)
		}
		if got := a.IsZero(); got != (x.Sign() == 0) {
			t.Fatalf("%s.IsZero() = %t", x, got)
		}
		sum := new(big.Int).Add(x, y)
		fits := sum.Cmp(max256) <= 0
		got, ok := a.Add(b)
		if ok != fits || (ok && bigOf(got).Cmp(sum) != 0) {
			t.Fatalf("%s.Add(%s) = %s, %t, want %s", x, y, got, ok, sum)
		}
		if !fits {
			sum = max256
		}
		if got := a.Plus(b); bigOf(got).Cmp(sum) != 0 {
			t.Fatalf("%s.Plus(%s) = %s, want %s", x, y, got, sum)
		}
		difference := new(big.Int).Sub(x, y)
		if difference.Sign() < 0 {
			difference = new(big.Int)
		}
		if got := a.Minus(b); bigOf(got).Cmp(difference) != 0 {
			t.Fatalf("%s.Minus(%s) = %s, want %s", x, y, got, difference)
		}
	})
}

func TestParseAmountEdges(t *testing.T) {
	t.Parallel()
	plus := func(n int64) string { return new(big.Int).Add(max256, big.NewInt(n)).String() }
	for _, test := range []struct {
		name, text string
		want       error
	}{
		{"nothing", "0", nil},
		{"one", "1", nil},
		{"end of a limb", "18446744073709551615", nil},
		{"next limb", "18446744073709551616", nil},
		{"2^256-2", plus(-1), nil},
		{"2^256-1", plus(0), nil},
		{"2^256", plus(1), invoice.ErrAmountOverflow},
		{"2^256+9", plus(10), invoice.ErrAmountOverflow},
		{"77 nines", strings.Repeat("9", 77), nil},
		{"78 nines", strings.Repeat("9", 78), invoice.ErrAmountOverflow},
		{"79 digits", "1" + strings.Repeat("0", 78), invoice.ErrAmountOverflow},
		{"a thousand digits", strings.Repeat("1", 1000), invoice.ErrAmountOverflow},
		{"a thousand digits and a letter", strings.Repeat("1", 1000) + "x", invoice.ErrAmountSyntax},
		{"empty", "", invoice.ErrAmountSyntax},
		{"two zeros", "00", invoice.ErrAmountSyntax},
		{"leading zero", "01", invoice.ErrAmountSyntax},
		{"plus", "+1", invoice.ErrAmountSyntax},
		{"minus", "-1", invoice.ErrAmountSyntax},
		{"minus nothing", "-0", invoice.ErrAmountSyntax},
		{"point", "1.0", invoice.ErrAmountSyntax},
		{"exponent", "1e6", invoice.ErrAmountSyntax},
		{"underscore", "1_000", invoice.ErrAmountSyntax},
		{"comma", "1,000", invoice.ErrAmountSyntax},
		{"hex", "0x10", invoice.ErrAmountSyntax},
		{"space before", " 1", invoice.ErrAmountSyntax},
		{"newline after", "1\n", invoice.ErrAmountSyntax},
		{"zero byte", "1\x00", invoice.ErrAmountSyntax},
		{"before the digits", "/", invoice.ErrAmountSyntax},
		{"after the digits", ":", invoice.ErrAmountSyntax},
		{"digits of another script", "١٢", invoice.ErrAmountSyntax},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := invoice.ParseAmount(test.text)
			if !errors.Is(err, test.want) {
				t.Fatalf("ParseAmount(%q) gives the error %v, want %v", test.text, err, test.want)
			}
			if err == nil && got.String() != test.text {
				t.Errorf("ParseAmount(%q) = %s", test.text, got)
			}
		})
	}
	if got := invoice.MaxAmount.String(); got != max256.String() || len(got) != invoice.MaxAmountDigits {
		t.Errorf("MaxAmount is %s of %d digits, want %s of %d", got, len(got), max256, invoice.MaxAmountDigits)
	}
}

func TestAmountMajor(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		amount   uint64
		decimals int
		want     string
	}{
		{0, 6, "0.00"}, {1, 6, "0.000001"}, {10, 6, "0.00001"}, {100000, 6, "0.10"}, {999999, 6, "0.999999"},
		{1000000, 6, "1.00"}, {4900000, 6, "4.90"}, {4900307, 6, "4.900307"}, {123456789012, 6, "123456.789012"},
		{5, 2, "0.05"}, {50, 2, "0.50"}, {500, 2, "5.00"}, {7, 1, "0.7"}, {7, 0, "7"}, {0, 0, "0"},
		{1, 18, "0.000000000000000001"},
	} {
		if got := invoice.NewAmount(test.amount).Major(test.decimals); got != test.want {
			t.Errorf("%d with %d decimals is %q, want %q", test.amount, test.decimals, got, test.want)
		}
	}
}

// TestDecimalsSurviveTheirText checks that the text shown to people parses to the same amount.
func TestDecimalsSurviveTheirText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a := amounts().Draw(t, "a")
		decimals := rapid.IntRange(0, 30).Draw(t, "decimals")
		text := a.Major(decimals)
		if got, err := invoice.ParseDecimal(text, decimals); err != nil || got != a {
			t.Fatalf("%s with %d decimals is %q, which reads as %s, %v", a, decimals, text, got, err)
		}
		value, ok := new(big.Rat).SetString(text)
		unit := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(decimals)), nil))
		if !ok || value.Mul(value, unit).Cmp(new(big.Rat).SetInt(bigOf(a))) != 0 {
			t.Fatalf("%s with %d decimals is %q, which is another number", a, decimals, text)
		}
	})
}

// TestParseDecimalAgreesWithRat draws text that is often, but not always, a decimal number, and compares the result
// with exact rational numbers.
func TestParseDecimalAgreesWithRat(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`(0|[1-9][0-9]{0,80}|0[0-9]|)(\.[0-9]{0,8})?|[-+.,eE_ 0-9]{0,6}`).Draw(t, "text")
		decimals := rapid.IntRange(0, 8).Draw(t, "decimals")
		checkDecimal(t, text, decimals)
	})
}

// checkDecimal compares ParseDecimal with a slower reading of the same rules.
func checkDecimal(t *rapid.T, text string, decimals int) {
	got, err := invoice.ParseDecimal(text, decimals)
	var want error
	whole, frac, point := strings.Cut(text, ".")
	digits := func(s string) bool {
		return s != "" && strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' }) < 0
	}
	switch {
	case !digits(whole), point && !digits(frac), len(whole) > 1 && whole[0] == '0':
		want = invoice.ErrDecimalSyntax
	case len(frac) > decimals:
		want = invoice.ErrTooPrecise
	default:
		value, _ := new(big.Rat).SetString(text)
		value.Mul(value, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(decimals)), nil)))
		if value.Num().Cmp(max256) > 0 {
			want = invoice.ErrAmountOverflow
		} else if err == nil && (!value.IsInt() || value.Num().Cmp(bigOf(got)) != 0) {
			t.Fatalf("ParseDecimal(%q, %d) = %s, want %s", text, decimals, got, value)
		}
	}
	if !errors.Is(err, want) || (err == nil) != (want == nil) {
		t.Fatalf("ParseDecimal(%q, %d) gives the error %v, want %v", text, decimals, err, want)
	}
}

func TestParseDecimalEdges(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text     string
		decimals int
		want     string
		err      error
	}{
		{"3.14", 6, "3140000", nil},
		{"0", 6, "0", nil},
		{"0.000000", 6, "0", nil},
		{"0.000001", 6, "1", nil},
		{"0.0000010", 6, "", invoice.ErrTooPrecise},
		{"1.0000000", 6, "", invoice.ErrTooPrecise},
		{"7", 0, "7", nil},
		{"7.0", 0, "", invoice.ErrTooPrecise},
		{"9007199254740993.01", 6, "9007199254740993010000", nil}, // a float would round it
		{".5", 6, "", invoice.ErrDecimalSyntax},
		{"5.", 6, "", invoice.ErrDecimalSyntax},
		{"1.2.3", 6, "", invoice.ErrDecimalSyntax},
		{"", 6, "", invoice.ErrDecimalSyntax},
		{".", 6, "", invoice.ErrDecimalSyntax},
		{"-1.00", 6, "", invoice.ErrDecimalSyntax},
		{"1e2", 6, "", invoice.ErrDecimalSyntax},
		{"01.5", 6, "", invoice.ErrDecimalSyntax},
		{"NaN", 6, "", invoice.ErrDecimalSyntax},
		{"Inf", 6, "", invoice.ErrDecimalSyntax},
		{"0x1", 6, "", invoice.ErrDecimalSyntax},
		{max256.String(), 0, max256.String(), nil},
		{max256.String(), 1, "", invoice.ErrAmountOverflow},
	} {
		got, err := invoice.ParseDecimal(test.text, test.decimals)
		if !errors.Is(err, test.err) || (err == nil && got.String() != test.want) {
			t.Errorf("ParseDecimal(%q, %d) = %s, %v, want %s, %v", test.text, test.decimals, got, err, test.want, test.err)
		}
	}
}

func FuzzParseAmount(f *testing.F) {
	for _, s := range []string{"0", "1", "00", "4900000", max256.String(), max256.String() + "0", "-1", "1.5", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := invoice.ParseAmount(s)
		if err != nil {
			if !a.IsZero() {
				t.Fatalf("ParseAmount(%q) gives %s with the error %v", s, a, err)
			}
			return
		}
		if a.String() != s {
			t.Fatalf("ParseAmount(%q) is written as %s", s, a)
		}
	})
}

func TestParseTolerance(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]invoice.Tolerance{
		"":       {},
		"0":      {},
		"500000": {Amount: invoice.NewAmount(500_000)},
		"0%":     {},
		"0.5%":   {BasisPoints: 50},
		"0.01%":  {BasisPoints: 1},
		"50%":    {BasisPoints: 5000},
		"2.50%":  {BasisPoints: 250},
	} {
		if got, err := invoice.ParseTolerance(text); err != nil || got != want {
			t.Errorf("%q is %+v, %v, want %+v", text, got, err, want)
		}
		if again, err := invoice.ParseTolerance(want.String()); err != nil || again != want {
			t.Errorf("%+v is written %q, which is %+v, %v", want, want, again, err)
		}
	}
	for text, want := range map[string]string{
		"-1": "integer", "0.5": "integer", "1 %": "percentage", "%": "percentage", "0.001%": "two decimals",
		"50.01%": "at most 50%", "100%": "at most 50%", "1e1%": "percentage", "1%%": "percentage", strings.Repeat("9", 79): "256-bit",
		strings.Repeat("9", 79) + "%": "percentage",
	} {
		if got, err := invoice.ParseTolerance(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is %+v, %v, want an error that says %q", text, got, err, want)
		}
	}
}

func TestToleranceOf(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		fixed  uint64
		points uint16
		amount uint64
		want   uint64
	}{
		{0, 0, 100, 0},
		{7, 0, 100, 7},
		{49, 0, 100, 49},
		{99, 0, 100, 50},
		{5, 100, 400, 5},
		{5, 100, 600, 6},
		{0, 50, 199, 0},
		{0, 50, 200, 1},
		{0, 9999, 100, 50},
		{9, 5000, 1, 0},
	} {
		tolerance := invoice.Tolerance{Amount: invoice.NewAmount(test.fixed), BasisPoints: test.points}
		if got := tolerance.Of(invoice.NewAmount(test.amount)); got != invoice.NewAmount(test.want) {
			t.Errorf("%+v of %d is %s, want %d", tolerance, test.amount, got, test.want)
		}
	}
	// Compare with arithmetic that has no limbs.
	rapid.Check(t, func(t *rapid.T) {
		word := [32]byte(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "amount"))
		points := rapid.Uint16Range(0, 5000).Draw(t, "points")
		got := invoice.Tolerance{BasisPoints: points}.Of(invoice.AmountFromBytes(word)).Bytes()
		want := new(big.Int).SetBytes(word[:])
		want.Mul(want, big.NewInt(int64(points))).Div(want, big.NewInt(10_000))
		if new(big.Int).SetBytes(got[:]).Cmp(want) != 0 {
			t.Fatalf("%d basis points are %x, want %s", points, got, want)
		}
	})
}
