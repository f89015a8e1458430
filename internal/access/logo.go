package access

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"image"
	"image/color"
	_ "image/gif"  // read
	_ "image/jpeg" // read
	"image/png"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/limits"
)

// Limits of a logo.
const (
	MaxLogoBytes = 256 << 10 // of the uploaded image
	MinLogoSide  = 16        // pixels
	MaxLogoSide  = 1024      // pixels
	// LogosOfMerchant bounds the uploads of a merchant in LogoWindow.
	LogosOfMerchant = 20
	LogoWindow      = 10 * time.Minute
)

// SetLogo stores an image as a merchant's logo. It encodes the image as a small PNG, so that only its
// pixels are served. It encodes one image at a time, because an image takes up to 17 MB. Errors are ErrNotFound,
// ErrConfigured, limits.ErrBusy, *limits.ExceededError and *invoice.FieldError for the field logo.
func (m *MerchantManager) SetLogo(ctx context.Context, by Principal, id string, upload []byte) (changed invoice.Merchant, err error) {
	if err := m.mayChange(by, id); err != nil {
		return changed, err
	}
	logo, encoded, err := m.encodeNext(id, upload)
	if err != nil {
		return changed, err
	}
	err = m.change(ctx, id, func(tx *db.Tx, was invoice.Merchant) (Action, error) {
		if changed = was; was.Logo != nil && *was.Logo == logo {
			return "", nil
		}
		changed.Logo, changed.ChangedAt = &logo, m.now()
		if err := updateMerchant(ctx, tx, changed); err != nil {
			return "", err
		}
		return ActionMerchantUpdate, putLogo(ctx, tx, id, logo, encoded)
	})
	return changed, err
}

// encodeNext is encodeLogo within the limits of a merchant and of all.
func (m *MerchantManager) encodeNext(id string, upload []byte) (invoice.Logo, []byte, error) {
	if !m.encoding.TryLock() {
		return invoice.Logo{}, nil, limits.ErrBusy
	}
	defer m.encoding.Unlock()
	if err := m.logos.Take(id).Err(); err != nil {
		return invoice.Logo{}, nil, err
	}
	return encodeLogo(upload)
}

// LogoPNG returns a merchant's logo, or db.ErrNotFound.
func (m *MerchantManager) LogoPNG(ctx context.Context, id string) ([]byte, error) {
	return NewReader(m.conf.Store).LogoPNG(ctx, id)
}

// Logo returns the logo of a merchant that the principal may see, as PNG. Errors are ErrNotFound and db.ErrNotFound.
func (m *MerchantManager) Logo(ctx context.Context, by Principal, id string) ([]byte, error) {
	if _, err := m.Get(ctx, by, id); err != nil {
		return nil, err
	}
	return m.LogoPNG(ctx, id)
}

// DropLogo deletes a merchant's logo, if it has one. Errors are ErrNotFound and ErrConfigured.
func (m *MerchantManager) DropLogo(ctx context.Context, by Principal, id string) error {
	if err := m.mayChange(by, id); err != nil {
		return err
	}
	return m.change(ctx, id, func(tx *db.Tx, was invoice.Merchant) (Action, error) {
		if was.Logo == nil {
			return "", nil
		}
		was.ChangedAt = m.now()
		if err := updateMerchant(ctx, tx, was); err != nil {
			return "", err
		}
		return ActionMerchantUpdate, deleteLogo(ctx, tx, id)
	})
}

