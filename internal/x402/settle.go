package x402

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// purchase is a payment for a merchant's resource.
type purchase struct {
	Request
	merchantID string
	chain      chain.Chain
	token      chain.Token
}

// key identifies the purchase's authorization.
func (p purchase) key() ledger.AuthorizationKey {
	return key(p.chain, p.token.Address, p.Payment.Authorization)
}

// newPurchase checks the parts of a request that do not depend on the state. Errors are
// *x402.Error.
func (s *Service) newPurchase(merchantID string, r Request) (purchase, error) {
	c, token, err := s.network(r.Requirements)
	if err != nil {
		return purchase{}, err
	}
	return purchase{Request: r, merchantID: merchantID, chain: c, token: token}, r.Check()
}

// Verify reports whether Settle would accept a payment for a merchant's resource, or has accepted it. It returns an
// error only for failures that do not concern the payment.
func (s *Service) Verify(ctx context.Context, merchantID string, r Request) (apitypes.X402VerifyResponse, error) {
	p, err := s.newPurchase(merchantID, r)
	if err == nil {
		err = s.verify(ctx, p)
	}
	if err == nil {
		return apitypes.X402VerifyResponse{IsValid: true, Payer: chain.Checksum(r.Payment.Authorization.From)}, nil
	}
	refused, err := failure(r.Payment, err)
	return apitypes.X402VerifyResponse{InvalidReason: refused.ErrorReason, InvalidMessage: refused.ErrorMessage, Payer: refused.Payer}, err
}

// verify returns why a purchase cannot be made, as an *x402.Error or an
// *invoice.RefusalError.
func (s *Service) verify(ctx context.Context, p purchase) error {
	known, err := s.settlement(ctx, p)
	switch {
	case errors.Is(err, db.ErrNotFound):
		return s.check(ctx, p)
	case err != nil:
		return err
	case known.Answers >= p.maxAnswers():
		return errAnswered(p.maxAnswers())
	}
	accepted, err := s.authorization(ctx, p)
	if err == nil && accepted.Paid() {
		err = s.checkValid(ctx, accepted)
	}
	if err == nil && accepted.Status == ledger.AuthorizationRefused {
		err = &invoice.RefusalError{Reason: accepted.Reason, Detail: accepted.Reason.Detail()}
	}
	return err
}

// check checks a purchase with an authorization that was not accepted yet.
func (s *Service) check(ctx context.Context, p purchase) error {
	err := s.checkTerms(ctx, p)
	if err == nil {
		_, err = s.Ledger.CheckAuthorization(ctx, p.invoice(), p.Payment.Authorization)
	}
	return err
}

// checkTerms checks the parts of a purchase that ledger.Purchase does not check. It also checks the authorization,
// because Purchase first looks at the terms of the invoice, which expires with it.
func (s *Service) checkTerms(ctx context.Context, p purchase) error {
	if err := s.checkPayee(ctx, p); err != nil {
		return err
	}
	if err := p.invoice().CheckAuthorization(p.Payment.Authorization, s.Now(), s.Now()); err != nil {
		return err
	}
	domain, err := s.Chains.Domain(chain.OnBehalfOf(ctx, p.merchantID), p.chain.Key, p.token.Address)
	if err != nil {
		return fmt.Errorf("read the domain of token %s on %s: %w", p.token.Address, p.chain.Key, err)
	}
	if named := p.Requirements.Domain; named != (Domain{}) && named != domain {
		return &Error{Reason: DomainMismatch, Detail: fmt.Sprintf("the token's domain is %q, version %q", domain.Name, domain.Version)}
	}
	return nil
}

// checkPayee returns an *x402.Error unless the merchant may be paid at the address.
func (s *Service) checkPayee(ctx context.Context, p purchase) error {
	m, known, err := s.Merchants.Find(ctx, p.merchantID)
	if err != nil {
		return err
	}
	payTo := p.Requirements.PayTo
	foreign, err := s.Store.IsHeldByOther(ctx, payTo, p.merchantID)
	if err != nil {
		return err
	}
	deposits, err := s.Store.AreDeposits(ctx, []invoice.Address{payTo})
	if err != nil {
		return err
	}
	if !known || foreign || deposits[payTo] || p.chain.KeepsMoney(payTo) || !m.Allows(p.chain.Key, payTo) {
		return &Error{Reason: InvalidRequirements, Detail: fmt.Sprintf("payTo %s is not an address of the merchant", payTo)}
	}
	return nil
}

// Settle makes a payment for a merchant's resource and waits for its block. The payment gets a new invoice with the
// resource as its reference. A payment that was accepted before is not sent again: the answer is its outcome, and
// success is answered only maxAnswers times, not counting repetitions of the last request. It returns an error only for
// failures that do not concern the payment.
func (s *Service) Settle(ctx context.Context, merchantID string, r Request) (apitypes.X402SettleResponse, error) {
	p, err := s.newPurchase(merchantID, r)
	var accepted ledger.Authorization
	if err == nil {
		accepted, err = s.accept(ctx, p)
	}
	if err == nil {
		accepted, err = s.await(ctx, accepted)
	}
	if err == nil && accepted.Paid() {
		if err = s.checkValid(ctx, accepted); err == nil {
			err = s.countAnswer(ctx, p)
		}
	}
	if err != nil {
		return failure(r.Payment, err)
	}
	return s.outcome(ctx, p.chain, accepted), nil
}

// errAnswered returns the refusal of a payment after success was answered that often.
func errAnswered(times int) error {
	return errorf(NonceUsed, "the answers with success to this payment were %d, the most that there are; sign another", times)
}

