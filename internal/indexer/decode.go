package indexer

import (
	"bytes"
	"fmt"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// authorizationTopic is the first topic of ERC-3009's log of an authorization.
var authorizationTopic = crypto.Keccak256Hash([]byte("AuthorizationUsed(address,bytes32)"))

// transferFrom is the selector of ERC-20's transfer of another's tokens.
var transferFrom = crypto.Keccak256([]byte("transferFrom(address,address,uint256)"))[:selectorLen]

// sweepDeposit is the selector of a deposit address's own function.
var sweepDeposit = crypto.Keccak256([]byte("sweep(address)"))[:selectorLen]

// Lengths of calldata, in bytes.
const (
	selectorLen = 4
	wordLen     = 32
)

// decoder reads the logs of one chain. It is pure, except that registries are added.
type decoder struct {
	chain      chain.Chain
	emitters   []emitter
	registries *registries
}

// emitter is a contract that logs a token's transfers in its own unit: unit of them make one minor unit of the token.
type emitter struct {
	chain.Emitter
	token *chain.Token
	unit  *big.Int // nil for 1
}

func newDecoder(c chain.Chain) decoder {
	d := decoder{chain: c, registries: newRegistries(c.Registry)}
	for _, token := range c.AllTokens() {
		t := &token
		for _, e := range t.Emitters() {
			em := emitter{Emitter: e, token: t}
			if e.Decimals > t.Decimals {
				em.unit = new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(e.Decimals-t.Decimals)), nil)
			}
			d.emitters = append(d.emitters, em)
		}
	}
	return d
}

// amount converts the value of a log into the token's minor units. A remainder below one minor unit is dropped, as the
// token itself does not show it.
func (e *emitter) amount(word [wordLen]byte) invoice.Amount {
	if e.unit != nil {
		n := new(big.Int).SetBytes(word[:])
		n.Quo(n, e.unit).FillBytes(word[:])
	}
	return invoice.AmountFromBytes(word)
}

// filter selects the logs that show which transactions matter. The evidence for a transfer is read from its receipt.
func (d decoder) filter() chain.LogFilter {
	var f chain.LogFilter
	for _, e := range d.emitters {
		f.Addresses = append(f.Addresses, common.Address(e.Address))
		if !slices.Contains(f.Topics, e.Topic) {
			f.Topics = append(f.Topics, e.Topic)
		}
	}
	if all := d.registries.addresses(); len(all) > 0 {
		f.Addresses = append(f.Addresses, all...)
		f.Topics = append(f.Topics, contracts.PaidTopic, contracts.OpenedTopic, contracts.ClosedTopic)
	}
	return f
}

// movement is a movement of a token as a log reports it.
type movement struct {
	token    *chain.Token
	from, to invoice.Address
	amount   invoice.Amount
}

// movement reads a log that reports a movement of one of the chain's tokens. It ignores logs of another contract or
// another shape, whatever their name. A contract that repeats the logs of its token's emitter is another contract, too,
// so each movement counts once.
func (d decoder) movement(log *types.Log) (m movement, ok bool) {
	if log.Removed || len(log.Topics) != 3 || len(log.Data) != wordLen {
		return movement{}, false
	}
	for i := range d.emitters {
		e := &d.emitters[i]
		if common.Address(e.Address) != log.Address || e.Topic != log.Topics[0] {
			continue
		}
		var fromOK, toOK bool
		m.token = e.token
		m.from, fromOK = account(log.Topics[1])
		m.to, toOK = account(log.Topics[2])
		m.amount = e.amount([wordLen]byte(log.Data))
		return m, fromOK && toOK
	}
	return movement{}, false
}

// account reads an indexed address.
func account(word common.Hash) (invoice.Address, bool) {
	a := common.BytesToAddress(word[:])
	return invoice.Address(a), common.BytesToHash(a[:]) == word
}

// spender names an account and the token that it spends.
type spender struct{ token, account invoice.Address }

// authorization reads an AuthorizationUsed log of one of the chain's tokens.
func (d decoder) authorization(log *types.Log) (by spender, nonce invoice.Hash, ok bool) {
	if log.Removed || len(log.Topics) != 3 || log.Topics[0] != authorizationTopic || len(log.Data) != 0 {
		return spender{}, invoice.Hash{}, false
	}
	from, ok := account(log.Topics[1])
	_, known := d.chain.TokenAt(invoice.Address(log.Address))
	return spender{invoice.Address(log.Address), from}, invoice.Hash(log.Topics[2]), ok && known
}

