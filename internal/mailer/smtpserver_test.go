package mailer_test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/textproto"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/test/expect"
)

// received is a mail that a server took.
type received struct {
	from, to string
	auth     string // what AUTH PLAIN carried
	secure   bool   // over TLS
	data     string
}

// smtpServer is an SMTP server on the loopback interface.
type smtpServer struct {
	host     string
	port     int
	roots    *x509.CertPool
	config   *tls.Config // nil: no TLS
	implicit bool
	answers  map[string]string // its answers instead of success, by command, such as RCPT
	// hang is a command that it does not answer.
	hang string
	// taken is called with a mail before the client learns that it was taken.
	taken func(received)

	listener net.Listener
	wg       sync.WaitGroup
	mu       sync.Mutex
	conns    []net.Conn
	mails    []received
}

// startSMTP starts a server. set changes it before.
func startSMTP(t *testing.T, set func(*smtpServer)) *smtpServer {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	expect.OK(t, err)
	s := &smtpServer{host: "127.0.0.1", port: listener.Addr().(*net.TCPAddr).Port, listener: listener}
	s.config, s.roots = certificate(t)
	if set != nil {
		set(s)
	}
	s.wg.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns = append(s.conns, conn)
			s.mu.Unlock()
			s.wg.Go(func() { s.serve(conn) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		s.mu.Lock()
		for _, conn := range s.conns {
			_ = conn.Close()
		}
		s.mu.Unlock()
		s.wg.Wait()
	})
	return s
}

// certificate returns a certificate for 127.0.0.1, and a pool that trusts it.
func certificate(t *testing.T) (*tls.Config, *x509.CertPool) {
	t.Helper()
	key := expect.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0), KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der := expect.Must(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))
	parsed := expect.Must(x509.ParseCertificate(der))
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}, roots
}

// session is a connection of a client.
type session struct {
	*smtpServer
	conn net.Conn
	text *textproto.Conn
	mail received
}

func (s *smtpServer) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	c := &session{smtpServer: s, conn: conn}
	if s.implicit {
		c.secure(conn)
	} else {
		c.text = textproto.NewConn(conn)
	}
	if c.say("GREETING", "220 mail.example ESMTP") != nil {
		return
	}
	for {
		line, err := c.text.ReadLine()
		if err != nil {
			return
		}
		if err := c.command(line); err != nil {
			return
		}
	}
}

func (c *session) secure(conn net.Conn) {
	c.conn = tls.Server(conn, c.config)
	c.text, c.mail.secure = textproto.NewConn(c.conn), true
}

// say answers a command, unless the test sets another answer.
func (c *session) say(command, answer string) error {
	if command == c.hang {
		_, err := io.Copy(io.Discard, c.conn)
		return fmt.Errorf("hung up: %w", err)
	}
	if other := c.answers[command]; other != "" {
		answer = other
	}
	return c.text.PrintfLine("%s", answer)
}

func (c *session) command(line string) error {
	verb, rest, _ := strings.Cut(line, " ")
	switch verb = strings.ToUpper(verb); verb {
	case "EHLO":
		extensions := "250-mail.example\r\n250-AUTH PLAIN\r\n250 8BITMIME"
		if c.config != nil && !c.mail.secure {
			extensions = "250-mail.example\r\n250-STARTTLS\r\n250 8BITMIME"
		}
		return c.say(verb, extensions)
	case "STARTTLS":
		if err := c.say(verb, "220 go ahead"); err != nil {
			return err
		}
		c.secure(c.conn)
		return nil
	case "AUTH":
		raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(rest, "PLAIN "))
		c.mail.auth = string(raw)
		if err != nil {
			return err
		}
		return c.say(verb, "235 welcome")
	case "MAIL":
		c.mail.from = rest
		return c.say(verb, "250 ok")
	case "RCPT":
		c.mail.to += rest
		return c.say(verb, "250 ok")
	case "DATA":
		return c.data()
	case "QUIT":
		return c.say(verb, "221 bye")
	}
	return c.say(verb, "250 ok")
}

func (c *session) data() error {
	if err := c.say("DATA", "354 go on"); err != nil || c.answers["DATA"] != "" {
		return err
	}
	raw, err := io.ReadAll(c.text.DotReader())
	if err != nil {
		return err
	}
	c.mail.data = string(raw)
	if c.answers["END"] == "" {
		c.mu.Lock()
		c.mails = append(c.mails, c.mail)
		c.mu.Unlock()
		if c.taken != nil {
			c.taken(c.mail)
		}
	}
	return c.say("END", "250 taken")
}

// all returns the mails that were taken.
func (s *smtpServer) all() []received {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]received(nil), s.mails...)
}

// header returns the header of a mail.
func (r received) header(t *testing.T) textproto.MIMEHeader {
	t.Helper()
	header, err := textproto.NewReader(bufio.NewReader(strings.NewReader(r.data))).ReadMIMEHeader()
	expect.OK(t, err)
	return header
}