// maxAnswers returns how often success is answered: MaxAnswers times if the server's requirements name the client's
// secret, and otherwise once. The secret can bind the payment to a resource. Any other server passes on what the client
// names, so that the client could use one payment for several resources.
func (p purchase) maxAnswers() int {
	if p.Requirements.ClientSecret == "" {
		return 1
	}
	return MaxAnswers
}

// countAnswer counts an answer with success, or returns errAnswered.
func (s *Service) countAnswer(ctx context.Context, p purchase) error {
	counted, err := s.Store.CountX402Answer(context.WithoutCancel(ctx), p.key(), p.maxAnswers(), p.Key)
	if err == nil && !counted {
		err = errAnswered(p.maxAnswers())
	}
	return err
}

// accept returns the accepted authorization of a purchase. If it is new, accept creates its
// invoice.
func (s *Service) accept(ctx context.Context, p purchase) (ledger.Authorization, error) {
	accepted, err := s.acceptedBefore(ctx, p)
	if !errors.Is(err, db.ErrNotFound) {
		return accepted, err
	}
	if err = s.checkTerms(ctx, p); err == nil {
		accepted, err = s.Ledger.Purchase(ctx, ledger.Purchase{Draft: p.draft(), Authorization: p.Payment.Authorization, Settlement: ledger.X402Settlement{
			AuthorizationKey: p.key(), MerchantID: p.merchantID, Resource: p.resource(), ClientSecret: p.clientSecret(), CreatedAt: s.Now(),
		}})
	}
	if err == nil {
		return accepted, nil
	}
	// The same request may have been accepted in the meantime, so that the checks of this one fail.
	if accepted, again := s.acceptedBefore(ctx, p); !errors.Is(again, db.ErrNotFound) {
		return accepted, again
	}
	if invalid := (*invoice.FieldError)(nil); errors.As(err, &invalid) {
		err = &Error{Reason: InvalidRequirements, Detail: invalid.Error()}
	}
	return ledger.Authorization{}, err
}

// acceptedBefore returns the authorization of a purchase that has a settlement, or db.ErrNotFound.
func (s *Service) acceptedBefore(ctx context.Context, p purchase) (ledger.Authorization, error) {
	known, err := s.settlement(ctx, p)
	if err != nil {
		return ledger.Authorization{}, err
	}
	return s.Ledger.Authorize(ctx, known.InvoiceID, p.Payment.Authorization)
}

// settlement returns the settlement of a purchase, or db.ErrNotFound. If its
// authorization was used for another resource or by another client, the error is an
// *invoice.RefusalError.
func (s *Service) settlement(ctx context.Context, p purchase) (ledger.X402Settlement, error) {
	known, err := s.Store.X402Settlement(ctx, p.key())
	if err == nil && (known.MerchantID != p.merchantID || known.Resource != p.resource() || known.ClientSecret != p.clientSecret()) {
		err = invoice.Refuse(invoice.RefusedMismatch)
	}
	return known, err
}

// authorization returns the accepted authorization of a purchase, or db.ErrNotFound.
func (s *Service) authorization(ctx context.Context, p purchase) (ledger.Authorization, error) {
	a := p.Payment.Authorization
	known, err := s.Store.AuthorizationByNonce(ctx, p.chain.Key, p.token.Address, a.From, a.Nonce)
	if err == nil && !known.Equal(a) {
		err = invoice.Refuse(invoice.RefusedMismatch)
	}
	return known, err
}

// expiresAt returns the last second in which the authorization is valid.
func (p purchase) expiresAt() time.Time { return p.Payment.Authorization.ValidBefore.Add(-time.Second) }

// invoice returns the invoice that a payment of the purchase is checked against.
func (p purchase) invoice() invoice.Invoice {
	return invoice.Invoice{
		Terms:      invoice.Terms{Merchant: p.Requirements.PayTo, Token: p.token.Address, Amount: p.Requirements.Amount, ExpiresAt: p.expiresAt()},
		MerchantID: p.merchantID, Currency: p.token.Currency, ChainKey: p.chain.Key, Status: invoice.Open, Collection: invoice.Direct,
	}
}

// draft returns the draft of the purchase's invoice.
func (p purchase) draft() invoice.Draft {
	return invoice.Draft{
		Unregistered: true, Collection: invoice.Direct, MerchantID: p.merchantID, Merchant: p.Requirements.PayTo, Amount: p.Requirements.Amount,
		Currency: p.token.Currency, ChainKey: p.chain.Key, ExpiresAt: p.expiresAt(),
		Details: invoice.Details{Reference: p.resource()},
	}
}

// clientSecret returns a digest of the secret that the server gave to the client, or "" without one. Everything else in
// a payment can be read from the chain once it is sent.
func (p purchase) clientSecret() string {
	secret := p.Payment.Accepted.ClientSecret
	if secret == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// resource returns the URL of the resource, or another text that identifies it if the URL cannot be a reference.
func (p purchase) resource() string {
	url := p.Payment.Resource
	if url == "" {
		return "x402"
	}
	if invoice.CheckLabel("reference", url) == nil {
		return url
	}
	sum := sha256.Sum256([]byte(url))
	digest := " sha256:" + hex.EncodeToString(sum[:])
	for n := invoice.MaxLabel - utf8.RuneCountInString(digest); n > 0; n-- {
		if n <= len(url) && invoice.CheckLabel("reference", url[:n]+digest) == nil {
			return url[:n] + digest
		}
	}
	return "x402" + digest
}
