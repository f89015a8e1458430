package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/contracts/hostile"
	"github.com/quittance/quittance/internal/test/anviltest"
	"github.com/quittance/quittance/internal/test/dbtest"
)

// entryOf is the part of a chain's configuration that a test changes.
type entryOf struct {
	id              int
	token, registry string
}

// TestExtraAnvilWrongConfig runs a service with a configuration that is right for one chain and wrong for
// others. The wrong ones stop and report the reason. The other chain works.
func TestExtraAnvilWrongConfig(t *testing.T) {
	t.Parallel()
	const nobody = "0x000000000000000000000000000000000000dEaD"
	const operator = "E2E_OTHER_OPERATOR_KEY"
	var chains []string
	says := make(map[string]string)
	var nodes []*anviltest.Anvil
	// wrong adds a chain with its own node and token, and a fault of its configuration.
	wrong := func(key, what string, configure func(entryOf) entryOf) {
		id := anviltest.ChainID + 1 + len(chains)
		node := anviltest.Start(t, anviltest.Options{ChainID: id})
		nodes = append(nodes, node)
		token := deployToken(t, node)
		e := configure(entryOf{id: id, token: token, registry: token})
		chains = append(chains, fmt.Sprintf(entry, key, e.id, node.Endpoint, finality, e.token, e.registry, operator))
		says[key] = what
	}
	wrong("wrong-id", "serves chain id 31338, but chain wrong-id has chain id 41338; correct its rpc or chainId",
		func(e entryOf) entryOf { e.id += 10_000; return e })
	wrong("wrong-decimals", "when asked for its decimals, but token USDC has 6; correct its address or decimals",
		func(e entryOf) entryOf {
			node := nodes[len(nodes)-1]
			e.token = node.Send(t, node.Accounts[0], "--create", hostile.DisperseMetaData.Bin).Contract
			return e
		})
	wrong("wrong-token", "there is no contract at "+nobody+" on chain wrong-token, where its token USDC should be; correct the address",
		func(e entryOf) entryOf { e.token = nobody; return e })
	wrong("wrong-registry", "there is no contract at "+nobody+" on chain wrong-registry, where its registry should be; correct the address",
		func(e entryOf) entryOf { e.registry = nobody; return e })
	s := newService(t, dbtest.MigratedPostgres(t), anviltest.Options{BlockTime: time.Second}, chains...)
	other := s.chain.Accounts[4]
	s.env = append(s.env, operator+"="+other.Key)
	r := s.begin()
	// No invoice is created on a chain that no node confirms.
	for key := range says {
		request := s.draft(1_000_000)
		request.ChainKey = key
		var refused *client.Error
		if _, err := s.api(r).CreateInvoice(t.Context(), request); !errors.As(err, &refused) || refused.Code != apitypes.CodeUnavailable {
			t.Errorf("an invoice on %s: %v", key, err)
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
	s.awaitPayment(r, made.ID, tx, apitypes.PaymentConfirmed)
	if inv := s.invoice(r, made.ID); inv.Status != apitypes.StatusPaid {
		t.Errorf("with misconfigured chains, the invoice is %s", inv.Status)
	}
	for _, node := range nodes {
		if sent := node.Cast(t, "nonce", other.Address); sent != "0" {
			t.Errorf("%s transactions were sent to what is no registry", sent)
		}
	}
}
