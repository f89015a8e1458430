package chain

import (
	"encoding/hex"
	"fmt"

	"github.com/quittance/quittance/internal/invoice"
)

// TaggedTransfer returns the calldata of an ERC-20 transfer, followed by a tag, which the token ignores.
func TaggedTransfer(to invoice.Address, amount invoice.Amount, tag invoice.Hash) string {
	data := []byte{0xa9, 0x05, 0x9c, 0xbb} // transfer(address,uint256)
	data = append(data, make([]byte, 12)...)
	data = append(data, to[:]...)
	word := amount.Bytes()
	data = append(data, word[:]...)
	data = append(data, tag[:]...)
	return "0x" + hex.EncodeToString(data)
}

// TransferLink returns the ERC-681 URL of a transfer of a token.
func TransferLink(token invoice.Address, chainID uint64, to invoice.Address, amount invoice.Amount) string {
	return fmt.Sprintf("ethereum:%s@%d/transfer?address=%s&uint256=%s", Checksum(token), chainID, Checksum(to), amount)
}

// RefundClaimText is the text that a payer signs to name the recipient of a refund. It names everything that the claim
// depends on, so that a signature cannot be used for another claim.
func RefundClaimText(chainID uint64, r invoice.RefundRecord, to invoice.Address) string {
	return fmt.Sprintf("I made the payment below, and its refund is to go to this address.\n\n"+
		"Refund to: %s\nRefund: %s\nPayment: %s\nPaid from: %s\nPaid to: %s\nChain id: %d\nAmount in minor units: %s\n\n"+
		"Signing this moves no money.", Checksum(to), r.ID, r.PaymentID, Checksum(r.Payer), Checksum(r.From), chainID, r.Amount)
}
