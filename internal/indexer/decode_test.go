package indexer

import (
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/chaintest"
	"github.com/quittance/quittance/internal/test/expect"
)

var (
	token          = invoice.Address{0x70}
	other          = invoice.Address{0x71} // a token that is not watched
	registry       = invoice.Address{0x4e}
	depositFactory = invoice.Address{0x4f}
	merchant       = invoice.Address{0xee}
	alice          = invoice.Address{0xa1}
	bob            = invoice.Address{0xb0}
	id1, id2       = invoice.Hash{1}, invoice.Hash{2}

	testChain = chain.Chain{
		Key: "test", ID: 5, Registry: registry, FullBloom: true, Finality: chain.Finality{Depth: 3}, StartBlock: new(uint64(1)),
		Tokens: []chain.Token{{Currency: "USDC", Address: token, Decimals: 6}},
	}
	testDecoder = newDecoder(testChain)
	five        = invoice.NewAmount(5)
	header10    = invoice.Header{Number: 10, Hash: invoice.Hash{10}, Parent: invoice.Hash{9}, Time: invoice.Unix(1000)}
)

// receipt returns the receipt of a transaction in block header10 that emitted these logs, after another transaction
// with three logs.
func receipt(logs ...chaintest.Log) *chain.Receipt {
	r := &chain.Receipt{TxHash: common.Hash{0x77}, BlockHash: common.Hash(header10.Hash), BlockNumber: 10, Status: 1}
	for i, l := range logs {
		r.Logs = append(r.Logs, types.Log{
			Address: l.Address, Topics: l.Topics, Data: l.Data, BlockNumber: 10, BlockHash: r.BlockHash, TxHash: r.TxHash, Index: uint(3 + i),
		})
	}
	return r
}

func pays(from invoice.Address, n uint64) chaintest.Log {
	return chaintest.Transfer(token, from, merchant, invoice.NewAmount(n))
}

func paid(id invoice.Hash, from invoice.Address, n uint64) chaintest.Log {
	return chaintest.Paid(registry, id, from, merchant, token, invoice.NewAmount(n))
}

