package checkout

import (
	"fmt"
	"strings"
	"testing"

	"rsc.io/qr"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/web/webpage"
)

// matrix draws the path of a code, without its margin.
func matrix(t *testing.T, c webpage.QRCode) [][]bool {
	t.Helper()
	size := c.Size - 2*webpage.QuietZone
	m := make([][]bool, size)
	for y := range m {
		m[y] = make([]bool, size)
	}
	var x, y int
	for run := range strings.SplitSeq(strings.TrimSuffix(c.Path, "z"), "z") {
		var right, down, n, back int
		if _, err := fmt.Sscanf(run, "m%d %dh%dv1h-%d", &right, &down, &n, &back); err != nil || n != back {
			t.Fatalf("the path has %q: %v", run, err)
		}
		x, y = x+right, y+down
		for i := range n {
			m[y-webpage.QuietZone][x-webpage.QuietZone+i] = true
		}
	}
	return m
}

func TestPathDrawsEveryModule(t *testing.T) {
	link := "ethereum:" + chain.Checksum(tokenAddress) + "@11155420/transfer?address=" + chain.Checksum(merchantAddress) +
		"&uint256=" + strings.Repeat("9", 78)
	code, err := webpage.NewQRCode(link)
	expect.OK(t, err)
	want, err := qr.Encode(link, qr.M)
	expect.OK(t, err)
	m := matrix(t, code)
	if len(m) != want.Size {
		t.Fatalf("the path draws %d modules, want %d", len(m), want.Size)
	}
	for y := range m {
		for x := range m {
			if m[y][x] != want.Black(x, y) {
				t.Fatalf("module %d, %d is black: %t, want the other", x, y, m[y][x])
			}
		}
	}
}

// The codes are of the address, the transfer and the page. The first one is chosen.
func TestCodesOfThePage(t *testing.T) {
	w := newWorld()
	w.publicURL = "https://pay.example"
	pay := w.page(t).id(t, "pay")
	codes, choices := pay.named("svg"), pay.named("input")
	texts := []string{
		chain.Checksum(merchantAddress),
		"ethereum:" + chain.Checksum(tokenAddress) + "@1337/transfer?address=" + chain.Checksum(merchantAddress) + "&uint256=4900123",
		"https://pay.example/checkout/" + testID,
	}
	if len(codes) != len(texts) || len(choices) != len(texts) {
		t.Fatalf("the page has %d codes and %d choices, want %d", len(codes), len(choices), len(texts))
	}
	for i, text := range texts {
		want, err := webpage.NewQRCode(text)
		expect.OK(t, err)
		if codes[i].named("path")[0].attrs["d"] != want.Path {
			t.Errorf("code %d is not of %s", i+1, text)
		}
		if _, checked := choices[i].attrs["checked"]; checked != (i == 0) {
			t.Errorf("code %d is chosen: %t", i+1, checked)
		}
	}
}

func TestTooLongForACode(t *testing.T) {
	if _, err := webpage.NewQRCode(strings.Repeat("a", 3000)); err == nil {
		t.Error("3000 bytes fit a QR code")
	}
}
