package e2e

import (
	"context"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/webhook"
)

// movement is a transfer of the token on the chain.
type movement struct {
	tx        common.Hash
	ordinal   int // of the log in its transaction
	from, to  common.Address
	amount    *big.Int
	block     uint64
	blockTime int64
}

// movements reads every transfer of the token.
func (a *wallet) movements(ctx context.Context) ([]movement, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	node, err := a.node(ctx)
	if err != nil {
		return nil, err
	}
	return movements(ctx, node, common.HexToAddress(a.info().Chain.Token))
}

// movements reads every transfer of a token from a node, in the chain's order.
func movements(ctx context.Context, node *ethclient.Client, token common.Address) ([]movement, error) {
	logs, err := node.FilterLogs(ctx, ethereum.FilterQuery{
		FromBlock: new(big.Int), Addresses: []common.Address{token},
		Topics: [][]common.Hash{{crypto.Keccak256Hash([]byte("Transfer(address,address,uint256)"))}},
	})
	if err != nil {
		return nil, err
	}
	var all []movement
	for _, l := range logs {
		receipt, err := node.TransactionReceipt(ctx, l.TxHash)
		if err != nil {
			return nil, err
		}
		header, err := node.HeaderByHash(ctx, l.BlockHash)
		if err != nil {
			return nil, err
		}
		all = append(all, movement{
			tx: l.TxHash, ordinal: int(l.Index - receipt.Logs[0].Index),
			from: common.BytesToAddress(l.Topics[1][:]), to: common.BytesToAddress(l.Topics[2][:]),
			amount: new(big.Int).SetBytes(l.Data), block: l.BlockNumber, blockTime: int64(header.Time),
		})
	}
	return all, nil
}

// statusOf returns a commitment's status in the registry.
func (a *wallet) statusOf(ctx context.Context, id common.Hash) (contracts.Status, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	node, err := a.node(ctx)
	if err != nil {
		return 0, err
	}
	return contracts.ReadStatus(ctx, node, common.HexToAddress(a.info().Chain.Registry), id)
}

// auditor compares the service's state with the shops' actions and with the chain.
type auditor struct {
	*world
	shops    []*shop
	receiver *receiver
	chain    []movement

	wrong    []string
	expected map[string]bool // events, as "type subject"
}

func (a *auditor) fault(format string, args ...any) {
	a.wrong = append(a.wrong, fmt.Sprintf(format, args...))
}

// audit returns the differences of the final state.
func (a *auditor) audit(ctx context.Context) []string {
	a.wrong, a.expected = nil, make(map[string]bool)
	invoices := make(map[string][]apitypes.Invoice) // by merchant and amount
	total := 0
	for inv, err := range a.api().Invoices(ctx, client.InvoiceFilter{PageSize: 200}) {
		if err != nil {
			return []string{err.Error()}
		}
		key := inv.MerchantID + " " + inv.Amount
		invoices[key] = append(invoices[key], inv)
		total++
	}
	for _, s := range a.shops {
		for _, o := range s.orders {
			found := invoices[s.id+" "+o.request.Amount]
			total -= len(found)
			a.order(s, o, found)
		}
	}
	if total != 0 {
		a.fault("%d invoices that nobody asked for", total)
	}
	a.payments(ctx)
	a.events()
	if len(a.wrong) == 0 {
		a.commitments(ctx)
	}
	return a.wrong
}

// order checks the one invoice of an order.
func (a *auditor) order(s *shop, o *order, found []apitypes.Invoice) {
	switch {
	case len(found) > 1:
		a.fault("%s %s: one request made %d invoices", s.id, o.request.Amount, len(found))
		return
	case len(found) == 0:
		if o.answer != nil {
			a.fault("%s: an invoice was lost", o.answer.ID)
		}
		return // the request without a response was not processed
	case o.answer != nil && found[0].ID != o.answer.ID:
		a.fault("%s: answered, but the invoice is %s", o.answer.ID, found[0].ID)
		return
	}
	inv := found[0]
	a.expected[webhook.InvoiceCreated+" "+inv.ID] = true
	amount, paid, inTime, back := units(a, inv.Amount), new(big.Int), new(big.Int), new(big.Int)
	settled := ""
	for _, m := range a.chain {
		onlyOpen, mine := o.payments[m.tx]
		switch {
		case mine && (!onlyOpen || m.blockTime <= inv.ExpiresAt):
			a.expected[webhook.PaymentReceived+" "+m.id(invoice.PrefixPayment, chain.Local)] = true
			paid.Add(paid, m.amount)
			if m.blockTime <= inv.ExpiresAt && inTime.Cmp(amount) < 0 {
				if inTime.Add(inTime, m.amount); inTime.Cmp(amount) >= 0 {
					settled = m.tx.Hex()
				}
			}
		case o.refunds[m.tx]:
			a.expected[webhook.PaymentRefunded+" "+m.id(invoice.PrefixRefund, chain.Local)] = true
			back.Add(back, m.amount)
		}
	}
	status, event := apitypes.StatusExpired, webhook.InvoiceExpired
	if settled != "" {
		status, event = apitypes.StatusPaid, webhook.InvoicePaid
	}
	a.expected[event+" "+inv.ID] = true
	if inv.Status != status || inv.SettledTxHash != settled || inv.AmountPaid != paid.String() || inv.AmountRefunded != back.String() {
		a.fault("%s: %s by %q, paid %s, refunded %s; on the chain it is %s by %q, paid %s, refunded %s", inv.ID,
			inv.Status, inv.SettledTxHash, inv.AmountPaid, inv.AmountRefunded, status, settled, paid, back)
	}
}