// TestEvidence pairs a transaction's events with its transfers. The wanted
// list has one entry for each transfer to the merchant.
func TestEvidence(t *testing.T) {
	auth := func(from invoice.Address, id invoice.Hash) chaintest.Log {
		return chaintest.AuthorizationUsed(token, from, id)
	}
	lookalike := func(l chaintest.Log) chaintest.Log {
		l.Address = common.Address(other)
		return l
	}
	reg := func(id invoice.Hash) invoice.Evidence { return invoice.Evidence{Registry: id} }
	nonce := func(id invoice.Hash) invoice.Evidence { return invoice.Evidence{Authorization: id} }
	none := invoice.Evidence{}
	for name, test := range map[string]struct {
		logs []chaintest.Log
		want []invoice.Evidence
	}{
		"plain":                        {[]chaintest.Log{pays(alice, 5)}, []invoice.Evidence{none}},
		"registry":                     {[]chaintest.Log{pays(alice, 5), paid(id1, alice, 5)}, []invoice.Evidence{reg(id1)}},
		"registry, event first":        {[]chaintest.Log{paid(id1, alice, 5), pays(alice, 5)}, []invoice.Evidence{none}},
		"registry, other amount":       {[]chaintest.Log{pays(alice, 5), paid(id1, alice, 6)}, []invoice.Evidence{none}},
		"registry, other payer":        {[]chaintest.Log{pays(alice, 5), paid(id1, bob, 5)}, []invoice.Evidence{none}},
		"registry, lookalike":          {[]chaintest.Log{pays(alice, 5), lookalike(paid(id1, alice, 5))}, []invoice.Evidence{none}},
		"registry, nearest":            {[]chaintest.Log{pays(alice, 5), pays(alice, 5), paid(id1, alice, 5)}, []invoice.Evidence{none, reg(id1)}},
		"registry, two in a row":       {[]chaintest.Log{pays(alice, 5), paid(id1, alice, 5), pays(alice, 5), paid(id2, alice, 5)}, []invoice.Evidence{reg(id1), reg(id2)}},
		"registry, two after two":      {[]chaintest.Log{pays(alice, 5), pays(alice, 5), paid(id1, alice, 5), paid(id2, alice, 5)}, []invoice.Evidence{reg(id2), reg(id1)}},
		"registry, two of one":         {[]chaintest.Log{pays(alice, 5), paid(id1, alice, 5), paid(id2, alice, 5)}, []invoice.Evidence{reg(id1)}},
		"authorization":                {[]chaintest.Log{auth(alice, id1), pays(alice, 5)}, []invoice.Evidence{nonce(id1)}},
		"authorization, after":         {[]chaintest.Log{pays(alice, 5), auth(alice, id1)}, []invoice.Evidence{none}},
		"authorization, other payer":   {[]chaintest.Log{auth(bob, id1), pays(alice, 5)}, []invoice.Evidence{none}},
		"authorization, lookalike":     {[]chaintest.Log{lookalike(auth(alice, id1)), pays(alice, 5)}, []invoice.Evidence{none}},
		"authorization, once":          {[]chaintest.Log{auth(alice, id1), pays(alice, 5), pays(alice, 5)}, []invoice.Evidence{nonce(id1), none}},
		"authorization, of two payers": {[]chaintest.Log{auth(alice, id1), auth(bob, id2), pays(bob, 5), pays(alice, 5)}, []invoice.Evidence{nonce(id2), nonce(id1)}},
		"authorization, elsewhere": {[]chaintest.Log{
			auth(alice, id1), chaintest.Transfer(token, alice, bob, five), pays(alice, 5),
		}, []invoice.Evidence{none}},
		"authorization and registry": {[]chaintest.Log{auth(alice, id1), pays(alice, 5), paid(id2, alice, 5)}, []invoice.Evidence{{Registry: id2, Authorization: id1}}},
	} {
		got, err := testDecoder.transfers(header10, receipt(test.logs...), nil, map[invoice.Address]bool{merchant: true})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var evidence []invoice.Evidence
		for _, tr := range got {
			evidence = append(evidence, tr.Evidence)
		}
		expect.NoDiff(t, cmp.Diff(test.want, evidence), "%s", name)
	}
}

// TestTransfers checks every field of a transfer, and logs that are not transfers.
func TestTransfers(t *testing.T) {
	malformed := func(change func(*chaintest.Log)) chaintest.Log {
		l := pays(alice, 5)
		l.Topics, l.Data = slices.Clone(l.Topics), slices.Clone(l.Data)
		change(&l)
		return l
	}
	r := receipt(
		chaintest.Transfer(other, alice, merchant, five),
		chaintest.Transfer(token, alice, bob, five),
		pays(alice, 0),
		malformed(func(l *chaintest.Log) { l.Data = l.Data[:31] }),
		malformed(func(l *chaintest.Log) { l.Data = append(l.Data, make([]byte, 32)...) }),
		malformed(func(l *chaintest.Log) { l.Topics = l.Topics[:2] }),
		malformed(func(l *chaintest.Log) { l.Topics = append(l.Topics, common.Hash{}) }),
		malformed(func(l *chaintest.Log) { l.Topics[0][0]++ }),
		malformed(func(l *chaintest.Log) { l.Topics[1][0]++ }),
		malformed(func(l *chaintest.Log) { l.Topics[2][0]++ }),
		malformed(func(l *chaintest.Log) { l.Topics = nil }),
		pays(alice, 5),
		chaintest.Transfer(token, merchant, alice, invoice.NewAmount(3)),
		chaintest.Transfer(token, merchant, merchant, invoice.MaxAmount),
	)
	removed := receipt(pays(alice, 5)).Logs[0]
	removed.Removed = true
	r.Logs = append(r.Logs, removed)
	base := invoice.Transfer{
		Position: invoice.Position{BlockNumber: 10, BlockHash: header10.Hash, BlockTime: invoice.Unix(1000)},
		ChainKey: "test", TxHash: invoice.Hash{0x77}, Token: token, Currency: "USDC",
	}
	at := func(ordinal int, from, to invoice.Address, amount invoice.Amount) invoice.Transfer {
		tr := base
		tr.Ordinal, tr.LogIndex, tr.From, tr.To, tr.Amount = ordinal, ordinal+3, from, to, amount
		return tr
	}
	want := []invoice.Transfer{
		at(11, alice, merchant, five), at(12, merchant, alice, invoice.NewAmount(3)), at(13, merchant, merchant, invoice.MaxAmount),
	}
	watched := map[invoice.Address]bool{merchant: true, bob: false}
	got, err := testDecoder.transfers(header10, r, nil, watched)
	expect.OK(t, err)
	expect.NoDiff(t, cmp.Diff(want, got, cmp.AllowUnexported(invoice.Amount{})), "transfers")
	for _, tr := range got {
		if !testDecoder.receiptHolds(r, &tr) {
			t.Errorf("the receipt does not prove its transfer %d", tr.Ordinal)
		}
	}

	r.Status = 0
	if _, err := testDecoder.transfers(header10, r, nil, watched); err == nil {
		t.Error("a failed transaction's transfers were taken")
	}
	r.Status, r.BlockHash[0] = 1, 11
	if _, err := testDecoder.transfers(header10, r, nil, watched); err == nil {
		t.Error("another block's transfers were taken")
	}
}

