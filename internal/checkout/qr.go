package checkout

import (
	"fmt"
	"strings"

	"rsc.io/qr"
)

// quietZone is the width of the white margin of a QR code, in modules
// (ISO/IEC 18004).
const quietZone = 4

// qrCode is a QR code as an SVG path. Path fills the black modules of a square of Size
// modules, including the margin.
type qrCode struct {
	Size int
	Path string
}

// newQRCode encodes text with error correction level M. Each run of black modules in a row
// is one rectangle.
func newQRCode(text string) (qrCode, error) {
	code, err := qr.Encode(text, qr.M)
	if err != nil {
		return qrCode{}, fmt.Errorf("make a QR code of %d bytes: %w", len(text), err)
	}
	var path strings.Builder
	for y := range code.Size {
		for x := 0; x < code.Size; x++ {
			run := 0
			for code.Black(x+run, y) {
				run++
			}
			if run > 0 {
				fmt.Fprintf(&path, "M%d %dh%dv1h-%dz", x+quietZone, y+quietZone, run, run)
				x += run
			}
		}
	}
	return qrCode{Size: code.Size + 2*quietZone, Path: path.String()}, nil
}

// svg returns the code as an SVG document.
func (q qrCode) svg() []byte {
	return fmt.Appendf(nil, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[1]d" shape-rendering="crispEdges">`+
		`<path fill="#fff" d="M0 0h%[1]dv%[1]dH0z"/><path d="%[2]s"/></svg>`+"\n", q.Size, q.Path)
}
