package access_test

import (
	"bytes"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"testing"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/test/expect"
)

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
		if _, err := w.SetLogo(t.Context(), operator, "acme", encoded(t, func(out *bytes.Buffer) error { return png.Encode(out, half) })); err != nil {
			t.Fatal(err)
		}
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
