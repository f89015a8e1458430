package x402

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/webhooks"
)

// Limits of payments.
const (
	// MaxWait bounds the wait for the block of a payment.
	MaxWait = 20 * time.Second
	// MaxWaiting is how many requests may wait for a block at the same time, and MaxWaitingForInvoice how many of them
	// for the payment of one invoice. Further ones are answered immediately.
	MaxWaiting           = 256
	MaxWaitingForInvoice = 5
	// MaxAnswers is how often a settlement of a merchant's resource is answered with success if the requirements name the
	// client's secret: an answer can be lost, but each repetition may deliver the resource again.
	MaxAnswers = 3
	// Timeout is the maxTimeoutSeconds of an invoice, unless the invoice expires earlier.
	Timeout = 5 * time.Minute
)

// Ledger changes the state. *ledger.Service implements it and documents the errors.
type Ledger interface {
	Purchase(ctx context.Context, p ledger.Purchase) (ledger.Authorization, error)
	Authorize(ctx context.Context, invoiceID string, a invoice.Authorization) (ledger.Authorization, error)
	CheckAuthorization(ctx context.Context, inv invoice.Invoice, a invoice.Authorization) (ledger.AuthorizationCheck, error)
	AmountReturned(ctx context.Context, paymentID string) (invoice.Amount, error)
}

// Store reads and writes the database. ledger.Tables implement it and document the methods.
type Store interface {
	Invoice(ctx context.Context, id string) (invoice.Invoice, error)
	Authorization(ctx context.Context, id string) (ledger.Authorization, error)
	AuthorizationByNonce(ctx context.Context, chainKey string, token, authorizer invoice.Address, nonce invoice.Hash) (ledger.Authorization, error)
	PendingAuthorization(ctx context.Context, invoiceID string) (ledger.Authorization, error)
	SentTx(ctx context.Context, txID string) (invoice.Hash, error)
	X402Settlement(ctx context.Context, key ledger.AuthorizationKey) (ledger.X402Settlement, error)
	CountX402Answer(ctx context.Context, key ledger.AuthorizationKey, most int, request string) (counted bool, err error)
	IsHeldByOther(ctx context.Context, a invoice.Address, merchantID string) (bool, error)
	AreDeposits(ctx context.Context, among []invoice.Address) (map[invoice.Address]bool, error)
}

// Merchants finds merchants. *access.MerchantManager implements it.
type Merchants interface {
	Find(ctx context.Context, id string) (m invoice.Merchant, known bool, err error)
}

// Chains provides data from the chains' nodes.
type Chains interface {
	// Domain returns the EIP-712 domain of a token.
	Domain(ctx context.Context, chainKey string, token invoice.Address) (Domain, error)
	// Sender returns the account that sends a chain's authorizations, and whether the service sends any.
	Sender(chainKey string) (invoice.Address, bool)
}

// Feed provides new events. *webhooks.Feed implements it.
type Feed interface {
	Head(ctx context.Context) (webhooks.Position, error)
	NextMatching(ctx context.Context, after webhooks.Position, atMost time.Duration, match func(webhooks.News) bool) (webhooks.Position, error)
}

// Config is the configuration of a Service. All fields are required.
type Config struct {
	Ledger    Ledger
	Store     Store
	Merchants Merchants
	Networks  []chain.Chain
	Chains    Chains
	Feed      Feed
	// Stopping ends when the service stops; it also ends the requests that wait.
	Stopping context.Context
	Now      func() time.Time
}

// Service accepts payments. It is safe for concurrent use.
type Service struct {
	Config
	byID    map[uint64]chain.Chain
	byKey   map[string]chain.Chain
	waiting *limits.Shares[limits.Party] // requests that wait for a block
}

// New returns a Service. It panics if a field of the configuration is missing.
func New(cfg Config) *Service {
	if cfg.Ledger == nil || cfg.Store == nil || cfg.Merchants == nil || cfg.Chains == nil || cfg.Feed == nil || cfg.Stopping == nil || cfg.Now == nil {
		panic("x402: a field of Config is missing")
	}
	s := &Service{Config: cfg, byID: make(map[uint64]chain.Chain), byKey: make(map[string]chain.Chain), waiting: limits.NewShares[limits.Party]("x402_waiting", MaxWaiting)}
	for _, c := range cfg.Networks {
		s.byID[c.ID], s.byKey[c.Key] = c, c
	}
	return s
}