// TestReceiptProvesTransfer changes a recorded transfer, or its receipt, in every way.
func TestReceiptProvesTransfer(t *testing.T) {
	log := pays(alice, 5)
	transfers, err := testDecoder.transfers(header10, receipt(pays(bob, 1), log), nil, map[invoice.Address]bool{merchant: true})
	expect.OK(t, err)
	recorded := transfers[1]
	if !testDecoder.receiptHolds(receipt(pays(bob, 1), log), &recorded) {
		t.Error("the transfer is not proven by its own receipt")
	}
	for name, change := range map[string]func(*invoice.Transfer, *chain.Receipt){
		"failed":   func(_ *invoice.Transfer, r *chain.Receipt) { r.Status = 0 },
		"block":    func(_ *invoice.Transfer, r *chain.Receipt) { r.BlockHash[5]++ },
		"no log":   func(_ *invoice.Transfer, r *chain.Receipt) { r.Logs = r.Logs[:1] },
		"index":    func(_ *invoice.Transfer, r *chain.Receipt) { r.Logs[1].Index++ },
		"contract": func(_ *invoice.Transfer, r *chain.Receipt) { r.Logs[1].Address[5]++ },
		"from":     func(tr *invoice.Transfer, _ *chain.Receipt) { tr.From = bob },
		"to":       func(tr *invoice.Transfer, _ *chain.Receipt) { tr.To = bob },
		"amount":   func(tr *invoice.Transfer, _ *chain.Receipt) { tr.Amount = invoice.NewAmount(6) },
		"token":    func(tr *invoice.Transfer, _ *chain.Receipt) { tr.Token = other },
		"ordinal":  func(tr *invoice.Transfer, _ *chain.Receipt) { tr.Ordinal = 0 },
	} {
		tr, r := recorded, receipt(pays(bob, 1), log)
		change(&tr, r)
		if testDecoder.receiptHolds(r, &tr) {
			t.Errorf("%s: the transfer counts as proven", name)
		}
	}
}

func TestCalldata(t *testing.T) {
	call := make([]byte, 4+32+32) // transfer(to, amount)
	tagged := append(slices.Clone(call), id1[:]...)
	for _, test := range []struct {
		input []byte
		want  invoice.Hash
	}{
		{nil, invoice.Hash{}}, {id1[:], invoice.Hash{}}, {append(make([]byte, 4), id1[:]...), invoice.Hash{}},
		{append(make([]byte, 5), id1[:]...), id1}, {tagged, id1}, {append(tagged, 7), invoice.Hash(append(id1[1:], 7))},
	} {
		r := receipt(pays(alice, 5), pays(alice, 6))
		r.From = common.Address(alice)
		got, err := testDecoder.transfers(header10, r, test.input, map[invoice.Address]bool{merchant: true})
		if err != nil || len(got) != 2 {
			t.Fatalf("input %x: %v, %v", test.input, got, err)
		}
		for _, tr := range got {
			expect.Equal(t, tr.Evidence.Calldata, test.want, "input %x: evidence is", test.input)
		}
	}
}

