package main

import (
	"net"
	"net/http"
	"net/mail"
	"net/textproto"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/mailer"
)

// mailHost is where the mail server listens.
const mailHost = "127.0.3.1"

// mailServer takes receipts for payers.
type mailServer struct {
	world *world

	mu   sync.Mutex
	due  map[string]time.Time // when the service promised a receipt, by recipient
	over map[string]bool      // recipients that have one, or never will
	runs map[string]int64     // the run of the service that knows that a mail was taken, by Message-ID
}

// receiveMail opens the mail server.
func (w *world) receiveMail(outside *host) {
	w.mail = &mailServer{world: w, due: map[string]time.Time{}, over: map[string]bool{}, runs: map[string]int64{}}
	l := outside.listen(mailHost + ":25")
	go func() { // until the network ends
		for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
			go w.mail.talk(textproto.NewConn(conn))
		}
	}()
}

// talk answers the commands of a client.
func (p *mailServer) talk(c *textproto.Conn) {
	to, err := "", c.PrintfLine("220 mail.example")
	for err == nil {
		var line string
		if line, err = c.ReadLine(); err == nil {
			verb, rest, _ := strings.Cut(line, " ")
			if address, ok := strings.CutPrefix(rest, "TO:"); ok {
				to = strings.Trim(address, "<>")
			}
			err = p.answer(c, verb, to, "")
		}
	}
	_ = c.Close() // of a pipe, which cannot fail
}

// code returns the code of a reply. A mail that was taken, and a permanent refusal of it or of its recipient, end its
// delivery.
func (p *mailServer) code(e effect, verb, to string) int {
	code, special := map[string]int{"DATA": 354, "QUIT": 221}[verb]
	if !special {
		code = 250
	}
	if e.status > 0 {
		code = 400 + e.status%200
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over[to] = p.over[to] || verb == "." && code < 400 || code >= 500 && (verb == "." || verb == "RCPT")
	return code
}

// answer answers a command, or a mail as the command ".", as a fault lets it.
func (p *mailServer) answer(c *textproto.Conn, verb, to, text string) error {
	e := p.world.plan.meet("mail", verb)
	if !clock.Sleep(p.world.ctx, latency+e.delay, nil) || e.request {
		return net.ErrClosed
	}
	code := p.code(e, verb, to)
	p.world.log.say("mail", "%s for %s: %d %s", verb, to, code, hitsOf(e))
	if verb == "." && code < 400 {
		p.take(to, text, !e.answer && e.body == ownBody && e.delay < mailer.Timeout/4)
	}
	switch {
	case e.answer:
		return net.ErrClosed
	case e.body != ownBody:
		return c.PrintfLine("nonsense")
	}
	if err := c.PrintfLine("%d so be it", code); err != nil || verb != "DATA" || code >= 400 {
		return err
	}
	raw, err := c.ReadDotBytes()
	if err != nil {
		return err
	}
	return p.answer(c, ".", to, string(raw))
}

// take checks that a mail is the receipt that its recipient asked for. A run of the service that knows that the mail was
// taken must not send it again.
func (p *mailServer) take(to, text string, known bool) {
	w, id := p.world, "none"
	if m, err := mail.ReadMessage(strings.NewReader(text)); err == nil {
		id = m.Header.Get("Message-ID")
	}
	invoice, _, _ := strings.Cut(strings.Trim(id, "<>"), ".")
	text = strings.ReplaceAll(text, "=\n", "") // quoted-printable breaks lines
	w.mu.Lock()
	ours := 0
	for _, o := range w.orders {
		if len(o.acks) > 0 && strings.Contains(text, o.first().ID) {
			if ours++; o.first().ID != invoice || o.address() != to {
				ours = -len(w.orders)
			}
		}
	}
	w.mu.Unlock()
	if ours != 1 {
		w.fail("a mail to %s is another receipt than was asked for: %s", to, text)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	run := w.services[0].healthy.Load()
	if known = known && run > 0 && w.database == nil; known && p.runs[id] == run {
		w.fail("mail %s to %s was sent twice", id, to)
	}
	if known {
		p.runs[id] = run
	}
}

func (o *order) address() string { return o.name + "@payers.example" }

// askForReceipt lets some payers ask for a receipt until the page offers one.
func (o *order) askForReceipt() {
	w, payer := o.merchant.world, &client{world: o.merchant.world, name: "payer of " + o.name}
	for stream(w.seed, "receipt of "+o.name).IntN(3) == 0 && w.pause(30*time.Second) && time.Now().Unix() < o.request.ExpiresAt+60 {
		if payer.call(http.MethodPost, "/checkout/"+o.first().ID+"/receipt", url.Values{"email": {o.address()}}, nil) == nil {
			w.mail.mu.Lock()
			defer w.mail.mu.Unlock()
			w.mail.due[o.address()] = time.Now()
			return
		}
	}
}

// judgeMail checks that receipts that were promised have come. A mail ends after a day, and a restored backup may lack it.
func (w *world) judgeMail(miss func(string, ...any)) {
	w.mail.mu.Lock()
	defer w.mail.mu.Unlock()
	for to, at := range w.mail.due {
		if !w.mail.over[to] && at.UnixNano() > w.restored.Load() {
			miss("the receipt for %s has not come", to)
		}
	}
}