// Supported returns the kinds of payment that the service accepts.
func (s *Service) Supported() apitypes.X402Supported {
	all := apitypes.X402Supported{Kinds: []apitypes.X402Kind{}, Extensions: []string{}, Signers: make(map[string][]string)}
	for _, c := range s.Networks {
		sender, ok := s.Chains.Sender(c.Key)
		if !ok {
			continue
		}
		network := Network(c.ID)
		all.Kinds = append(all.Kinds, apitypes.X402Kind{X402Version: Version, Scheme: Scheme, Network: network})
		all.Signers[network] = []string{chain.Checksum(sender)}
	}
	return all
}

// Takes reports whether the service accepts x402 payments on a chain.
func (s *Service) Takes(chainKey string) bool {
	_, ok := s.Chains.Sender(chainKey)
	return ok
}

// failure returns the answer to a payment that err refuses. It returns err if it is not a refusal.
func failure(p Payment, err error) (apitypes.X402SettleResponse, error) {
	var invalid *Error
	var refused *invoice.RefusalError
	r := apitypes.X402SettleResponse{Network: Network(p.Accepted.ChainID), Payer: chain.Checksum(p.Authorization.From)}
	switch {
	case errors.As(err, &invalid):
		r.ErrorReason, r.ErrorMessage = string(invalid.Reason), invalid.Detail
	case errors.As(err, &refused):
		r.ErrorReason, r.ErrorMessage = string(ReasonOf(refused.Reason)), refused.Detail
	default:
		return r, err
	}
	return r, nil
}

// outcomeOf returns the answer to a payment after its authorization was accepted. It is a failure if
// checkValid refuses the payment.
func (s *Service) outcomeOf(ctx context.Context, c chain.Chain, p Payment, a ledger.Authorization) (apitypes.X402SettleResponse, error) {
	if a.Paid() {
		if err := s.checkValid(ctx, a); err != nil {
			return failure(p, err)
		}
	}
	return s.outcome(ctx, c, a), nil
}

// outcome returns the answer to a payment with an accepted authorization.
func (s *Service) outcome(ctx context.Context, c chain.Chain, a ledger.Authorization) apitypes.X402SettleResponse {
	r := apitypes.X402SettleResponse{Network: Network(c.ID), Payer: chain.Checksum(a.From)}
	switch {
	case a.Paid():
		r.Success, r.Transaction, r.Amount = true, a.Payment.TxHash.String(), a.Value.String()
	case a.Status == ledger.AuthorizationRefused:
		r.ErrorReason, r.ErrorMessage = string(ReasonOf(a.Reason)), a.Reason.Detail()
	default:
		r.ErrorReason = string(Pending)
		r.ErrorMessage = "The outcome is not known yet. Do not sign again; repeat the same payment to learn it."
		if sent, err := s.Store.SentTx(context.WithoutCancel(ctx), a.TxID); err == nil { // it may not be sent yet
			r.Transaction = sent.String()
		}
	}
	return r
}

// key returns the key that identifies an authorization.
func key(c chain.Chain, token invoice.Address, a invoice.Authorization) ledger.AuthorizationKey {
	return ledger.AuthorizationKey{ChainKey: c.Key, Token: token, Authorizer: a.From, Nonce: a.Nonce}
}

// network returns the chain and the token of requirements, or an *x402.Error.
func (s *Service) network(r Requirements) (chain.Chain, chain.Token, error) {
	c, ok := s.byID[r.ChainID]
	if !ok {
		return c, chain.Token{}, &Error{Reason: InvalidNetwork, Detail: fmt.Sprintf("%s is not a network of this service", Network(r.ChainID))}
	}
	token, ok := c.TokenAt(r.Token)
	if !ok {
		return c, token, &Error{Reason: InvalidRequirements, Detail: fmt.Sprintf("%s is not a token of this service on %s", r.Token, Network(r.ChainID))}
	}
	return c, token, nil
}