// encodeLogo decodes an image and encodes it as a small PNG. It checks the dimensions before it
// decodes the pixels, so that a small file cannot take much memory.
func encodeLogo(upload []byte) (invoice.Logo, []byte, error) {
	refuse := func(format string, args ...any) (invoice.Logo, []byte, error) {
		return invoice.Logo{}, nil, &invoice.FieldError{Field: "logo", Detail: fmt.Sprintf(format, args...)}
	}
	if len(upload) > MaxLogoBytes {
		return refuse("must be at most %d bytes", MaxLogoBytes)
	}
	declared, _, err := image.DecodeConfig(bytes.NewReader(upload))
	if err != nil {
		return refuse("must be a PNG, JPEG or GIF image")
	}
	if w, h := declared.Width, declared.Height; w < MinLogoSide || h < MinLogoSide || w > MaxLogoSide || h > MaxLogoSide {
		return refuse("must be %d to %d pixels wide and high; it is %d × %d", MinLogoSide, MaxLogoSide, w, h)
	}
	decoded, _, err := image.Decode(bytes.NewReader(upload))
	if err != nil {
		return refuse("is damaged: %v", err)
	}
	encoded, size, err := encodeSmall(decoded)
	if err != nil {
		return invoice.Logo{}, nil, err
	}
	sum := sha256.Sum256(encoded)
	return invoice.Logo{SHA256: hex.EncodeToString(sum[:]), Width: size.X, Height: size.Y}, encoded, nil
}

// Pages show a logo in at most logoWidth by logoHeight CSS pixels, which screens draw with up to maxDensity pixels
// each. A logo of maxStoredLogo bytes leaves a page below the 60 kB that it may transfer.
const (
	logoWidth     = 160
	logoHeight    = 48
	maxDensity    = 3
	maxStoredLogo = 32 << 10
)

// encodeSmall encodes an image as a PNG of at most maxStoredLogo bytes, with as many pixels as that
// limit and maxDensity permit.
func encodeSmall(decoded image.Image) ([]byte, image.Point, error) {
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	for density := maxDensity; density > 0; density-- {
		shown := decoded
		if size := fit(decoded.Bounds().Size(), density); density < maxDensity || size != decoded.Bounds().Size() {
			shown = shrink(decoded, size)
		}
		var out bytes.Buffer
		if err := encoder.Encode(&out, shown); err != nil {
			return nil, image.Point{}, fmt.Errorf("encode a logo: %w", err)
		}
		if out.Len() <= maxStoredLogo {
			return out.Bytes(), shown.Bounds().Size(), nil
		}
	}
	panic("access: a logo of one pixel for each CSS pixel is too large") // it is at most 31 kB
}

// fit returns the size of an image that is shown with a density, in the same proportion.
func fit(size image.Point, density int) image.Point {
	w, h := logoWidth*density, logoHeight*density
	if size.X <= w && size.Y <= h {
		return size
	}
	if size.X*h > size.Y*w {
		return image.Pt(w, max(1, size.Y*w/size.X))
	}
	return image.Pt(max(1, size.X*h/size.Y), h)
}

// shrink returns an image with fewer pixels, each the mean of those that it replaces, with 8 bits for each channel.
func shrink(src image.Image, size image.Point) image.Image {
	bounds := src.Bounds()
	dst := image.NewNRGBA(image.Rectangle{Max: size})
	for y := range size.Y {
		top, bottom := part(bounds.Min.Y, bounds.Dy(), y, size.Y)
		for x := range size.X {
			left, right := part(bounds.Min.X, bounds.Dx(), x, size.X)
			dst.Set(x, y, mean(src, image.Rect(left, top, right, bottom)))
		}
	}
	return dst
}

// part returns the bounds of the i-th of n parts of a length that begins at low.
func part(low, length, i, n int) (begin, end int) { return low + i*length/n, low + (i+1)*length/n }

// mean returns the mean color of a part of an image.
func mean(src image.Image, part image.Rectangle) color.Color {
	var sum [4]uint64
	for y := part.Min.Y; y < part.Max.Y; y++ {
		for x := part.Min.X; x < part.Max.X; x++ {
			r, g, b, a := src.At(x, y).RGBA()
			for i, v := range []uint32{r, g, b, a} {
				sum[i] += uint64(v)
			}
		}
	}
	n := uint64(part.Dx() * part.Dy())
	return color.RGBA64{uint16(sum[0] / n), uint16(sum[1] / n), uint16(sum[2] / n), uint16(sum[3] / n)}
}
