package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/webhook"
)

// merchant creates invoices, and receives their events.
type merchant struct {
	*client
	preset  bool       // the operator has set default addresses
	draws   *rand.Rand // its addresses
	webhook string     // address of its receiver; empty without one

	mu       sync.Mutex
	secrets  []string
	received map[string]*received // by delivery id
	lists    []addressList
	role     string
	lostKey  bool // a restored backup lacks its key
}

// received is what arrived of a delivery.
type received struct {
	event     string
	body      string
	signature string
	times     int
	taken     bool // it may have been answered 2xx in time
}

func newMerchant(w *world, i int, outside *host) *merchant {
	name := fmt.Sprint("merchant", i+1)
	draws := stream(w.seed, "addresses of "+name)
	m := &merchant{client: &client{world: w, name: name}, draws: draws, preset: draws.IntN(3) == 0, received: map[string]*received{}, lists: make([]addressList, 1)}
	m.webhook = fmt.Sprintf("127.0.1.%d:80", i+1)
	serve(outside, m.webhook, m)
	return m
}

// register makes the merchant known to the service.
func (m *merchant) register() error {
	o, defaults := m.world.operator, map[string]string{}
	for _, c := range m.world.chains {
		if m.preset {
			defaults[c.key] = addressOf(account(m.name)).Hex()
		}
	}
	if err := o.insist(http.MethodPost, "/api/merchants", object{"id": m.name, "name": m.name, "defaultAddresses": defaults}, nil); err != nil {
		return err
	}
	var key apitypes.KeySecretResponse
	if err := o.insist(http.MethodPost, "/api/keys", object{"name": "shop", "merchantId": m.name, "scopes": []string{"admin"}}, &key); err != nil {
		return err
	}
	m.key.Store(&key)
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
	if kind == "webhook.ping" {
		return
	}
	e := m.world.plan.meet(m.name, kind)
	if !clock.Sleep(r.Context(), latency+e.delay, nil) || e.request {
		m.world.log.say(m.name, "webhook %s lost %s", kind, hitsOf(e))
		panic(http.ErrAbortHandler)
	}
	m.take(r, body, e)
	m.world.log.say(m.name, "webhook %s %s %s", kind, r.Header.Get(webhook.HeaderDelivery), hitsOf(e))
	if e.body == noiseBody {
		e.replyOddly(w)
	} else {
		e.reply(w, http.StatusOK, []byte("thank you"))
	}
}

// replyOddly sends an answer with a status that HTTP does not have.
func (e effect) replyOddly(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	_, _ = fmt.Fprintf(conn, "HTTP/1.1 %03d odd\r\nContent-Length: 0\r\n\r\n", []int{0, 99, 600, 999, 1000, 10_000_000_000}[e.dice.IntN(6)])
	_ = conn.Close()
}

func (m *merchant) take(r *http.Request, body []byte, e effect) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var err error
	valid := slices.ContainsFunc(m.world.machine.recent(), func(offset time.Duration) bool { // the clock of the signature is the service's
		v := webhook.Verifier{Secrets: m.secrets, Now: func() time.Time { return time.Now().Add(offset) }}
		err = v.Verify(r.Header.Get(webhook.HeaderSignature), body)
		return err == nil
	})
	if !valid && e.delay < time.Minute {
		m.world.fail("%s received an event with a bad signature: %v", m.name, err)
	}
	event, err := webhook.ParseEvent(body)
	if err != nil {
		m.world.fail("%s received no event: %v", m.name, err)
		return
	}
	id := r.Header.Get(webhook.HeaderDelivery)
	got := m.received[id]
	if got == nil || got.event == event.ID && m.world.isRestored() && got.body != string(body) { // an event of the lost past
		got = &received{event: event.ID, body: string(body), signature: r.Header.Get(webhook.HeaderSignature)}
		m.received[id] = got
	}
	if got.event != event.ID || got.body != string(body) {
		m.world.fail("%s received delivery %s with two contents", m.name, id)
	}
	got.times++
	got.taken = got.taken || e.accepts()
}

// accepts reports whether the service takes the answer for an acceptance of the event.
func (e effect) accepts() bool {
	success := e.status == 0 || e.status >= 200 && e.status < 300
	return success && !e.answer && e.body != noiseBody && e.delay < 6*time.Second
}

// trade creates invoices for the larger part of the active time, each with its payer.
func (m *merchant) trade() {
	r := stream(m.world.seed, "actor "+m.name)
	for i := 0; ; i++ {
		if !clock.Sleep(m.world.ctx, time.Duration(r.ExpFloat64()*float64(10*time.Second)), nil) || time.Since(m.world.plan.began) > m.world.active*2/3 {
			return
		}
		o := m.newOrder(r, i)
		m.world.mu.Lock()
		m.world.orders = append(m.world.orders, o)
		m.world.mu.Unlock()
		m.manage(r)
		seed := r.Uint64()
		m.world.busy.Go(func() { o.live(rand.New(rand.NewPCG(seed, 0))) }) //nolint:gosec // replays need a seed
	}
}

