package txmgr

import "time"

// Defaults of a Config.
const (
	// DefaultPoll is the time between two looks at the chain and the due intents.
	DefaultPoll = time.Second
	// DefaultLeaseTTL is how long a chain is without a writer after one died. With DefaultPoll another one takes over
	// within 10 s.
	DefaultLeaseTTL = 8 * time.Second
)

// Limits of a writer.
const (
	// maxBatch is how many intents one transaction carries: about 5 million gas, below the 16.7 million that EIP-7825
	// allows.
	maxBatch = 200
	// maxAuthorizations is how many authorizations one transaction carries: about 5 million
	// gas, or less if accounts are deployed.
	maxAuthorizations = 25
	// maxDueAuthorizations and maxAuthorizationPages are how many due authorizations one round reads: in a page, and
	// how many pages. maxSimulations is how many of them it simulates, with a few calls each.
	maxDueAuthorizations  = 200
	maxAuthorizationPages = 50
	maxSimulations        = 2 * maxAuthorizations
	// maxFailedSimulations is after how many simulations without an answer a round simulates no more: each may take
	// chain.CallTimeout.
	maxFailedSimulations = 2
	// authorizationBudget, sweepBudget and registryBudget are the parts of the daily budget, in percent, up to which a
	// kind of work may begin a transaction. Payers wait for authorizations, merchants' money for sweeps, and no payment
	// for commitments, which any merchant can make necessary without limit.
	authorizationBudget = 100
	sweepBudget         = 90
	registryBudget      = 75
	// retryAuthorization is the pause after which an authorization that would be reverted, and may be public, is
	// simulated again. The pause doubles each time, also after transactions that did not carry it out.
	retryAuthorization = 15 * time.Second
	// txGas is the most gas of a transaction in addition to the gas of its items.
	txGas = 100_000
	// intentGas is the most gas of an intent. Closing a commitment that has not expired takes about 25,000, with new
	// storage.
	intentGas = 40_000
	// maxPolled is how many nodes are asked to check another node's answer.
	maxPolled = 3
	// maxForeign is how many pending transactions of other programs are believed.
	maxForeign = 16
	// tipBlocks is how many blocks of the fee history the tip is taken from, as the median of their medians.
	tipBlocks = 20
	// maxPages is how many pages of due intents, of maxBatch each, one round looks through for some that can be sent.
	maxPages = 10
	// maxAttempts is how many attempts of a transaction may be signed.
	maxAttempts = 64
	// gasMargin is added to an estimate, in percent: the contract's state may change before the transaction is carried
	// out.
	gasMargin = 25
	// bumpAfter and bumpBlocks define when a transaction is stuck: this long and this many blocks after this writer first
	// broadcast it.
	bumpAfter  = 30 * time.Second
	bumpBlocks = 3
	// rebroadcastAfter is when a transaction that is not mined is broadcast again, in case it was dropped.
	rebroadcastAfter = 15 * time.Second
	// harmlessAfter is when a transaction that all nodes refuse is replaced by a transaction that does nothing.
	harmlessAfter = 5 * time.Minute
	// lostAfter is how long a transaction must have no receipt while its nonce is used, before the writer concludes
	// that another transaction used the nonce: nodes behind one endpoint differ for a while.
	lostAfter = 30 * time.Second
	// firstAfter is the same before the first transaction of a sender, because other programs, such as the one that
	// deployed the registry, used its nonces.
	firstAfter = 3 * time.Second
	// compareTimeout bounds the query of how many nonces an account has used.
	compareTimeout = 5 * time.Second
	// noteEvery is how often a writer makes that query while it has no transactions to send. After sending by hand, a
	// person must wait a minute before stopping the service.
	noteEvery = time.Minute
	// foreignAfter is how long a pending transaction of another program may delay ours before ours takes its nonce.
	foreignAfter = 5 * time.Minute
	// blockerCheckEvery is how often the writer checks whether transactions can be sent again.
	blockerCheckEvery = 5 * time.Second
	// blockerMaxAge is how long a blocker is judged by the transaction that was blocked; then everything is checked
	// again.
	blockerMaxAge = time.Minute
	// skipFor is how long an intent that the registry refused on its own waits until it is tried again.
	skipFor = 10 * time.Minute
	// countEvery is how often due items are counted.
	countEvery = 5 * time.Second
	// sweepGas is the assumed gas of sweeping one deposit before the first sweep, and minSweepGas is the least assumed
	// gas afterwards.
	sweepGas    = 90_000
	minSweepGas = 30_000
	// maxSweepGas is the most gas of sweeping one deposit: the factory's limit, and the calldata and log.
	maxSweepGas = 510_000
	// sweepRetry is how long a deposit waits after a transaction did not sweep it. The wait doubles each time, up to
	// sweepRetryMax.
	sweepRetry    = 10 * time.Minute
	sweepRetryMax = 24 * time.Hour
	// sweepCheckEvery is how often deposits that wait for a lower gas price are checked.
	sweepCheckEvery = 15 * time.Second
	// releaseTimeout bounds releasing the lease at the end.
	releaseTimeout = 5 * time.Second
)