// paid reads a Paid log of one of the chain's registries. The id in the log is a hash that covers the registry's
// address, so it cannot be the id of another registry's invoice.
func (d decoder) paid(log *types.Log) (contracts.Paid, bool) {
	if !d.fromRegistry(log) {
		return contracts.Paid{}, false
	}
	p, err := contracts.ParsePaid(*log)
	return p, err == nil
}

func (d decoder) fromRegistry(log *types.Log) bool {
	return !log.Removed && d.registries.has(log.Address)
}

// registryEvents returns the changes of commitments that the logs report, in the logs' order.
func (d decoder) registryEvents(logs []types.Log) []ledger.RegistryEvent {
	var events []ledger.RegistryEvent
	for i := range logs {
		if !d.fromRegistry(&logs[i]) {
			continue
		}
		e := ledger.RegistryEvent{Registry: invoice.Address(logs[i].Address), TxHash: invoice.Hash(logs[i].TxHash)}
		if p, err := contracts.ParsePaid(logs[i]); err == nil {
			e.Kind, e.CommitmentID, e.Merchant = ledger.RegistryPaid, invoice.Hash(p.ID), invoice.Address(p.Merchant)
		} else if id, err := contracts.ParseOpened(logs[i]); err == nil {
			e.Kind, e.CommitmentID = ledger.RegistryOpened, invoice.Hash(id)
		} else if id, err := contracts.ParseClosed(logs[i]); err == nil {
			e.Kind, e.CommitmentID = ledger.RegistryClosed, invoice.Hash(id)
		} else {
			continue
		}
		events = append(events, e)
	}
	return events
}

// accounts returns each account in the logs that a token was moved from or to, once.
func (d decoder) accounts(logs []types.Log) []invoice.Address {
	var accounts []invoice.Address
	seen := map[invoice.Address]bool{}
	for i := range logs {
		m, ok := d.movement(&logs[i])
		if !ok || m.amount.IsZero() {
			continue
		}
		for _, a := range []invoice.Address{m.from, m.to} {
			if !seen[a] {
				seen[a] = true
				accounts = append(accounts, a)
			}
		}
	}
	return accounts
}

// touching returns the transactions with logs that move a token from or to a watched account, each once and in the
// logs' order.
func (d decoder) touching(logs []types.Log, watched map[invoice.Address]bool) []common.Hash {
	var txs []common.Hash
	seen := map[common.Hash]bool{}
	for i := range logs {
		m, ok := d.movement(&logs[i])
		if ok && m.touches(watched) && !seen[logs[i].TxHash] {
			seen[logs[i].TxHash] = true
			txs = append(txs, logs[i].TxHash)
		}
	}
	return txs
}

// touches reports whether m moves anything from or to a watched account.
func (m movement) touches(watched map[invoice.Address]bool) bool {
	return !m.amount.IsZero() && (watched[m.from] || watched[m.to])
}

// located is a movement with its position in its receipt and the evidence for the invoice that it pays.
type located struct {
	movement
	ordinal  int
	evidence invoice.Evidence
	swept    bool // the deposit factory's event that it swept a deposit address
}

// transfers returns the movements from or to watched accounts that the receipt of a transaction in block h reports, in
// the logs' order, with the evidence from its logs and its input. It fails if the receipt names another block or a
// failed transaction, because the transaction's logs were reported before.
func (d decoder) transfers(h invoice.Header, r *chain.Receipt, input []byte, watched map[invoice.Address]bool) ([]invoice.Transfer, error) {
	if invoice.Hash(r.BlockHash) != h.Hash {
		return nil, fmt.Errorf("transaction %s was read in block %s, but its receipt names block %s", r.TxHash, h.Hash, r.BlockHash)
	}
	if !r.Succeeded() {
		return nil, fmt.Errorf("transaction %s has logs in block %s, but its receipt says that it failed", r.TxHash, h.Hash)
	}
	var found []invoice.Transfer
	for _, l := range d.locate(r.Logs) {
		if !l.touches(watched) {
			continue
		}
		if l.authorizedBy(r, input) {
			l.evidence.Calldata = calldataTag(input)
		}
		if !watched[l.from] && (l.swept || l.sweptDirectly(r, input)) {
			l.evidence.Registry = invoice.SweptElsewhere
		}
		found = append(found, invoice.Transfer{
			Position: invoice.Position{
				BlockNumber: h.Number, BlockHash: h.Hash, BlockTime: h.Time, LogIndex: int(r.Logs[l.ordinal].Index),
			},
			ChainKey: d.chain.Key, TxHash: invoice.Hash(r.TxHash), Ordinal: l.ordinal,
			Token: l.token.Address, Currency: l.token.Currency,
			From: l.from, To: l.to, Amount: l.amount, Evidence: l.evidence,
		})
	}
	return found, nil
}

