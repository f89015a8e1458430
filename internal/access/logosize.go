package access

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
)

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
