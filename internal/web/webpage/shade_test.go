package webpage_test

import (
	"math"
	"testing"

	"github.com/quittance/quittance/internal/web/webpage"
)

// color parses a color.
func color(t *testing.T, text string) webpage.Color {
	t.Helper()
	c, ok := webpage.ParseColor(text)
	if !ok || c.String() != text {
		t.Fatalf("%q is %v, %t", text, c, ok)
	}
	return c
}

func TestParseShade(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "#", "112233", "#11223", "#1122333", "#AABBCC", "#11223g", "#+1+2+3", "#112233;}", " #112233"} {
		if c, ok := webpage.ParseColor(text); ok {
			t.Errorf("%q is %s", text, c)
		}
	}
}

// TestContrast compares the ratio with known ones.
func TestContrast(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want float64
	}{{"#000000", "#ffffff", 21}, {"#777777", "#ffffff", 4.48}, {"#767676", "#ffffff", 4.54}, {"#ff0000", "#ffffff", 4.00}, {"#0d6450", "#0d6450", 1}} {
		for range 2 {
			if got := webpage.Contrast(color(t, c.a), color(t, c.b)); math.Abs(got-c.want) > 0.005 {
				t.Errorf("the contrast of %s and %s is %.3f, want %.2f", c.a, c.b, got, c.want)
			}
			c.a, c.b = c.b, c.a
		}
	}
}

// TestReadableColorIsKept checks the edge: a color with just enough contrast does not change, and the
// next lighter one changes as little as possible.
func TestReadableColorIsKept(t *testing.T) {
	t.Parallel()
	ground := color(t, "#efece4")
	var edge webpage.Color
	for gray := range math.MaxUint8 {
		if next := (webpage.Color{uint8(gray), uint8(gray), uint8(gray)}); webpage.Contrast(next, ground) >= webpage.MinContrast {
			edge = next
		}
	}
	if got := edge.ReadableOn(ground, webpage.Black); got != edge {
		t.Errorf("%s, which is readable, becomes %s", edge, got)
	}
	beyond := webpage.Color{edge[0] + 1, edge[1] + 1, edge[2] + 1}
	if got := beyond.ReadableOn(ground, webpage.Black); got != edge {
		t.Errorf("%s becomes %s, want %s", beyond, got, edge)
	}
	if got := webpage.White.ReadableOn(webpage.White, webpage.White); got != webpage.White {
		t.Errorf("white on white becomes %s, though it is mixed with white alone", got)
	}
}
