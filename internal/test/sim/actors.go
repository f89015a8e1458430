package main

import (
	"crypto/ecdsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/webhook"
)

// merchant creates invoices, and receives their events.
type merchant struct {
	*client
	wallet  common.Address
	webhook string // address of its receiver; empty without one

	mu       sync.Mutex
	secrets  []string
	received map[string]*received // by delivery id
}

// received is what arrived of a delivery.
type received struct {
	event string
	body  string
	times int
	taken bool // it was answered 2xx in time, and the answer arrived
}

func newMerchant(w *world, i int, outside *host) *merchant {
	name := fmt.Sprint("merchant", i+1)
	m := &merchant{client: &client{world: w, name: name}, wallet: addressOf(account(name)), received: map[string]*received{}}
	m.webhook = fmt.Sprintf("127.0.1.%d:80", i+1)
	serve(outside, m.webhook, m)
	return m
}

// register makes the merchant known to the service.
func (m *merchant) register() error {
	o := m.world.operator
	if err := o.insist(http.MethodPost, "/api/merchants", object{"id": m.name, "name": m.name}, nil); err != nil {
		return err
	}
	var key apitypes.KeySecretResponse
	if err := o.insist(http.MethodPost, "/api/keys", object{"name": "shop", "merchantId": m.name, "scopes": []string{"admin"}}, &key); err != nil {
		return err
	}
	m.key = key.Secret
	var hook apitypes.WebhookSecretResponse
	if err := m.insist(http.MethodPut, "/api/merchants/"+m.name+"/webhook", object{"url": "http://" + m.webhook + "/hook"}, &hook); err != nil {
		return err
	}
	m.secrets = []string{hook.Secret}
	return nil
}

// ServeHTTP receives events. It checks each before a fault can spoil the answer.
func (m *merchant) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	kind := r.Header.Get(webhook.HeaderEvent)
	e := m.world.plan.meet(m.name, kind)
	if !wait(r.Context(), latency+e.delay) || e.request {
		m.world.log.say(m.name, "webhook %s lost %s", kind, hitsOf(e))
		panic(http.ErrAbortHandler)
	}
	m.take(r, body, e)
	m.world.log.say(m.name, "webhook %s %s %s", kind, r.Header.Get(webhook.HeaderDelivery), hitsOf(e))
	e.reply(w, http.StatusOK, []byte("thank you"))
}

func (m *merchant) take(r *http.Request, body []byte, e effect) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := webhook.Verifier{Secrets: m.secrets}
	if err := v.Verify(r.Header.Get(webhook.HeaderSignature), body); err != nil && e.delay < time.Minute {
		m.world.fail("%s received an event with a bad signature: %v", m.name, err)
	}
	event, err := webhook.ParseEvent(body)
	if err != nil {
		m.world.fail("%s received no event: %v", m.name, err)
		return
	}
	id := r.Header.Get(webhook.HeaderDelivery)
	got := m.received[id]
	if got == nil {
		got = &received{event: event.ID, body: string(body)}
		m.received[id] = got
	}
	if got.event != event.ID || got.body != string(body) {
		m.world.fail("%s received delivery %s with two contents", m.name, id)
	}
	got.times++
	status := e.status
	got.taken = got.taken || (status == 0 || status >= 200 && status < 300) && !e.answer && e.body != cutBody && e.delay < 4*time.Second
}

// order is an invoice that a merchant asked for, and what became of it.
type order struct {
	name     string
	merchant *merchant
	chain    *worldChain
	request  apitypes.CreateInvoiceRequest
	key      string // of idempotency; may be empty
	attempts int
	acks     []apitypes.CreateInvoiceResponse
	seen     uint64          // the chain's height when the first answer came
	issued   map[string]bool // transfer amounts that the service named
	voiding  bool            // a request to void it was sent
	voided   bool            // and answered 200
	sent     []*types.Transaction
}

// trade creates invoices until the active time is over, each with its payer.
func (m *merchant) trade() {
	r := stream(m.world.seed, "actor "+m.name)
	for i := 0; ; i++ {
		if !wait(m.world.ctx, time.Duration(r.ExpFloat64()*float64(25*time.Second))) || time.Since(m.world.plan.began) > m.world.active {
			return
		}
		o := m.newOrder(r, i)
		m.world.mu.Lock()
		m.world.orders = append(m.world.orders, o)
		m.world.mu.Unlock()
		seed := r.Uint64()
		m.world.busy.Go(func() { o.live(rand.New(rand.NewPCG(seed, 0))) }) //nolint:gosec // replays need a seed
	}
}

