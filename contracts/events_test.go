package contracts_test

import (
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/test/expect"
)

func TestTopicsAreTheContracts(t *testing.T) {
	events := contracts.NewInvoiceRegistry().GetABI()
	for name, topic := range map[string]common.Hash{
		"Paid": contracts.PaidTopic, "Opened": contracts.OpenedTopic, "Closed": contracts.ClosedTopic,
	} {
		if events.Events[name].ID != topic {
			t.Errorf("%s: topic is %s, the ABI says %s", name, topic, events.Events[name].ID)
		}
	}
	if id := contracts.NewDepositFactory().GetABI().Events["Swept"].ID; id != contracts.SweptTopic {
		t.Errorf("Swept: topic is %s, the ABI says %s", contracts.SweptTopic, id)
	}
}

// paidLog returns a valid Paid log, which tests then damage.
func paidLog() types.Log {
	word := func(n int64) []byte { return common.BigToHash(big.NewInt(n)).Bytes() }
	return types.Log{
		Topics: []common.Hash{contracts.PaidTopic, {1}, common.BigToHash(big.NewInt(2)), common.BigToHash(big.NewInt(3))},
		Data:   append(word(4), word(5)...),
	}
}

func TestParseSwept(t *testing.T) {
	word := func(n int64) common.Hash { return common.BigToHash(big.NewInt(n)) }
	log := func() types.Log {
		return types.Log{Topics: []common.Hash{contracts.SweptTopic, word(2), word(3), word(4)}, Data: word(5).Bytes()}
	}
	address := func(n int64) common.Address { return common.BigToAddress(big.NewInt(n)) }
	if got, err := contracts.ParseSwept(log()); err != nil || got != (contracts.Swept{Deposit: address(2), Token: address(3), Merchant: address(4)}) {
		t.Errorf("parsed %+v, %v", got, err)
	}
	for name, spoil := range map[string]func(*types.Log){
		"no topics":      func(l *types.Log) { l.Topics = nil },
		"topic missing":  func(l *types.Log) { l.Topics = l.Topics[:3] },
		"another event":  func(l *types.Log) { l.Topics[0] = contracts.PaidTopic },
		"no data":        func(l *types.Log) { l.Data = nil },
		"data too long":  func(l *types.Log) { l.Data = append(l.Data, 0) },
		"deposit dirty":  func(l *types.Log) { l.Topics[1][0] = 1 },
		"token dirty":    func(l *types.Log) { l.Topics[2][11] = 1 },
		"merchant dirty": func(l *types.Log) { l.Topics[3][0] = 1 },
	} {
		spoiled := log()
		spoil(&spoiled)
		if got, err := contracts.ParseSwept(spoiled); err == nil {
			t.Errorf("%s: parsed as %+v", name, got)
		}
	}
}

func TestParsePaid(t *testing.T) {
	paid, err := contracts.ParsePaid(paidLog())
	expect.OK(t, err)
	address := func(n int64) common.Address { return common.BigToAddress(big.NewInt(n)) }
	if paid.ID != (common.Hash{1}) || paid.Payer != address(2) || paid.Merchant != address(3) ||
		paid.Token != address(4) || paid.Amount.Int64() != 5 {
		t.Errorf("parsed %+v", paid)
	}
	for name, spoil := range map[string]func(*types.Log){
		"no topics":      func(l *types.Log) { l.Topics = nil },
		"topic missing":  func(l *types.Log) { l.Topics = l.Topics[:3] },
		"another event":  func(l *types.Log) { l.Topics[0] = contracts.ClosedTopic },
		"no data":        func(l *types.Log) { l.Data = nil },
		"data too short": func(l *types.Log) { l.Data = l.Data[:63] },
		"data too long":  func(l *types.Log) { l.Data = append(l.Data, 0) },
		"payer dirty":    func(l *types.Log) { l.Topics[2][0] = 1 },
		"merchant dirty": func(l *types.Log) { l.Topics[3][11] = 1 },
		"token dirty":    func(l *types.Log) { l.Data[11] = 1 },
	} {
		log := paidLog()
		spoil(&log)
		if got, err := contracts.ParsePaid(log); err == nil {
			t.Errorf("%s: parsed as %+v", name, got)
		}
	}
}

func TestParseOpenedAndClosed(t *testing.T) {
	for _, test := range []struct {
		name         string
		parse        func(types.Log) (common.Hash, error)
		topic, other common.Hash
	}{
		{"opened", contracts.ParseOpened, contracts.OpenedTopic, contracts.ClosedTopic},
		{"closed", contracts.ParseClosed, contracts.ClosedTopic, contracts.OpenedTopic},
	} {
		id := common.Hash{7}
		if got, err := test.parse(types.Log{Topics: []common.Hash{test.topic, id}}); err != nil || got != id {
			t.Errorf("%s: parsed %s, %v; want %s", test.name, got, err, id)
		}
		for name, log := range map[string]types.Log{
			"another event": {Topics: []common.Hash{test.other, id}},
			"no id":         {Topics: []common.Hash{test.topic}},
			"a third topic": {Topics: []common.Hash{test.topic, id, id}},
			"data":          {Topics: []common.Hash{test.topic, id}, Data: []byte{0}},
		} {
			if got, err := test.parse(log); err == nil {
				t.Errorf("%s with %s: parsed as %s", test.name, name, got)
			}
		}
	}
}
