package x402

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/quittance/quittance/internal/apiconv"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
)

// EncodeHeader returns a message as the value of a header.
func EncodeHeader(message any) (string, error) {
	text, err := json.Marshal(message)
	if err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(text), nil
}

// ParseSignatureHeader parses the value of the header PAYMENT-SIGNATURE. Errors are *Error.
func ParseSignatureHeader(value string) (Payment, error) {
	if len(value) > MaxHeader {
		return Payment{}, errorf(InvalidPayload, "the header %s must be at most %d bytes; it has %d", HeaderSignature, MaxHeader, len(value))
	}
	text, err := base64.StdEncoding.Strict().DecodeString(value)
	if err != nil {
		return Payment{}, errorf(InvalidPayload, "the header %s must be base64", HeaderSignature)
	}
	o, err := apiconv.Object(text)
	if err != nil {
		return Payment{}, errorf(InvalidPayload, "the header %s must be one JSON object: %v", HeaderSignature, err)
	}
	return parsePayment(object{o, ""})
}

// ParseRequest parses the body of a facilitator's operation, which is one JSON object. Errors are *Error.
func ParseRequest(body map[string]any) (Request, error) {
	o := object{body, ""}
	var r Request
	payload, err := o.object("paymentPayload", InvalidPayload)
	if err != nil {
		return r, err
	}
	required, err := o.object("paymentRequirements", InvalidRequirements)
	if err != nil {
		return r, err
	}
	if err := o.version(); err != nil {
		return r, err
	}
	if r.Payment, err = parsePayment(payload); err != nil {
		return r, err
	}
	r.Requirements, err = parseRequirements(required)
	return r, err
}

// parsePayment parses a PaymentPayload.
func parsePayment(o object) (p Payment, err error) {
	if err := o.version(); err != nil {
		return p, err
	}
	accepted, err := o.object("accepted", InvalidPayload)
	if err != nil {
		return p, err
	}
	if p.Accepted, err = parseRequirements(accepted); err != nil {
		return p, err
	}
	if _, named := o.members["resource"]; named {
		resource, err := o.object("resource", InvalidPayload)
		if err != nil {
			return p, err
		}
		if p.Resource, err = resource.text("url", MaxURL, InvalidPayload); err != nil {
			return p, err
		}
	}
	payload, err := o.object("payload", InvalidPayload)
	if err != nil {
		return p, err
	}
	p.Authorization, err = parseAuthorization(payload)
	return p, err
}

// parseAuthorization parses the payload of the scheme with EIP-3009.
func parseAuthorization(o object) (a invoice.Authorization, err error) {
	in, err := o.object("authorization", InvalidPayload)
	if err != nil {
		return a, err
	}
	err = cmp.Or(
		member(in, "from", InvalidPayload, &a.From, chain.ParseAddress),
		member(in, "to", InvalidPayload, &a.To, chain.ParseAddress),
		member(in, "value", InvalidPayload, &a.Value, invoice.ParseAmount),
		member(in, "validAfter", NotYetValid, &a.ValidAfter, parseTime),
		member(in, "validBefore", NoLongerValid, &a.ValidBefore, parseTime),
		member(in, "nonce", InvalidPayload, &a.Nonce, invoice.ParseHash),
		member(o, "signature", InvalidPayload, &a.Signature, invoice.ParseAuthorizationSignature),
	)
	return a, err
}

// parseRequirements parses PaymentRequirements.
func parseRequirements(o object) (r Requirements, err error) {
	scheme, err := o.text("scheme", MaxText, InvalidRequirements)
	if err != nil {
		return r, err
	}
	if scheme != Scheme {
		return r, errorf(UnsupportedScheme, "%sscheme must be %s; it is %.40q", o.path, Scheme, scheme)
	}
	err = cmp.Or(
		member(o, "network", InvalidNetwork, &r.ChainID, ParseNetwork),
		member(o, "amount", InvalidRequirements, &r.Amount, invoice.ParseAmount),
		member(o, "asset", InvalidRequirements, &r.Token, chain.ParseAddress),
		member(o, "payTo", InvalidRequirements, &r.PayTo, chain.ParseAddress),
		o.timeout(&r.Timeout),
	)
	if err == nil && r.Amount.IsZero() {
		err = errorf(InvalidRequirements, "%samount must be more than 0", o.path)
	}
	if err != nil {
		return r, err
	}
	if extra, ok := o.members["extra"]; !ok || extra == nil {
		return r, nil
	}
	return r, o.extra(&r)
}

// extra parses the scheme's additions to requirements.
func (o object) extra(r *Requirements) error {
	extra, err := o.object("extra", InvalidRequirements)
	if err != nil {
		return err
	}
	for name, dst := range map[string]*string{"name": &r.Domain.Name, "version": &r.Domain.Version, ExtraClientSecret: &r.ClientSecret} {
		if _, ok := extra.members[name]; !ok {
			continue
		}
		if *dst, err = extra.text(name, MaxText, InvalidRequirements); err != nil {
			return err
		}
	}
	method, ok := extra.members["assetTransferMethod"]
	if ok && method != TransferMethod {
		return errorf(UnsupportedScheme, "%sassetTransferMethod must be %s", extra.path, TransferMethod)
	}
	return nil
}

// object is a JSON object at a path of a message, such as "accepted.".
type object struct {
	members map[string]any
	path    string
}

// object returns a member that must be an object.
func (o object) object(name string, reason Reason) (object, error) {
	members, ok := o.members[name].(map[string]any)
	if !ok {
		return object{}, errorf(reason, "%s%s must be an object", o.path, name)
	}
	return object{members, o.path + name + "."}, nil
}

// text returns a member that must be a string of 1 to limit bytes.
func (o object) text(name string, limit int, reason Reason) (string, error) {
	text, ok := o.members[name].(string)
	if !ok || text == "" || len(text) > limit {
		return "", errorf(reason, "%s%s must be a string of 1 to %d bytes", o.path, name, limit)
	}
	return text, nil
}

// version checks the version of a message.
func (o object) version() error {
	if n, ok := o.members["x402Version"].(json.Number); !ok || n.String() != strconv.Itoa(Version) {
		return errorf(InvalidVersion, "%sx402Version must be %d", o.path, Version)
	}
	return nil
}

// timeout parses the member maxTimeoutSeconds.
func (o object) timeout(dst *time.Duration) error {
	const least, most = int64(MinTimeout / time.Second), int64(MaxTimeout / time.Second)
	number, _ := o.members["maxTimeoutSeconds"].(json.Number)
	n, err := strconv.ParseInt(number.String(), 10, 64)
	if err != nil || n < least || n > most {
		return errorf(InvalidRequirements, "%smaxTimeoutSeconds must be an integer from %d to %d", o.path, least, most)
	}
	*dst = time.Duration(n) * time.Second
	return nil
}

// member parses a string member into dst.
func member[T any](o object, name string, reason Reason, dst *T, parse func(string) (T, error)) error {
	text, ok := o.members[name].(string)
	if !ok {
		return errorf(reason, "%s%s must be a string", o.path, name)
	}
	v, err := parse(text)
	if err != nil {
		return errorf(reason, "%s%s %v", o.path, name, err)
	}
	*dst = v
	return nil
}

// maxTime is the last second of the year 9999.
const maxTime = 253_402_300_799

// parseTime parses Unix seconds in decimal digits, up to maxTime.
func parseTime(text string) (time.Time, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n > maxTime || text != strconv.FormatUint(n, 10) {
		return time.Time{}, fmt.Errorf("must be Unix seconds up to %d", int64(maxTime))
	}
	return time.Unix(int64(n), 0).UTC(), nil
}
