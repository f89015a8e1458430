package mailer

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"regexp"
	"strconv"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"
)

// SMTP hands mails to a server.
type SMTP struct {
	Host           string
	Port           int
	Encryption     Encryption
	Roots          *x509.CertPool // to check its certificate with; nil: the system's
	User, Password string         // empty: no authentication
	From           mail.Address
	Now            func() time.Time
	// Dial replaces the network, without ImplicitTLS; nil means the network.
	Dial gomail.DialContextFunc
}

// Encryption is how the connection to a server is encrypted.
type Encryption string

// The kinds of encryption.
const (
	StartTLS    Encryption = "starttls" // refused by servers without it
	ImplicitTLS Encryption = "implicit" // from the first byte on
	NoTLS       Encryption = "none"
)

// Send implements Sender. The server's answers end with ctx.
func (s *SMTP) Send(ctx context.Context, id, recipient string, m Message) error {
	message, err := s.message(id, recipient, m)
	if err != nil {
		return &RefusedError{err}
	}
	client, err := gomail.NewClient(s.Host, s.options(ctx)...)
	if err != nil {
		return fmt.Errorf("SMTP client: %w", err)
	}
	err = client.DialAndSendWithContext(ctx, message)
	if err == nil || message.IsDelivered() { // whatever happens at QUIT
		return nil
	}
	failed := (*gomail.SendError)(nil)
	if errors.As(err, &failed) && failed.ErrorCode() > 0 && (failed.Reason == gomail.ErrSMTPRcptTo || failed.Reason == gomail.ErrSMTPDataClose) {
		text := answerOf(failed)
		account := aboutAccount.MatchString(text)
		err = &AnswerError{text, !account && (failed.Reason == gomail.ErrSMTPRcptTo || aboutMailbox.MatchString(text))}
		if failed.ErrorCode() >= permanentCode && !account {
			return &RefusedError{err}
		}
	}
	return fmt.Errorf("send to %s: %w", s.Host, err)
}

// AnswerError is an answer of a server that did not take a mail.
type AnswerError struct {
	Text      string
	Recipient bool // whether it is about the recipient, for now or for good
}

// Error returns the answer.
func (e *AnswerError) Error() string { return e.Text }

// answerOf returns what a server answered: the error without what the client adds.
func answerOf(failed *gomail.SendError) string {
	text := strings.TrimPrefix(failed.Error(), failed.Reason.String()+": ")
	for _, added := range []string{", affected message ID: ", ", affected recipient(s): "} {
		if at := strings.LastIndex(text, added); at >= 0 {
			text = text[:at]
		}
	}
	if code, quoted, _ := strings.Cut(text, " "); quoted != "" { // as package textproto writes it
		if words, err := strconv.Unquote(quoted); err == nil {
			text = code + " " + words
		}
	}
	return text
}

// permanentCode is the lowest code of a permanent failure.
const permanentCode = 500

// aboutAccount matches failures with an enhanced code (RFC 3463) that is not about the recipient (X.1, X.2; for some
// servers X.4.1, X.5.0) or the content (X.6): servers answer so if they are out of order, and if the account is
// suspended, over its quota, or may not use the sender's address. So are temporary failures without such a code but
// 450.
var aboutAccount = regexp.MustCompile(`^([45]\d\d [45]\.([03789]\.|4\.([02-9]|1\d)|5\.[1-9]|1\.[78]\b)|4(2\d|5[1-9])( [^4]|$))`)

// aboutMailbox matches failures with an enhanced code about the recipient, and noMailbox those that are permanent. Not
// about it are 5.1.7 and 5.1.8, which are about the sender.
var (
	aboutMailbox = regexp.MustCompile(`^\d{3} [45]\.[12]\.`)
	noMailbox    = regexp.MustCompile(`^(\d{3}[ -])?5\.(1\.[0-6]\b|2\.)`)
)

