package webpage

import (
	"fmt"
	"math"
)

// MinContrast is the least contrast of text with its background (WCAG 2.2, 1.4.3, level AA).
const MinContrast = 4.5

// Color is an sRGB color: red, green and blue.
type Color [3]uint8

// Text colors, and colors to mix with.
var (
	White = Color{math.MaxUint8, math.MaxUint8, math.MaxUint8}
	Black = Color{}
)

// ParseColor parses #rrggbb in lower case. ok is false for any other text.
func ParseColor(text string) (c Color, ok bool) {
	_, err := fmt.Sscanf(text, "#%02x%02x%02x", &c[0], &c[1], &c[2])
	return c, err == nil && c.String() == text
}

// String returns the color as #rrggbb.
func (c Color) String() string { return fmt.Sprintf("#%02x%02x%02x", c[0], c[1], c[2]) }

// linear has the linear value of each value of an sRGB channel.
var linear = func() (table [math.MaxUint8 + 1]float64) {
	for channel := range table {
		v := float64(channel) / math.MaxUint8
		if v <= 0.04045 {
			table[channel] = v / 12.92
		} else {
			table[channel] = math.Pow((v+0.055)/1.055, 2.4)
		}
	}
	return table
}()

// luminance returns the relative luminance as WCAG 2.2 defines it.
func (c Color) luminance() float64 {
	return 0.2126*linear[c[0]] + 0.7152*linear[c[1]] + 0.0722*linear[c[2]]
}

// Contrast returns the contrast ratio of two colors, from 1 to 21.
func Contrast(a, b Color) float64 {
	l, m := a.luminance(), b.luminance()
	return (max(l, m) + 0.05) / (min(l, m) + 0.05)
}

// ReadableOn returns the color, mixed with just enough of another one to be readable on a background.
func (c Color) ReadableOn(ground, with Color) Color {
	const steps = math.MaxUint8
	for part := range steps {
		var mixed Color
		for i := range mixed {
			mixed[i] = uint8((int(c[i])*(steps-part) + int(with[i])*part) / steps)
		}
		if Contrast(mixed, ground) >= MinContrast {
			return mixed
		}
	}
	return with
}

// TextOn returns white or black, whichever is more readable on the color.
func (c Color) TextOn() Color {
	if Contrast(White, c) >= Contrast(Black, c) {
		return White
	}
	return Black
}
