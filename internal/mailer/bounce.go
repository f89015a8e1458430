package mailer

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"net/textproto"
	"regexp"
	"strconv"
	"strings"
)

// Limits of messages that report what became of a mail.
const (
	// MaxReport bounds a message, in bytes. It has the mail that it is about, or the mail's header.
	MaxReport = 256 << 10
	// maxParts bounds the parts of a message that are read, and the recipients that each names.
	maxParts = 30
	// maxDepth bounds how deep parts are in each other.
	maxDepth = 5
)

// ErrNoReport is the error of a message that is not a delivery status notification (RFC 3464) about a mail. The text of
// the error names what it lacks.
var ErrNoReport = errors.New("is no report about a mail of this service")

// Bounce is a mail that a server returned.
type Bounce struct {
	InvoiceID string
	Number    int
	Failed    bool   // false: it was delivered, or is late
	Reason    string // of a failure, in the words of the server, without addresses

	mark string // proves that the report was written by somebody who has the mail
}

// id returns the id of a mail, in its Message-ID. It has a mark that only those know who have the mail, and from which
// the Token cannot be computed, because replies repeat the id.
func (m Mail) id() string { return fmt.Sprintf("%s.%d.%s", m.InvoiceID, m.Number, m.mark()) }

func (m Mail) mark() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", m.Token, m.Number))
	return hex.EncodeToString(sum[:16])
}

// mailID matches the id of a mail.
var mailID = regexp.MustCompile(`\b(inv_[0-9a-z]{1,60})\.([1-9][0-9]{0,8})\.([0-9a-f]{32})\b`)

// TakeReport records a bounce that a message reports. It ignores a report of a delay or of a delivery, and one
// about a mail that failed before. Errors are ErrNoReport, and db.ErrNotFound if no mail has the id.
func (m *Mailer) TakeReport(ctx context.Context, message []byte) (Bounce, error) {
	b, err := readReport(message)
	if err != nil {
		return b, err
	}
	err = m.conf.Store.BounceMail(ctx, b, m.conf.Now())
	if err == nil && b.Failed {
		m.conf.Logger.WarnContext(ctx, "mail returned", "invoice", b.InvoiceID, "number", b.Number, "reason", b.Reason)
	}
	return b, err
}

// readReport reads a message. It finds the id of the mail anywhere in it, because not all servers return the mail in a
// part of its own.
func readReport(message []byte) (b Bounce, err error) {
	if bytes.HasPrefix(message, []byte("From ")) { // a mail server adds this line when it gives a mail to a program
		_, message, _ = bytes.Cut(message, []byte("\n"))
	}
	m, err := mail.ReadMessage(bytes.NewReader(message))
	if err != nil {
		return b, fmt.Errorf("%w: it has no header of a mail", ErrNoReport)
	}
	r := reportReader{parts: maxParts}
	r.read(textproto.MIMEHeader(m.Header), m.Body, maxDepth)
	switch {
	case r.action == "":
		return b, fmt.Errorf("%w: it has no part message/delivery-status (RFC 3464) with an Action", ErrNoReport)
	case r.id == nil:
		return b, fmt.Errorf("%w: it does not repeat the mail's header Message-ID or X-Quittance-Mail", ErrNoReport)
	}
	b = Bounce{InvoiceID: string(r.id[1]), mark: string(r.id[3]), Failed: r.action == failed}
	if b.Number, err = strconv.Atoi(string(r.id[2])); b.Failed {
		b.Reason = reason(&AnswerError{Text: r.reason})
	}
	return b, err
}

// reportReader collects what the parts of a message report.
type reportReader struct {
	parts  int // that may still be read
	id     [][]byte
	action string // failed if a recipient has it
	reason string
}

// failed is the Action of a mail that was given up.
const failed = "failed"

// read reads a part, and those in it. It leaves out parts that it cannot decode.
func (r *reportReader) read(h textproto.MIMEHeader, body io.Reader, depth int) {
	kind, parameters, _ := mime.ParseMediaType(h.Get("Content-Type"))
	if strings.HasPrefix(kind, "multipart/") {
		for parts := multipart.NewReader(body, parameters["boundary"]); depth > 0 && r.parts > 0; r.parts-- {
			part, err := parts.NextPart()
			if err != nil {
				return
			}
			r.read(part.Header, part, depth-1)
		}
		return
	}
	if strings.EqualFold(h.Get("Content-Transfer-Encoding"), "base64") {
		body = base64.NewDecoder(base64.StdEncoding, body)
	}
	content, _ := io.ReadAll(body) // a message that was cut off counts as far as it goes
	switch kind {
	case "message/delivery-status", "message/global-delivery-status":
		r.readStatus(textproto.NewReader(bufio.NewReader(bytes.NewReader(content))))
	default:
		if r.id == nil {
			r.id = mailID.FindSubmatch(content)
		}
	}
}

// readStatus reads groups of fields: one about the message, and one about each recipient.
func (r *reportReader) readStatus(groups *textproto.Reader) {
	for range maxParts {
		fields, err := groups.ReadMIMEHeader()
		if action := strings.ToLower(strings.TrimSpace(fields.Get("Action"))); action != "" && r.action != failed {
			r.action, r.reason = action, reasonOf(fields)
		}
		if err != nil {
			return
		}
	}
}

// reasonOf returns the words of the receiving server, after the status (RFC 3463).
func reasonOf(fields textproto.MIMEHeader) string {
	status, _, _ := strings.Cut(strings.TrimSpace(fields.Get("Status")), " ")
	_, words, _ := strings.Cut(fields.Get("Diagnostic-Code"), ";")
	words = strings.Join(strings.Fields(words), " ")
	if !strings.HasPrefix(replyCode.ReplaceAllString(words, ""), status) {
		words = status + " " + words
	}
	return cmp.Or(strings.TrimSpace(words), "returned without a reason")
}

// replyCode matches the code before an enhanced one.
var replyCode = regexp.MustCompile(`^\d{3}[ -]`)
