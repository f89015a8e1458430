package mailer_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/mailer"
	"github.com/quittance/quittance/internal/test/expect"
)

// client returns a sender to the server.
func (s *smtpServer) client(kind mailer.Encryption) *mailer.SMTP {
	return &mailer.SMTP{
		Host: s.host, Port: s.port, Encryption: kind, Roots: s.roots, User: "ann", Password: "pa ss", From: mail.Address{Name: "Pay Ümläut", Address: "receipts@pay.example"},
		Now: func() time.Time { return time.Unix(1_790_000_000, 0).UTC() },
	}
}

var content = mailer.Message{Subject: "Receipt: 4.90 USDC to Café", Text: "Paid in full\nÜber 4.90", HTML: "<p>Paid in full: Ü</p>", ReplyTo: "help@shop.example", StopURL: "https://pay.example/mails/x?lang=en"}

// TestSend sends a mail with each kind of encryption.
func TestSend(t *testing.T) {
	t.Parallel()
	for _, kind := range []mailer.Encryption{mailer.StartTLS, mailer.ImplicitTLS, mailer.NoTLS} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			server := startSMTP(t, func(s *smtpServer) {
				s.implicit = kind == mailer.ImplicitTLS
				if kind == mailer.NoTLS {
					s.config = nil
				}
			})
			expect.OK(t, server.client(kind).Send(t.Context(), "inv_1.1", "ada@example.com", content))
			got := server.all()
			if len(got) != 1 || got[0].secure != (kind != mailer.NoTLS) || got[0].auth != "\x00ann\x00pa ss" ||
				!strings.HasPrefix(got[0].from, "FROM:<receipts@pay.example>") || got[0].to != "TO:<ada@example.com>" {
				t.Fatalf("the server took %+v", got)
			}
			header := got[0].header(t)
			for name, want := range map[string]string{
				"Subject": content.Subject, "From": "Pay Ümläut <receipts@pay.example>", "To": "<ada@example.com>",
				"Message-Id": "<inv_1.1@pay.example>", "Auto-Submitted": "auto-generated", "Reply-To": "<help@shop.example>",
				"List-Unsubscribe": "<https://pay.example/mails/x?lang=en>", "List-Unsubscribe-Post": "List-Unsubscribe=One-Click", "Date": "Mon, 21 Sep 2026 14:13:20 +0000",
			} {
				if value, err := new(mime.WordDecoder).DecodeHeader(header.Get(name)); err != nil || value != want {
					t.Errorf("%s is %q, want %q, %v", name, value, want, err)
				}
			}
			parts := parts(t, got[0])
			if parts["text/plain"] != strings.ReplaceAll(content.Text, "\n", "\r\n") || parts["text/html"] != content.HTML {
				t.Errorf("the parts are %q", parts)
			}
		})
	}
}

// parts returns the parts of a mail by media type.
func parts(t *testing.T, r received) map[string]string {
	t.Helper()
	m, err := mail.ReadMessage(strings.NewReader(r.data))
	expect.OK(t, err)
	kind, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/alternative" {
		t.Fatalf("the mail is %s, %v", kind, err)
	}
	all := make(map[string]string)
	for reader := multipart.NewReader(m.Body, params["boundary"]); ; {
		part, err := reader.NextRawPart()
		if errors.Is(err, io.EOF) {
			return all
		}
		expect.OK(t, err)
		kind, _, _ := mime.ParseMediaType(part.Header.Get("Content-Type"))
		text, err := io.ReadAll(quotedprintable.NewReader(part))
		expect.OK(t, err)
		all[kind] = strings.ReplaceAll(strings.TrimSpace(string(text)), "\r\n", "\n")
		if kind == "text/plain" {
			all[kind] = strings.ReplaceAll(all[kind], "\n", "\r\n")
		}
	}
}

// TestSendRefusesAnUnencryptedServer expects that no mail and no password reaches a server without
// STARTTLS, or with a certificate that is not trusted.
func TestSendRefusesAnUnencryptedServer(t *testing.T) {
	t.Parallel()
	plain := startSMTP(t, func(s *smtpServer) { s.config = nil })
	if err := plain.client(mailer.StartTLS).Send(t.Context(), "inv_1.1", "ada@example.com", content); err == nil {
		t.Error("a mail was sent without encryption")
	}
	stranger := startSMTP(t, nil)
	client := stranger.client(mailer.StartTLS)
	client.Roots = plain.roots
	if err := client.Send(t.Context(), "inv_1.1", "ada@example.com", content); err == nil {
		t.Error("a mail was sent to a stranger")
	}
	for _, s := range []*smtpServer{plain, stranger} {
		expect.Len(t, s.all(), 0, "the server took")
	}
}