// TestCalldataOfStrangers makes another sender's transactions move a payer's tokens.
// Their calldata tag does not count as the payer's, unless they call the token's own
// transferFrom.
func TestCalldataOfStrangers(t *testing.T) {
	amount, no := invoice.NewAmount(5).Bytes(), invoice.NewAmount(6).Bytes()
	call := func(from, to invoice.Address, amount [32]byte) []byte {
		return slices.Concat(transferFrom, make([]byte, 12), from[:], make([]byte, 12), to[:], amount[:], id1[:])
	}
	at := func(a invoice.Address) *common.Address { to := common.Address(a); return &to }
	for name, test := range map[string]struct {
		from  invoice.Address
		to    *common.Address
		input []byte
		want  invoice.Hash
	}{
		"the payer's own":           {alice, at(other), call(bob, bob, no), id1},
		"transferFrom":              {bob, at(token), call(alice, merchant, amount), id1},
		"another contract's":        {bob, at(other), call(alice, merchant, amount), invoice.Hash{}},
		"a contract's creation":     {bob, nil, call(alice, merchant, amount), invoice.Hash{}},
		"from another":              {bob, at(token), call(bob, merchant, amount), invoice.Hash{}},
		"to another":                {bob, at(token), call(alice, bob, amount), invoice.Hash{}},
		"of another amount":         {bob, at(token), call(alice, merchant, no), invoice.Hash{}},
		"another call of the token": {bob, at(token), append(make([]byte, 4), call(alice, merchant, amount)[4:]...), invoice.Hash{}},
		"too short":                 {bob, at(token), call(alice, merchant, amount)[:99], invoice.Hash{}},
	} {
		r := receipt(pays(alice, 5))
		r.From, r.To = common.Address(test.from), test.to
		got, err := testDecoder.transfers(header10, r, test.input, map[invoice.Address]bool{merchant: true})
		if err != nil || len(got) != 1 || got[0].Evidence.Calldata != test.want {
			t.Errorf("%s: %+v, %v; want the evidence %s", name, got, err, test.want)
		}
	}
}

func TestRegistryEvents(t *testing.T) {
	fake := chaintest.Opened(other, id1)
	short := chaintest.Closed(registry, id1)
	short.Topics = short.Topics[:1]
	logs := receipt(
		chaintest.Opened(registry, id1), fake, short, pays(alice, 5), paid(id1, alice, 5), chaintest.Closed(registry, id2),
	).Logs
	in := invoice.Hash(logs[0].TxHash)
	want := []ledger.RegistryEvent{
		{Registry: registry, Kind: ledger.RegistryOpened, CommitmentID: id1, TxHash: in},
		{Registry: registry, Kind: ledger.RegistryPaid, CommitmentID: id1, TxHash: in, Merchant: merchant},
		{Registry: registry, Kind: ledger.RegistryClosed, CommitmentID: id2, TxHash: in},
	}
	expect.NoDiff(t, cmp.Diff(want, testDecoder.registryEvents(logs)), "events")
	without := testChain
	without.Registry = invoice.Address{}
	for i := range logs {
		logs[i].Address = common.Address{}
	}
	if got := newDecoder(without).registryEvents(logs); got != nil {
		t.Errorf("without a registry the events are %v, want none", got)
	}
}