func (m *merchant) newOrder(r *rand.Rand, i int) *order {
	c := m.world.chains[r.IntN(len(m.world.chains))]
	o := &order{name: fmt.Sprintf("%s-%d", m.name, i+1), merchant: m, chain: c, issued: map[string]bool{}}
	o.request = apitypes.CreateInvoiceRequest{
		MerchantID: m.name, MerchantAddress: m.wallet.Hex(), Amount: fmt.Sprint(1_000_000 + 10_000*r.IntN(50)), Currency: "USDC", ChainKey: c.key,
		ExpiresAt: time.Now().Add(time.Duration(40+r.IntN(120)) * time.Second).Unix(), Reference: o.name,
	}
	if r.IntN(3) == 0 {
		o.request.Collection = "deposit"
	}
	if r.IntN(3) > 0 {
		o.key = "key-" + o.name
	}
	return o
}

// live is the life of an order: it is created, paid in some way, and perhaps made void.
func (o *order) live(r *rand.Rand) {
	if !o.create(r) {
		return
	}
	w := o.merchant.world
	payer := payers[r.IntN(len(payers))]
	pause := func(most time.Duration) { wait(w.ctx, time.Duration(r.Int64N(int64(most)))) }
	pause(20 * time.Second)
	if r.IntN(8) == 0 {
		o.void()
	}
	switch r.IntN(10) {
	case 0: // nobody pays
	case 1: // late
		until := time.Until(time.Unix(o.request.ExpiresAt, 0))
		if until > 0 && !wait(w.ctx, until+o.chain.every) {
			return
		}
		o.pay(r, payer, o.shown(), true)
	case 2: // twice
		o.pay(r, payer, o.shown(), true)
		pause(time.Minute)
		o.pay(r, payer, o.shown(), true)
	case 3: // in parts
		half := new(big.Int).Div(o.amount(), big.NewInt(2))
		o.pay(r, payer, half, false)
		pause(time.Minute)
		o.refresh()
		o.pay(r, payer, o.shown(), o.first().Invoice.RemainingTransferAmount != "")
	case 4: // the wrong token
		to := o.payTo()
		o.send(payer, o.chain.other, contracts.NewTestUSDC().PackTransfer(to, o.amount()))
	default:
		o.pay(r, payer, o.shown(), true)
	}
	if r.IntN(10) == 0 {
		pause(time.Minute)
		o.void()
	}
}

// create asks for the invoice until there is an answer. Without an idempotency key it asks once.
func (o *order) create(r *rand.Rand) bool {
	m := o.merchant
	var headers []string
	if o.key != "" {
		headers = []string{"Idempotency-Key", o.key}
	}
	for {
		var answer apitypes.CreateInvoiceResponse
		o.attempts++
		err := m.call(http.MethodPost, "/api/invoices", o.request, &answer, headers...)
		var refused *refusedError
		switch {
		case err == nil:
			o.ack(answer)
		case errors.As(err, &refused):
			if o.request.ExpiresAt >= time.Now().Unix()+5 {
				m.world.fail("%s: a create was refused: %v", o.name, err)
			}
			return false
		case o.key == "":
			return false
		}
		if err == nil && r.IntN(4) > 0 {
			return true
		}
		if !wait(m.world.ctx, time.Duration(1+r.IntN(5))*time.Second) || o.key == "" || o.attempts > 20 {
			return len(o.acks) > 0
		}
	}
}

func (o *order) ack(answer apitypes.CreateInvoiceResponse) {
	w := o.merchant.world
	w.mu.Lock()
	o.acks = append(o.acks, answer)
	first := o.acks[0]
	w.mu.Unlock()
	if len(o.acks) == 1 {
		o.seen = o.chain.view()[len(o.chain.view())-1].number
	}
	o.note(answer.Invoice)
	if first.ID != answer.ID || first.OnChainInvoiceID != answer.OnChainInvoiceID {
		w.fail("%s: two answers to one idempotency key, %s and %s", o.name, first.ID, answer.ID)
	}
	if answer.Invoice.Amount != o.request.Amount || answer.Invoice.ChainKey != o.request.ChainKey || common.HexToAddress(answer.Invoice.MerchantAddress) != o.merchant.wallet {
		w.fail("%s: the invoice %s has other terms than the request", o.name, answer.ID)
	}
}