// locate finds the movements in the logs of one transaction. An authorization belongs to the next movement of its token
// from its authorizer. A Paid event belongs to the nearest movement before it with the same values that no other Paid
// event matches. A Swept event belongs to the nearest movement before it from the deposit address to its merchant.
func (d decoder) locate(logs []types.Log) []located {
	var found []located
	nonces := map[spender]invoice.Hash{}
	for i := range logs {
		log := &logs[i]
		if m, ok := d.movement(log); ok {
			l := located{movement: m, ordinal: i}
			by := spender{m.token.Address, m.from}
			l.evidence.Authorization = nonces[by]
			delete(nonces, by)
			found = append(found, l)
		} else if by, nonce, ok := d.authorization(log); ok {
			nonces[by] = nonce
		} else if p, ok := d.paid(log); ok {
			for j := len(found) - 1; j >= 0; j-- {
				if found[j].evidence.Registry.IsZero() && found[j].matches(p) {
					found[j].evidence.Registry = invoice.Hash(p.ID)
					break
				}
			}
		} else if s, ok := d.sweptBy(log); ok {
			markSwept(found, s)
		}
	}
	return found
}

// markSwept marks the newest movement that matches a Swept event.
func markSwept(found []located, s contracts.Swept) {
	for i := range slices.Backward(found) {
		if found[i].isSweep(s) {
			found[i].swept = true
			return
		}
	}
}

// sweptBy reads a Swept log of the chain's deposit factory.
func (d decoder) sweptBy(log *types.Log) (contracts.Swept, bool) {
	if log.Removed || d.chain.DepositFactory.IsZero() || invoice.Address(log.Address) != d.chain.DepositFactory {
		return contracts.Swept{}, false
	}
	s, err := contracts.ParseSwept(*log)
	return s, err == nil
}

// isSweep reports whether a Swept event is about the movement m.
func (m movement) isSweep(s contracts.Swept) bool {
	return m.token.Address == invoice.Address(s.Token) && m.from == invoice.Address(s.Deposit) && m.to == invoice.Address(s.Merchant)
}

// sweptDirectly reports whether the transaction calls the function by which a deposit address sends what it has,
// without the factory.
func (m movement) sweptDirectly(r *chain.Receipt, input []byte) bool {
	return r.To != nil && invoice.Address(*r.To) == m.from && len(input) == selectorLen+wordLen && bytes.HasPrefix(input, sweepDeposit)
}

// matches reports whether a Paid event is about the movement m.
func (m movement) matches(p contracts.Paid) bool {
	var word [wordLen]byte
	p.Amount.FillBytes(word[:])
	return m.token.Address == invoice.Address(p.Token) && m.from == invoice.Address(p.Payer) &&
		m.to == invoice.Address(p.Merchant) && m.amount == invoice.AmountFromBytes(word)
}

// authorizedBy reports whether the payer of m determined the calldata: it sent the transaction, or the calldata is the
// token's transferFrom with the arguments of m, which only an account that the payer approved can call. In any other
// transaction, such as a bundle or a relayed authorization, another account could name an invoice.
func (m movement) authorizedBy(r *chain.Receipt, input []byte) bool {
	if invoice.Address(r.From) == m.from {
		return true
	}
	amount := m.amount.Bytes()
	return r.To != nil && invoice.Address(*r.To) == m.token.Address && bytes.HasPrefix(input, slices.Concat(
		transferFrom, common.LeftPadBytes(m.from[:], wordLen), common.LeftPadBytes(m.to[:], wordLen), amount[:]))
}

// calldataTag returns the last word of calldata that is longer than a selector and one argument. A tagged transfer has
// its invoice's id there.
func calldataTag(input []byte) invoice.Hash {
	if len(input) <= selectorLen+wordLen {
		return invoice.Hash{}
	}
	return invoice.Hash(input[len(input)-wordLen:])
}
