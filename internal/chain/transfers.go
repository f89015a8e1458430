package chain

import (
	"encoding/hex"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/quittance/quittance/internal/invoice"
)

// wordLen is the length of an EVM word, in bytes.
const wordLen = 32

// transfers returns the transfers of a mined transaction: the transfers in its logs in order, of
// configured tokens and of any other ERC-20 contract, and then the native coin that the transaction
// itself transfers. Transfers of 0 are left out, because anyone can emit them.
func (s Source) transfers(r *Receipt, tx *inspectedTransaction) []Transfer {
	var found []Transfer
	for i := range r.Logs {
		if m, ok := s.transfer(&r.Logs[i]); ok && !m.Amount.IsZero() {
			found = append(found, m)
		}
	}
	if tx == nil || tx.Value == nil || tx.To == nil || tx.Value.N.Sign() <= 0 || tx.Value.N.BitLen() > 256 || s.nativeIsToken() {
		return found
	}
	var word [wordLen]byte
	tx.Value.N.FillBytes(word[:])
	return append(found, Transfer{
		From: invoice.Address(tx.From), To: invoice.Address(*tx.To), Amount: invoice.AmountFromBytes(word),
	})
}

// nativeIsToken reports whether a token of the chain is the network's native coin. Another contract
// logs such a coin's transfers.
func (s Source) nativeIsToken() bool {
	for _, t := range s.Chain.AllTokens() {
		if t.Movements != nil {
			return true
		}
	}
	return false
}

// transfer decodes the log of a transfer.
func (s Source) transfer(log *types.Log) (Transfer, bool) {
	if log.Removed || len(log.Topics) != 3 || len(log.Data) != wordLen {
		return Transfer{}, false
	}
	m := Transfer{
		Token: invoice.Address(log.Address), Amount: invoice.AmountFromBytes([wordLen]byte(log.Data)),
		From: invoice.Address(common.BytesToAddress(log.Topics[1][:])), To: invoice.Address(common.BytesToAddress(log.Topics[2][:])),
	}
	for _, t := range s.Chain.AllTokens() {
		for _, e := range t.Emitters() {
			if common.Address(e.Address) == log.Address && e.Topic == log.Topics[0] {
				m.Token, m.Currency, m.Amount = t.Address, t.Currency, scaled(m.Amount, e.Decimals-t.Decimals)
				return m, true
			}
		}
	}
	if _, known := s.Chain.TokenAt(m.Token); known {
		return m, false // another contract logs its transfers
	}
	return m, log.Topics[0] == TransferTopic
}

// scaled returns an amount without its last decimals.
func scaled(a invoice.Amount, decimals int) invoice.Amount {
	if decimals <= 0 {
		return a
	}
	word := a.Bytes()
	n := new(big.Int).SetBytes(word[:])
	n.Quo(n, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(decimals)), nil)).FillBytes(word[:])
	return invoice.AmountFromBytes(word)
}

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
