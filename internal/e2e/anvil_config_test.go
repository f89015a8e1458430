package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/anviltest"
	"github.com/quittance/quittance/internal/store/storetest"
)

// TestAnvilWrongConfig runs a service whose configuration is right for one
// chain and wrong for others: those stop and say what is wrong, and the one
// works.
func TestAnvilWrongConfig(t *testing.T) {
	t.Parallel()
	var chains []string
	// The token of a service is its deployer's first contract.
	const token = "0x5FbDB2315678afecb367f032d93F642f64180aa3"
	const nobody = "0x000000000000000000000000000000000000dEaD"
	operator := "E2E_OTHER_OPERATOR_KEY"
	wrong := func(key string, id int, token string, decimals int, registry string) {
		chains = append(chains, fmt.Sprintf(entry, key, id, "NODE", finality, token, decimals, registry, operator))
	}
	wrong("wrong-id", anviltest.ChainID+1, token, 6, token)
	wrong("wrong-decimals", anviltest.ChainID, token, 18, token)
	wrong("wrong-token", anviltest.ChainID, nobody, 6, token)
	wrong("wrong-registry", anviltest.ChainID, token, 6, nobody)
	says := map[string]string{
		"wrong-id":       "serves chain id 31337, but chain wrong-id has chain id 31338; correct its rpc or chainId",
		"wrong-decimals": "but token USDC has 18; correct its address or decimals",
		"wrong-token":    "there is no contract at " + nobody + " on chain wrong-token, where its token USDC should be; correct the address",
		"wrong-registry": "there is no contract at " + nobody + " on chain wrong-registry, where its registry should be; correct the address",
	}
	s := newService(t, storetest.Postgres(t), anviltest.Options{BlockTime: time.Second}, chains...)
	if s.token != strings.ToLower(token) {
		t.Fatalf("the token is at %s; want %s", s.token, token)
	}
	other := s.chain.Accounts[4]
	s.env = append(s.env, operator+"="+other.Key)
	r := s.begin()
	// Their invoices are taken, so that there is something to write.
	for key := range says {
		request := s.draft(1_000_000)
		request.ChainKey = key
		if _, err := s.api(r).CreateInvoice(t.Context(), request); err != nil {
			t.Error(err)
		}
	}
	h := s.awaitHealth(r, func(h health) bool {
		known := 0
		for _, c := range h.Chains {
			if c.ChainKey == "anvil" && c.Ready || c.ChainKey != "anvil" && c.Error != "" {
				known++
			}
		}
		return known == len(h.Chains)
	})
	if h.status != http.StatusServiceUnavailable {
		t.Errorf("/readyz answers %d; want 503", h.status)
	}
	for _, c := range h.Chains {
		want, wrong := says[c.ChainKey]
		if !wrong {
			continue
		}
		if c.Ready || !strings.Contains(c.Error, want) {
			t.Errorf("/readyz says of %s: ready %v, %s; want %s", c.ChainKey, c.Ready, c.Error, want)
		}
		s.awaitLog(r, want)
	}

	made := s.create(r, 2_000_000)
	tx := s.payTransferAmount(made)
	s.awaitPayment(r, made.ID, tx, client.PaymentConfirmed)
	if inv := s.invoice(r, made.ID); inv.Status != client.StatusPaid {
		t.Errorf("beside chains that are wrong, the invoice is %s", inv.Status)
	}
	if sent := s.chain.Cast(t, "nonce", other.Address); sent != "0" {
		t.Errorf("%s transactions were sent to what is no registry", sent)
	}
}
