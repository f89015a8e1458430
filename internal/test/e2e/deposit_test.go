package e2e

import (
	"fmt"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/test/dbtest"
)

// depositConfig configures a service without a key for the chain, and a merchant that collects by
// deposit addresses.
const depositConfig = `
listen: 127.0.0.1:0
database: %s
merchants: [{id: acme, collection: deposit}]
` + keySetting + `
chains:
  - chainKey: testnet
    idleInterval: 1s
    chainId: %d
    rpc: ["%s"]
    finality: 2
    tokens: [{currency: USDC, address: "%s"}]
    depositFactory: "%s"
`

// TestExtraDeposit pays an invoice at its deposit address in two parts, as from an exchange that kept a fee
// of the first. The service is killed in between. Then a stranger sweeps the address: the money goes
// to the merchant, and does not count as a second payment.
func TestExtraDeposit(t *testing.T) {
	t.Parallel()
	for name, database := range dbtest.Databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newServedWorld(t)
			info := g.info.Load()
			g.configure(fmt.Sprintf(depositConfig, database(t), info.Chain.ChainID, info.Chain.RPCURL, info.Chain.Token, info.Chain.DepositFactory))
			payer, c := g.chain.payer(), g.serve()
			made := g.create(g.draft("1000000"))
			factory := common.HexToAddress(info.Chain.DepositFactory)
			merchant := common.HexToAddress(made.Invoice.MerchantAddress)
			deposit := contracts.DepositAddress(factory, merchant, common.HexToHash(made.OnChainInvoiceID))
			if got := common.HexToAddress(made.Invoice.DepositAddress); got != deposit || made.Invoice.TransferAmount != "" {
				t.Fatalf("the deposit address is %s, want %s; transfer amount %q", got, deposit, made.Invoice.TransferAmount)
			}

			payer.mustTransfer(t, deposit.Hex(), "990000", nil)
			g.awaitInvoice(made.ID, func(inv apitypes.Invoice) bool { return inv.AmountPaid == "990000" })
			c.kill()
			payer.mustTransfer(t, deposit.Hex(), "10000", nil)
			g.serve()
			paid := g.awaitInvoice(made.ID, func(inv apitypes.Invoice) bool { return inv.Status == apitypes.StatusPaid })
			if paid.Exception != "" || paid.SweptTxHash != "" {
				t.Errorf("the paid invoice has the exception %q and the sweep %q", paid.Exception, paid.SweptTxHash)
			}

			stranger := g.newWallet("")
			if _, err := payer.send(g.ctx, stranger.address, units(t, "1000000000000000000"), nil, nil); err != nil {
				t.Fatal(err)
			}
			swept, err := stranger.send(g.ctx, factory, nil, contracts.NewDepositFactory().PackSweep([]contracts.Sweep{{
				Merchant: merchant, Id: common.HexToHash(made.OnChainInvoiceID), Token: common.HexToAddress(info.Chain.Token),
			}}), nil)
			if err != nil || swept.Status != types.ReceiptStatusSuccessful {
				t.Fatalf("sweep: %v, %+v", err, swept)
			}
			g.awaitInvoice(made.ID, func(inv apitypes.Invoice) bool { return inv.SweptTxHash == swept.TxHash.Hex() })
			if got := g.balance(merchant.Hex()); got.Cmp(units(t, "1000000")) != 0 {
				t.Errorf("the merchant has %s, want 1000000", got)
			}
			if got := g.payments(made.ID); len(got) != 2 || common.HexToAddress(got[0].To) != deposit || common.HexToAddress(got[1].To) != deposit {
				t.Errorf("payments %+v, want 2 to %s", got, deposit)
			}
		})
	}
}