// TestSweepsOfOthers reads transfers from deposit addresses of another service: they are marked. Deposit addresses of
// this service are not marked, and neither are transfers that only look like sweeps.
func TestSweepsOfOthers(t *testing.T) {
	c := testChain
	c.DepositFactory = depositFactory
	d := newDecoder(c)
	deposit := invoice.Address{0xd0}
	swept := func(factory, from, of invoice.Address) chaintest.Log {
		return chaintest.Swept(factory, from, of, merchant, five)
	}
	call := func(selector []byte) []byte { return slices.Concat(selector, make([]byte, 12), token[:]) }
	mark, none := invoice.SweptElsewhere, invoice.Hash{}
	for name, test := range map[string]struct {
		logs  []chaintest.Log
		to    invoice.Address // recipient of the transaction
		input []byte
		own   bool // the deposit address belongs to this service
		want  []invoice.Hash
	}{
		"by the factory":             {logs: []chaintest.Log{pays(deposit, 5), swept(depositFactory, deposit, token)}, want: []invoice.Hash{mark}},
		"one of two":                 {logs: []chaintest.Log{pays(alice, 5), pays(deposit, 5), swept(depositFactory, deposit, token)}, want: []invoice.Hash{none, mark}},
		"by another contract":        {logs: []chaintest.Log{pays(deposit, 5), swept(other, deposit, token)}, want: []invoice.Hash{none}},
		"of another token":           {logs: []chaintest.Log{pays(deposit, 5), swept(depositFactory, deposit, other)}, want: []invoice.Hash{none}},
		"of another deposit":         {logs: []chaintest.Log{pays(deposit, 5), swept(depositFactory, alice, token)}, want: []invoice.Hash{none}},
		"before the transfer":        {logs: []chaintest.Log{swept(depositFactory, deposit, token), pays(deposit, 5)}, want: []invoice.Hash{none}},
		"of this service":            {logs: []chaintest.Log{pays(deposit, 5), swept(depositFactory, deposit, token)}, own: true, want: []invoice.Hash{none}},
		"directly":                   {logs: []chaintest.Log{pays(deposit, 5)}, to: deposit, input: call(sweepDeposit), want: []invoice.Hash{mark}},
		"directly, of this service":  {logs: []chaintest.Log{pays(deposit, 5)}, to: deposit, input: call(sweepDeposit), own: true, want: []invoice.Hash{none}},
		"another call of the sender": {logs: []chaintest.Log{pays(deposit, 5)}, to: deposit, input: call(transferFrom), want: []invoice.Hash{none}},
		"a call of another contract": {logs: []chaintest.Log{pays(deposit, 5)}, to: alice, input: call(sweepDeposit), want: []invoice.Hash{none}},
	} {
		r := receipt(test.logs...)
		to := common.Address(test.to)
		r.To = &to
		got, err := d.transfers(header10, r, test.input, map[invoice.Address]bool{merchant: true, deposit: test.own})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var marks []invoice.Hash
		for _, tr := range got {
			marks = append(marks, tr.Evidence.Registry)
		}
		expect.NoDiff(t, cmp.Diff(test.want, marks), "%s", name)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte{0, 3, 32, 1, 3, 0, 2, 4, 64}, []byte("calldata"))
	f.Fuzz(func(t *testing.T, script, input []byte) {
		var logs []chaintest.Log
		words := []common.Hash{
			chain.TransferTopic, authorizationTopic, common.Hash(id1), common.BytesToHash(merchant[:]), common.BytesToHash(alice[:]),
			testDecoder.filter().Topics[1], testDecoder.filter().Topics[2], {0xff},
		}
		contracts := []common.Address{common.Address(token), common.Address(registry), common.Address(other)}
		next := func(n int) int {
			if len(script) == 0 {
				return 0
			}
			v := int(script[0]) % n
			script = script[1:]
			return v
		}
		for len(script) > 0 && len(logs) < 50 {
			l := chaintest.Log{Address: contracts[next(3)], Topics: make([]common.Hash, next(5)), Data: make([]byte, next(3)*32+next(2))}
			for i := range l.Topics {
				l.Topics[i] = words[next(len(words))]
			}
			for i := range l.Data {
				l.Data[i] = byte(next(2))
			}
			logs = append(logs, l)
		}
		r := receipt(logs...)
		watched := map[invoice.Address]bool{merchant: true}
		got, err := testDecoder.transfers(header10, r, input, watched)
		expect.OK(t, err)
		if touching := testDecoder.touching(r.Logs, watched); (len(touching) == 1) != (len(got) > 0) {
			t.Errorf("%d transfers, but the transaction is in %v", len(got), touching)
		}
		registered := map[invoice.Hash]int{}
		for _, e := range testDecoder.registryEvents(r.Logs) {
			if e.Kind == ledger.RegistryPaid {
				registered[e.CommitmentID]++
			}
		}
		last := -1
		for _, tr := range got {
			switch {
			case tr.Ordinal <= last:
				t.Errorf("transfer %d comes after %d", tr.Ordinal, last)
			case tr.Amount.IsZero() || (tr.From != merchant && tr.To != merchant) || tr.Token != token:
				t.Errorf("counted %+v", tr)
			case !testDecoder.receiptHolds(r, &tr):
				t.Errorf("transfer %d is not proven by its receipt", tr.Ordinal)
			}
			last = tr.Ordinal
			if id := tr.Evidence.Registry; !id.IsZero() {
				if registered[id]--; registered[id] < 0 {
					t.Errorf("more transfers than Paid events name %s", id)
				}
			}
		}
	})
}