// manage sometimes sends an event again, or replaces the secret of the webhook, the key or the allowed addresses.
func (m *merchant) manage(r *rand.Rand) {
	path := "/api/merchants/" + m.name + "/webhook/secret"
	switch r.IntN(8) {
	case 0:
		var page apitypes.EventList
		if m.call(http.MethodGet, "/api/events?limit=20", nil, &page) == nil && len(page.Events) > 0 {
			again := eventIDs(page.Events)[r.IntN(len(page.Events))]
			_ = m.call(http.MethodPost, "/api/events/"+again+"/redeliver", nil, nil) // whatever the answer is
		}
	case 1:
		var staged apitypes.WebhookSecretResponse
		if m.call(http.MethodPost, path, nil, &staged) == nil {
			m.mu.Lock()
			m.secrets = append(m.secrets, staged.Secret)
			m.mu.Unlock()
			_ = m.call(http.MethodPost, path+"/promote", nil, nil) // without an answer, either may sign
		}
	case 2:
		m.world.all.Go(m.replaceKey)
	case 3:
		m.changeAddresses()
	}
}

// replaceKey makes a key, lets requests with the old one end, and revokes that. A second later it must be refused.
func (m *merchant) replaceKey() {
	var made apitypes.KeySecretResponse
	if m.call(http.MethodPost, "/api/keys", object{"name": "shop", "merchantId": m.name, "scopes": []string{"admin"}}, &made) != nil {
		return
	}
	old := m.key.Swap(&made)
	thief := newClient(m.world, "thief of "+m.name, old)
	browser := thief.signIn(made.Key.ID)
	if !m.world.pause(clientTimeout+time.Second) || m.insist(http.MethodDelete, "/api/keys/"+old.Key.ID, nil, nil) != nil {
		return
	}
	for pause := time.Second; m.world.pause(pause); pause *= 3 {
		if thief.call(http.MethodGet, "/api/invoices?limit=1", nil, nil) == nil || browser.isSignedIn() {
			m.world.fail("%s: the key %s, or a session by a link of it, was used after its revocation", m.name, old.Key.ID)
		}
	}
}

// signIn makes a link for the holder of another key, and returns a browser that has opened it.
func (c *client) signIn(keyID string) *client {
	var link apitypes.SignInLink
	browser := &client{world: c.world, name: c.name}
	if c.call(http.MethodPost, "/api/sign-in-links", object{"keyId": keyID}, &link) == nil {
		_, token, _ := strings.Cut(link.Path, "link=")
		_ = browser.call(http.MethodPost, "/dashboard/sign-in", url.Values{"link": {token}}, nil) // a failure leaves it signed out
	}
	return browser
}

// isSignedIn reports whether the dashboard shows its pages to the client.
func (c *client) isSignedIn() bool {
	page := ""
	return c.call(http.MethodGet, "/dashboard/keys", nil, &page) == nil && strings.Contains(page, "/dashboard/sign-out")
}

func (w *world) allOrders() []*order {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.orders)
}

// anyOrder returns an order with an invoice, or nil.
func (w *world) anyOrder(r *rand.Rand) *order {
	if all := w.allOrders(); len(all) > 0 {
		if o := all[r.IntN(len(all))]; len(o.acks) > 0 {
			return o
		}
	}
	return nil
}

// disturb lets strangers send tokens that pay nothing, and sweep deposits, until the active time is over.
func (w *world) disturb() {
	r, key := stream(w.seed, "strangers"), account(stranger)
	for clock.Sleep(w.ctx, time.Duration(r.ExpFloat64()*float64(20*time.Second)), nil) && time.Since(w.plan.began) < w.active {
		c, m := w.chains[r.IntN(len(w.chains))], w.merchants[r.IntN(len(w.merchants))]
		o := w.anyOrder(r)
		amount := big.NewInt(int64(1 + 2*r.IntN(5_000) + 20_000_000*r.IntN(2))) // of no order
		switch {
		case o != nil && o.first().Invoice.DepositAddress != "" && r.IntN(2) == 0:
			o.chain.send(key, &o.chain.factory, contracts.NewDepositFactory().PackSweepOne(contracts.Sweep{Merchant: o.wallet, Id: common.HexToHash(o.first().OnChainInvoiceID), Token: o.token()}), callGas)
		default:
			to := addressOf(account(m.wallets()[r.IntN(2)]))
			tx := c.send(key, []*common.Address{&c.token, &c.other}[r.IntN(2)], contracts.NewTestUSDC().PackTransfer(to, amount), callGas)
			if r.IntN(12) == 0 && !c.omits { // a block of which a receipt is missing cannot be compared
				w.log.say(c.key, "no node returns transaction %s, only its logs", tx.Hash())
				c.hide(tx.Hash(), withheld{}, 0)
			}
		}
	}
}

// follow reads the feed of events, page by page, until the world ends.
func (w *world) follow() {
	c := newClient(w, "follower", w.operator.key.Load())
	r := stream(w.seed, "follower")
	for cursor := "start"; w.pause(time.Duration(5+r.IntN(30)) * time.Second); {
		var page apitypes.EventList
		if err := c.call(http.MethodGet, "/api/events?after="+cursor, nil, &page); err != nil {
			cursor = continueAt(cursor, err)
			c.key.Store(w.operator.key.Load())
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
