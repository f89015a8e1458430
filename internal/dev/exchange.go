package dev

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/webhook"
)

// runExchange pays a deposit address from an exchange that keeps a fee, and then the rest.
func runExchange(ctx context.Context, a *actor) error {
	const amount, fee = "25000000", "800000"
	if err := a.create(ctx, order{amount: amount, label: "A pair of shoes", collection: apitypes.CollectionDeposit}); err != nil {
		return err
	}
	a.printStep("deposit address", a.invoice.DepositAddress+", which can pay the merchant alone")
	first, err := a.transfer(ctx, "exchange", "24200000")
	if err != nil {
		return err
	}
	if err := a.event(ctx, webhook.PaymentReceived, first.Hex()); err != nil {
		return err
	}
	if err := a.check(ctx, func(inv apitypes.Invoice) string {
		return differs("status", string(inv.Status), "open") + differs("amountRemaining", inv.AmountRemaining, fee)
	}); err != nil {
		return err
	}
	a.printStep("invoice open", "the exchange kept a fee: "+usdc(fee)+" is missing")
	rest, err := a.transfer(ctx, "exchange", a.invoice.AmountRemaining)
	if err != nil {
		return err
	}
	if err := a.paid(ctx, rest); err != nil {
		return err
	}
	return a.swept(ctx, amount)
}

// swept waits until a final transaction has sent the balance of the deposit address to the merchant.
func (a *actor) swept(ctx context.Context, amount string) error {
	err := poll(ctx, func() (bool, error) {
		err := a.check(ctx, func(inv apitypes.Invoice) string { return differs("amountPaid", inv.AmountPaid, amount) })
		return a.invoice.SweptTxHash != "", err
	})
	if err != nil {
		return fmt.Errorf("wait for the sweep: %w", err)
	}
	left, err := a.world.Node.Balance(ctx, common.HexToAddress(a.invoice.DepositAddress))
	if err != nil {
		return err
	}
	if left.Sign() != 0 {
		return fmt.Errorf("%s has %s left after the sweep", a.invoice.DepositAddress, left)
	}
	a.printStep("swept", usdc(amount)+" to "+a.invoice.MerchantAddress+", transaction "+a.invoice.SweptTxHash)
	return nil
}