// id returns the id of a payment or refund on a chain.
func (m movement) id(prefix, chainKey string) string {
	return invoice.TransferID(prefix, chainKey, invoice.Hash(m.tx), m.ordinal)
}

// payments compares the listed payments with the token's logs.
func (a *auditor) payments(ctx context.Context) {
	want := make(map[string]string)
	for _, m := range a.chain {
		for _, s := range a.shops {
			if m.to == s.till.address {
				want[m.id(invoice.PrefixPayment, chain.Local)] = fmt.Sprintf("%s %s from %s to %s in block %d for %q",
					m.tx, m.amount, m.from, m.to, m.block, s.invoiceOf(m))
			}
		}
	}
	for p, err := range a.api().Payments(ctx, client.PaymentFilter{PageSize: 200}) {
		if err != nil {
			a.fault("%v", err)
			return
		}
		got := fmt.Sprintf("%s %s from %s to %s in block %d for %q", p.TxHash, p.Amount, p.From, p.To, p.BlockNumber, p.InvoiceID)
		if want[p.ID] != got {
			a.fault("the payment %s is listed as\n\t%s; on the chain it is\n\t%s", p.ID, got, want[p.ID])
		}
		want[p.ID] = "" // a second one of this id would be a difference
		delete(want, p.ID)
	}
	for id, m := range want {
		a.fault("the payment %s is not listed: %s", id, m)
	}
}

// invoiceOf returns the invoice that a payment is for, if any.
func (s *shop) invoiceOf(m movement) string {
	for _, o := range s.orders {
		onlyOpen, mine := o.payments[m.tx]
		if mine && (!onlyOpen || m.blockTime <= o.request.ExpiresAt) {
			return o.answer.ID
		}
	}
	return ""
}

// events compares the received events with the expected ones.
func (a *auditor) events() {
	got, problems := a.receiver.got()
	a.wrong = append(a.wrong, problems...)
	missing := maps.Clone(a.expected)
	came := make(map[string]string)
	for _, e := range got {
		name := e.Type + " " + e.Subject
		if other, twice := came[name]; twice {
			a.fault("two events %s: %s and %s", name, other, e.ID)
		}
		came[name] = e.ID
		if !a.expected[name] {
			a.fault("the event %s should not be: %s", e.ID, name)
		}
		if e.accepted > 0 {
			delete(missing, name)
		}
	}
	for name := range missing {
		a.fault("the event did not come: %s", name)
	}
}

// commitments checks every invoice's status in the registry.
func (a *auditor) commitments(ctx context.Context) {
	info := a.info.Load().Chain
	for inv, err := range a.api().Invoices(ctx, client.InvoiceFilter{PageSize: 200}) {
		if err != nil {
			a.fault("%v", err)
			return
		}
		id := common.Hash(chain.CommitmentID(info.ChainID, invoice.Address(common.HexToAddress(info.Registry)), a.terms(inv), inv.ID))
		want := contracts.StatusClosed
		for _, s := range a.shops {
			for _, o := range s.orders {
				if o.kind == registry && len(o.payments) > 0 && o.answer.ID == inv.ID {
					want = contracts.StatusPaid
				}
			}
		}
		got, err := a.shops[0].customer.statusOf(ctx, id)
		if err != nil || got != want {
			a.fault("the commitment of %s is %s (%v); it should be %s", inv.ID, got, err, want)
		}
	}
}

// shown formats a list of differences, shortened.
func shown(faults []string) string {
	const most = 25
	slices.Sort(faults)
	text := strings.Join(faults[:min(len(faults), most)], "\n")
	if len(faults) > most {
		text += fmt.Sprintf("\nand %d more", len(faults)-most)
	}
	return text
}

// summary logs how much was tried.
func (a *auditor) summary() {
	orders, paid, attempts := 0, 0, 0
	for _, s := range a.shops {
		orders += len(s.orders)
		for _, o := range s.orders {
			paid += len(o.payments)
		}
	}
	events, _ := a.receiver.got()
	for _, e := range events {
		attempts += e.attempts
	}
	a.Logf("%d orders, %d payments, %d events in %d deliveries", orders, paid, len(events), attempts)
}
