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

// readVersion3 reads a code of version 3 and level M by the rules of ISO/IEC 18004: 29 modules wide, one block of 44
// data bytes, one alignment pattern. It does not correct errors.
func readVersion3(t *testing.T, m [][]bool) string {
	t.Helper()
	const size, dataBytes = 29, 44
	if len(m) != size {
		t.Fatalf("the code has %d modules, want %d", len(m), size)
	}
	format := 0 // bits 14 to 10 of the format, around the top left corner
	for x := range 5 {
		format = format<<1 | bit(m[8][x])
	}
	format ^= 0b10101
	if level := format >> 3; level != 0b00 {
		t.Fatalf("the level of error correction is %02b, want 00, that is M", level)
	}
	masked := []func(y, x int) bool{
		func(y, x int) bool { return (y+x)%2 == 0 },
		func(y, _ int) bool { return y%2 == 0 },
		func(_, x int) bool { return x%3 == 0 },
		func(y, x int) bool { return (y+x)%3 == 0 },
		func(y, x int) bool { return (y/2+x/3)%2 == 0 },
		func(y, x int) bool { return y*x%2+y*x%3 == 0 },
		func(y, x int) bool { return (y*x%2+y*x%3)%2 == 0 },
		func(y, x int) bool { return ((y+x)%2+y*x%3)%2 == 0 },
	}[format&7]
	pattern := func(y, x int) bool { // carries no data
		return y == 6 || x == 6 || (y < 9 && x < 9) || (y < 9 && x >= size-8) || (y >= size-8 && x < 9) ||
			(y >= 20 && y <= 24 && x >= 20 && x <= 24)
	}
	var bits []int
	up := true
	for right := size - 1; right > 0; right -= 2 {
		if right == 6 {
			right--
		}
		for i := range size {
			y := i
			if up {
				y = size - 1 - i
			}
			for _, x := range []int{right, right - 1} {
				if !pattern(y, x) {
					bits = append(bits, bit(m[y][x] != masked(y, x)))
				}
			}
		}
		up = !up
	}
	number := func(from, n int) (value int) {
		for _, b := range bits[from : from+n] {
			value = value<<1 | b
		}
		return value
	}
	length := number(4, 8)
	if mode := number(0, 4); mode != 0b0100 || length > dataBytes-2 {
		t.Fatalf("the code has mode %04b and length %d, want bytes", mode, length)
	}
	text := make([]byte, length)
	for i := range text {
		text[i] = byte(number(12+8*i, 8))
	}
	return string(text)
}

func bit(set bool) int {
	if set {
		return 1
	}
	return 0
}

func TestAddressCodeReadsAsTheAddress(t *testing.T) {
	for _, address := range []string{chain.Checksum(merchantAddress), chain.Checksum(payerAddress), chain.Checksum(tokenAddress)} {
		code, err := webpage.NewQRCode(address)
		expect.OK(t, err)
		if got := readVersion3(t, matrix(t, code)); got != address {
			t.Errorf("the code reads %q, want %q", got, address)
		}
	}
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