// note remembers the transfer amounts that an answer names.
func (o *order) note(inv apitypes.Invoice) {
	o.merchant.world.mu.Lock()
	defer o.merchant.world.mu.Unlock()
	for _, a := range []string{inv.TransferAmount, inv.RemainingTransferAmount} {
		if a != "" {
			o.issued[a] = true
		}
	}
}

func (o *order) first() *apitypes.CreateInvoiceResponse { return &o.acks[0] }

// refresh reads the invoice, as a page does that is still open.
func (o *order) refresh() {
	var answer struct{ Invoice apitypes.Invoice }
	if o.merchant.insist(http.MethodGet, "/api/invoices/"+o.first().ID, nil, &answer) == nil {
		o.note(answer.Invoice)
		o.first().Invoice = answer.Invoice
	}
}

func (o *order) amount() *big.Int { return toBig(o.request.Amount) }

func toBig(text string) *big.Int {
	n, ok := new(big.Int).SetString(text, 10)
	if !ok {
		panic("no amount: " + text)
	}
	return n
}

// shown returns the amount that the payer is asked for.
func (o *order) shown() *big.Int {
	inv := o.first().Invoice
	for _, text := range []string{inv.RemainingTransferAmount, inv.AmountRemaining, inv.TransferAmount, inv.Amount} {
		if text != "" {
			return toBig(text)
		}
	}
	panic("an invoice without an amount")
}

func (o *order) payTo() common.Address {
	if a := o.first().Invoice.DepositAddress; a != "" {
		return common.HexToAddress(a)
	}
	return o.merchant.wallet
}

// pay pays an amount in one of the ways that identify the invoice. A bare transfer does so only with an amount that the
// service has shown.
func (o *order) pay(r *rand.Rand, payer *ecdsa.PrivateKey, amount *big.Int, shown bool) {
	token, id := contracts.NewTestUSDC(), common.HexToHash(o.first().OnChainInvoiceID)
	switch way := r.IntN(4); {
	case o.first().Invoice.DepositAddress != "", way < 2 && shown:
		o.send(payer, o.chain.token, token.PackTransfer(o.payTo(), amount))
	case way == 2 && o.chain.writes && shown:
		terms := contracts.Terms{Merchant: o.merchant.wallet, Token: o.chain.token, Amount: o.amount(), ExpiresAt: uint64(o.request.ExpiresAt), Salt: contracts.Salt(o.first().ID)}
		o.send(payer, o.chain.token, token.PackApprove(o.chain.registry, o.amount()))
		o.send(payer, o.chain.registry, contracts.NewInvoiceRegistry().PackPay(terms))
	default:
		o.send(payer, o.chain.token, append(token.PackTransfer(o.payTo(), amount), id[:]...))
	}
}

func (o *order) send(payer *ecdsa.PrivateKey, to common.Address, data []byte) {
	tx := o.chain.send(payer, &to, data, callGas)
	o.merchant.world.log.say("payer of "+o.name, "transaction %s to %s", tx.Hash(), to)
	o.merchant.world.mu.Lock()
	defer o.merchant.world.mu.Unlock()
	o.sent = append(o.sent, tx)
}

// void asks for the end of the invoice.
func (o *order) void() {
	w := o.merchant.world
	w.mu.Lock()
	o.voiding = true
	w.mu.Unlock()
	if err := o.merchant.call(http.MethodPost, "/api/invoices/"+o.first().ID+"/void", nil, nil); err == nil {
		w.mu.Lock()
		o.voided = true
		w.mu.Unlock()
	}
}

// follow reads the feed of events, page by page, until the world ends.
func (w *world) follow() {
	c := &client{world: w, name: "follower", key: w.operatorKey.Reveal()}
	r := stream(w.seed, "follower")
	for cursor := "start"; wait(w.ctx, time.Duration(5+r.IntN(30))*time.Second); {
		var page apitypes.EventList
		if c.call(http.MethodGet, "/api/events?after="+cursor, nil, &page) != nil {
			continue
		}
		w.mu.Lock()
		w.followed = append(w.followed, eventIDs(page.Events)...)
		w.mu.Unlock()
		cursor = page.NextCursor
	}
}

func eventIDs(events []apitypes.EventRecord) (ids []string) {
	for _, e := range events {
		var envelope webhook.Event
		if json.Unmarshal(e.Event, &envelope) == nil {
			ids = append(ids, envelope.ID)
		}
	}
	return slices.Clip(ids)
}
