package webpage

import (
	"fmt"
	"strings"

	"rsc.io/qr"
)

// QuietZone is the width of the white margin of a QR code, in modules (ISO/IEC 18004).
const QuietZone = 4

// QRCode is a QR code as an SVG path. Path fills the black modules of a square of Size modules, including the margin.
type QRCode struct {
	Size int
	Path string
}

// NewQRCode encodes text with error correction level M. Each run of black modules in a row
// is one rectangle, at an offset from the one before, which compresses well.
func NewQRCode(text string) (QRCode, error) {
	code, err := qr.Encode(text, qr.M)
	if err != nil {
		return QRCode{}, fmt.Errorf("make a QR code of %d bytes: %w", len(text), err)
	}
	var path strings.Builder
	left, top := -QuietZone, -QuietZone
	for y := range code.Size {
		for x := 0; x < code.Size; x++ {
			run := 0
			for code.Black(x+run, y) {
				run++
			}
			if run > 0 {
				fmt.Fprintf(&path, "m%d %dh%dv1h-%dz", x-left, y-top, run, run)
				left, top = x, y
				x += run
			}
		}
	}
	return QRCode{Size: code.Size + 2*QuietZone, Path: path.String()}, nil
}

// SVG returns the code as an SVG document.
func (q QRCode) SVG() []byte {
	return fmt.Appendf(nil, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[1]d" shape-rendering="crispEdges">`+
		`<path fill="#fff" d="M0 0h%[1]dv%[1]dH0z"/><path d="%[2]s"/></svg>`+"\n", q.Size, q.Path)
}