// message returns a mail with the parts text and HTML. The Message-ID is the same for
// each attempt.
func (s *SMTP) message(id, recipient string, m Message) (*gomail.Msg, error) {
	message := gomail.NewMsg()
	if err := message.FromFormat(s.From.Name, s.From.Address); err != nil {
		return nil, fmt.Errorf("sender: %w", err)
	}
	if err := message.To(recipient); err != nil {
		return nil, fmt.Errorf("recipient: %w", err)
	}
	message.Subject(oneLine(m.Subject))
	message.SetMessageIDWithValue(id + "@" + s.domain())
	message.SetGenHeader("X-Quittance-Mail", id) // because some servers replace the Message-ID
	message.SetDateWithValue(s.Now())
	message.SetGenHeader("Auto-Submitted", "auto-generated")
	if m.ReplyTo != "" {
		if err := message.ReplyTo(m.ReplyTo); err != nil {
			return nil, fmt.Errorf("reply to: %w", err)
		}
	}
	if m.StopURL != "" { // RFC 8058
		message.SetGenHeader("List-Unsubscribe", "<"+m.StopURL+">")
		message.SetGenHeader("List-Unsubscribe-Post", "List-Unsubscribe=One-Click")
	}
	message.SetBodyString(gomail.TypeTextPlain, m.Text)
	message.AddAlternativeString(gomail.TypeTextHTML, m.HTML)
	return message, nil
}

// oneLine returns a text without control characters, which could begin another header.
func oneLine(text string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c == '\x7f' {
			return ' '
		}
		return c
	}, text)
}

// domain returns the host of the sender's address.
func (s *SMTP) domain() string {
	return s.From.Address[strings.LastIndexByte(s.From.Address, '@')+1:]
}

// mechanisms are the mechanisms of AUTH, the preferred one first. The client treats a connection that
// it did not encrypt itself as one without encryption.
var mechanisms = []gomail.SMTPAuthType{gomail.SMTPAuthSCRAMSHA256, gomail.SMTPAuthSCRAMSHA1, gomail.SMTPAuthPlainNoEnc, gomail.SMTPAuthLoginNoEnc}

func (s *SMTP) options(ctx context.Context) []gomail.Option {
	policy := gomail.TLSMandatory
	if s.Encryption != StartTLS {
		policy = gomail.NoTLS // ImplicitTLS encrypts when it dials
	}
	options := []gomail.Option{
		gomail.WithPort(s.Port), gomail.WithTimeout(Timeout), gomail.WithHELO(cmp.Or(s.domain(), "localhost")), gomail.WithoutNoop(),
		gomail.WithTLSPolicy(policy), gomail.WithTLSConfig(s.tlsConfig()), gomail.WithDialContextFunc(s.dialUntil(ctx)),
	}
	if s.User != "" {
		options = append(options, gomail.WithOpportunisticSMTPAuth(mechanisms...), gomail.WithUsername(s.User), gomail.WithPassword(s.Password))
	}
	return options
}

func (s *SMTP) tlsConfig() *tls.Config {
	return &tls.Config{ServerName: s.Host, RootCAs: s.Roots, MinVersion: tls.VersionTLS12}
}

// dialUntil returns a function that connects to the server. The connection is closed when ctx ends,
// because the client extends its deadlines with each command.
func (s *SMTP) dialUntil(ctx context.Context) gomail.DialContextFunc {
	return func(dialing context.Context, network, address string) (conn net.Conn, err error) {
		dial := s.Dial
		switch {
		case dial != nil:
		case s.Encryption == ImplicitTLS:
			dial = (&tls.Dialer{Config: s.tlsConfig()}).DialContext
		default:
			dial = (&net.Dialer{}).DialContext
		}
		if conn, err = dial(dialing, network, address); err != nil {
			return nil, err
		}
		stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
		return &closer{conn, stop, maxAnswers}, nil
	}
}

// maxAnswers bounds what a server sends on a connection, in bytes. The client reads lines of any length.
const maxAnswers = 1 << 20

// closer is a connection that can be detached from its context, and that reads left bytes.
type closer struct {
	net.Conn
	stop func() bool
	left int
}

// Read implements net.Conn.
func (c *closer) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, fmt.Errorf("the server sent more than %d bytes", maxAnswers)
	}
	n, err := c.Conn.Read(p)
	c.left -= n
	return n, err
}

// Close closes the connection.
func (c *closer) Close() error {
	c.stop()
	return c.Conn.Close()
}
