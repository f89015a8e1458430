package chain

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/accounts"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/expect"
)

// testKey is the first account of every development chain.
const testKey = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"

func sign(t testing.TB, text string) (signature string, by invoice.Address) {
	t.Helper()
	key, err := crypto.HexToECDSA(testKey)
	expect.OK(t, err)
	sig, err := crypto.Sign(accounts.TextHash([]byte(text)), key)
	expect.OK(t, err)
	return "0x" + hex.EncodeToString(sig), invoice.Address(crypto.PubkeyToAddress(key.PublicKey))
}

func TestPersonalSigner(t *testing.T) {
	const text = "a text\nwith two lines, and é"
	signature, signer := sign(t, text)
	last := len(signature) - 2
	recovery := signature[last:]
	legacy := map[string]string{"00": "1b", "01": "1c"}[recovery]
	for name, s := range map[string]string{
		"as crypto.Sign writes it": signature,
		"as wallets write it":      signature[:last] + legacy,
		"in upper case":            "0x" + strings.ToUpper(signature[2:]),
	} {
		if got, err := PersonalSigner(text, s); err != nil || got != signer {
			t.Errorf("%s: signed by %s, %v; want %s", name, got, err, signer)
		}
	}
	if got, err := PersonalSigner(text+" ", signature); err == nil && got == signer {
		t.Error("the signature holds for another text")
	}
	if !bytes.Equal(PersonalHash(text), accounts.TextHash([]byte(text))) {
		t.Error("the hash is not go-ethereum's")
	}
	// The other s for the same signature, which a wallet never makes.
	highS := signature[:66] + "f" + signature[67:]
	for name, s := range map[string]string{
		"nothing": "", "no prefix": signature[2:], "short": signature[:last], "long": signature + "00",
		"no hex": signature[:last] + "zz", "recovery id 2": signature[:last] + "02", "recovery id 35": signature[:last] + "23",
		"zeros": "0x" + strings.Repeat("0", 130), "large s": highS,
	} {
		if got, err := PersonalSigner(text, s); err == nil {
			t.Errorf("%s: signed by %s, want an error", name, got)
		}
	}
}

// TestClaimTextNamesWhatItIsFor changes each part of a claim: a signature of one text must not be valid for another.
func TestClaimTextNamesWhatItIsFor(t *testing.T) {
	inv := invoice.Invoice{Terms: invoice.Terms{Merchant: invoice.Address{1}}, ID: "inv_1", MerchantID: "shop"}
	tx := invoice.Hash{2}
	text := ClaimText(1, inv, tx)
	signature, signer := sign(t, text)
	other, at := inv, inv
	other.ID, at.Merchant = "inv_2", invoice.Address{9}
	for name, changed := range map[string]string{
		"invoice": ClaimText(1, other, tx), "address": ClaimText(1, at, tx),
		"chain": ClaimText(10, inv, tx), "transaction": ClaimText(1, inv, invoice.Hash{3}),
	} {
		if got, err := PersonalSigner(changed, signature); err == nil && got == signer {
			t.Errorf("the signature holds for another %s", name)
		}
	}
}

func FuzzPersonalSigner(f *testing.F) {
	signature, _ := sign(f, "text")
	f.Add("text", signature)
	f.Add("", "0x")
	f.Add("text", "0x"+strings.Repeat("f", 130))
	f.Fuzz(func(t *testing.T, text, signature string) {
		by, err := PersonalSigner(text, signature)
		if err != nil {
			if !by.IsZero() {
				t.Errorf("an error came with the account %s", by)
			}
			return
		}
		if again, err := PersonalSigner(text, signature); err != nil || again != by {
			t.Errorf("signed by %s, then by %s, %v", by, again, err)
		}
	})
}