// TestSendJudgesAnswers distinguishes permanent failures from temporary ones.
func TestSendJudgesAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		command, answer    string
		refused, recipient bool
	}{
		{"RCPT", "550 5.1.1 no \"such\" user", true, true},
		{"RCPT", "550 5.4.1 Recipient address rejected: Access denied", true, true},
		{"RCPT", "550 5.5.0 mailbox unavailable", true, true},
		{"RCPT", "450 4.2.1 try later", false, true},
		{"RCPT", "450 4.1.2 Domain not found", false, true},
		{"RCPT", "450 mailbox busy", false, true},
		{"RCPT", "550 no such user", true, true},
		{"RCPT", "552 5.2.2 mailbox full", true, true},
		{"END", "552 5.2.2 mailbox full", true, true},
		{"END", "554 5.6.0 malformed, affected", true, false},
		{"RCPT", "550 5.4.5 daily quota exceeded", false, false}, // the rest is about the account, which the operator can correct
		{"RCPT", "554 5.4.14 hop count exceeded", false, false},
		{"RCPT", "503 5.5.1 bad sequence of commands", false, false},
		{"RCPT", "553 5.7.1 sender address rejected: not owned by user", false, false},
		{"RCPT", "550 5.1.8 bad sender's address", false, false},
		{"RCPT", "452 4.3.1 no storage", false, false},
		{"RCPT", "451 local error", false, false},
		{"END", "554 5.7.1 the address is not verified", false, false},
		{"END", "550 5.7.60 client may not send as this sender", false, false},
		{"END", "451 4.3.0 try later", false, false},
		{"MAIL", "550 5.7.1 you may not send", false, false}, // the operator can correct it
		{"AUTH", "535 5.7.8 wrong password", false, false},
		{"GREETING", "554 not now", false, false},
	} {
		server := startSMTP(t, func(s *smtpServer) { s.answers = map[string]string{c.command: c.answer} })
		err := server.client(mailer.StartTLS).Send(t.Context(), "inv_1.1", "ada@example.com", content)
		if refused := (*mailer.RefusedError)(nil); err == nil || errors.As(err, &refused) != c.refused {
			t.Errorf("%s %s: %v, want refused %t", c.command, c.answer, err, c.refused)
		}
		quoted := (*mailer.AnswerError)(nil)
		if aboutMail := c.command == "RCPT" || c.command == "END"; errors.As(err, &quoted) != aboutMail || aboutMail && quoted.Text != c.answer {
			t.Errorf("%s %s: the answer is given as %v", c.command, c.answer, quoted)
		} else if aboutMail && quoted.Recipient != c.recipient {
			t.Errorf("%s %s: about the recipient %t, want %t", c.command, c.answer, quoted.Recipient, c.recipient)
		}
	}
}

// TestSendEndsWithItsContext makes a server hang at each command.
func TestSendEndsWithItsContext(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"GREETING", "EHLO", "STARTTLS", "AUTH", "MAIL", "RCPT", "DATA", "END"} {
		server := startSMTP(t, func(s *smtpServer) { s.hang = command })
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		err := server.client(mailer.StartTLS).Send(ctx, "inv_1.1", "ada@example.com", content)
		cancel()
		if refused := (*mailer.RefusedError)(nil); err == nil || errors.As(err, &refused) {
			t.Errorf("%s: %v", command, err)
		}
	}
}

// TestSendToAServerThatFloods connects to a server that sends a line without an end.
func TestSendToAServerThatFloods(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	expect.OK(t, err)
	sent := make(chan int, 1)
	go func() {
		conn, err := listener.Accept()
		expect.NoError(t, err)
		line, all := bytes.Repeat([]byte("a"), 64<<10), 0
		for all < 256<<20 {
			n, err := conn.Write(line)
			if all += n; err != nil {
				break
			}
		}
		expect.NoError(t, errors.Join(conn.Close(), listener.Close()))
		sent <- all
	}()
	s := &mailer.SMTP{Host: "127.0.0.1", Port: listener.Addr().(*net.TCPAddr).Port, Encryption: mailer.StartTLS, From: mail.Address{Address: "pay@pay.example"}, Now: time.Now}
	if err := s.Send(t.Context(), "inv_1.1", "ada@example.com", content); err == nil {
		t.Error("the mail was sent")
	}
	if all := <-sent; all > 32<<20 {
		t.Errorf("%d bytes were read", all)
	}
}

// TestSendKnowsWhatWasTaken makes a server fail after it took the mail, which must not be sent again.
func TestSendKnowsWhatWasTaken(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"RSET", "QUIT"} {
		for name, fail := range map[string]func(*smtpServer){
			"refuses": func(s *smtpServer) { s.answers = map[string]string{command: "421 4.3.2 shutting down"} },
			"hangs":   func(s *smtpServer) { s.hang = command },
		} {
			server := startSMTP(t, fail)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if err := server.client(mailer.StartTLS).Send(ctx, "inv_1.1", "ada@example.com", content); err != nil {
				t.Errorf("the server %s at %s: %v", name, command, err)
			}
			cancel()
		}
	}
}

// TestHostileSubjects checks that no text begins another header or another recipient.
func TestHostileSubjects(t *testing.T) {
	t.Parallel()
	server := startSMTP(t, nil)
	hostile := "Receipt\r\nBcc: victim@example.com\r\n\r\nBuy!\x00"
	expect.OK(t, server.client(mailer.StartTLS).Send(t.Context(), "inv_1.1", "ada@example.com", mailer.Message{Subject: hostile, Text: ".\r\nMAIL FROM:<x@y.z>", HTML: hostile}))
	got := server.all()
	if len(got) != 1 || got[0].to != "TO:<ada@example.com>" || got[0].header(t).Get("Bcc") != "" {
		t.Errorf("the server took %+v", got)
	}
}