// TestEvidenceOfManyPayments puts registry payments, authorized ones and plain
// ones into one transaction, and expects each to be distinguished.
func TestEvidenceOfManyPayments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var logs []chaintest.Log
		var want []invoice.Evidence
		for i := range rapid.IntRange(1, 12).Draw(t, "payments") {
			from := rapid.SampledFrom([]invoice.Address{alice, bob}).Draw(t, "from")
			amount := rapid.Uint64Range(1, 3).Draw(t, "amount")
			id := invoice.Hash{byte(i + 1)}
			var e invoice.Evidence
			kind := rapid.IntRange(0, 3).Draw(t, "kind")
			if kind == 1 || kind == 3 {
				logs = append(logs, chaintest.AuthorizationUsed(token, from, id))
				e.Authorization = id
			}
			logs = append(logs, pays(from, amount))
			if kind >= 2 {
				logs = append(logs, paid(id, from, amount))
				e.Registry = id
			}
			want = append(want, e)
		}
		got, err := testDecoder.transfers(header10, receipt(logs...), nil, map[invoice.Address]bool{merchant: true})
		if err != nil || len(got) != len(want) {
			t.Fatalf("%d transfers, %v; want %d", len(got), err, len(want))
		}
		for i, tr := range got {
			if tr.Evidence != want[i] {
				t.Fatalf("payment %d: %+v, want %+v", i, tr.Evidence, want[i])
			}
		}
	})
}

// TestNoticeOfOmittedTransfer has a provider announce a transfer that the first node leaves
// out of its block. A while after the notice, another node's logs show it.
func TestNoticeOfOmittedTransfer(t *testing.T) {
	now := time.Unix(chaintest.GenesisTime, 0)
	f := newFixture(t, nil)
	proxies := f.nodes(t, 2, func(c *Config) { c.Now = func() time.Time { return now } })
	f.catchUp(t)
	omitted := chaintest.NewTx(pays(alice, 5))
	proxies[0].SetFaults(chaintest.DropLogs{Txs: []common.Hash{omitted.Hash}})
	f.chain.Mine(chaintest.NewTx(pays(bob, 1)), omitted)
	f.chain.MineEmpty(3)
	f.catchUp(t)
	f.ledger.notices = []time.Time{now}
	read := func() {
		t.Helper()
		for range 2 { // finds, and reads
			expect.OK(t, f.readUnread(t.Context()))
		}
	}
	read()
	if got := f.ledger.count(invoice.Confirmed); got != 1 {
		t.Fatalf("%d payments are confirmed before the notice is old enough, want 1", got)
	}
	now = now.Add(noticeGrace + time.Second)
	read()
	expect.Equal(t, f.ledger.count(invoice.Confirmed), 2, "payments are confirmed:")
	expect.Equal(t, f.state(0), chain.StateQuarantined, "the node is")
	before := f.node.Calls("eth_getLogs")
	read()
	if got := f.node.Calls("eth_getLogs"); got != before {
		t.Errorf("a notice that was followed took %d calls more", got-before)
	}
}
