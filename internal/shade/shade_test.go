package shade_test

import (
	"math"
	"testing"

	"github.com/quittance/quittance/internal/shade"
)

// color parses a color.
func color(t *testing.T, text string) shade.Color {
	t.Helper()
	c, ok := shade.Parse(text)
	if !ok || c.String() != text {
		t.Fatalf("%q is %v, %t", text, c, ok)
	}
	return c
}

func TestParse(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "#", "112233", "#11223", "#1122333", "#AABBCC", "#11223g", "#+1+2+3", "#112233;}", " #112233"} {
		if c, ok := shade.Parse(text); ok {
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
			if got := shade.Contrast(color(t, c.a), color(t, c.b)); math.Abs(got-c.want) > 0.005 {
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
	var edge shade.Color
	for gray := range math.MaxUint8 {
		if next := (shade.Color{uint8(gray), uint8(gray), uint8(gray)}); shade.Contrast(next, ground) >= shade.MinContrast {
			edge = next
		}
	}
	if got := edge.ReadableOn(ground, shade.Black); got != edge {
		t.Errorf("%s, which is readable, becomes %s", edge, got)
	}
	beyond := shade.Color{edge[0] + 1, edge[1] + 1, edge[2] + 1}
	if got := beyond.ReadableOn(ground, shade.Black); got != edge {
		t.Errorf("%s becomes %s, want %s", beyond, got, edge)
	}
	if got := shade.White.ReadableOn(shade.White, shade.White); got != shade.White {
		t.Errorf("white on white becomes %s, though it is mixed with white alone", got)
	}
}
