package txmgr

import "time"

// Defaults of a Config.
const (
	// DefaultPoll is the time between two looks at the chain and the due
	// intents.
	DefaultPoll = time.Second
	// DefaultLeaseTTL is how long a chain is without a writer after one died, so that with DefaultPoll another one
	// takes over within 10 s.
	DefaultLeaseTTL = 8 * time.Second
)

// Limits of what a writer does.
const (
	// maxBatch is how many intents one transaction carries: about 5 million
	// gas, below the 16.7 million that EIP-7825 allows a transaction.
	maxBatch = 200
	// maxAuthorizations is how many authorizations one transaction carries: about 5 million
	// gas, or less if accounts are deployed.
	maxAuthorizations = 25
	// maxDueAuthorizations is how many due authorizations one round examines.
	maxDueAuthorizations = 200
	// authorizationBudget is the part of the daily budget, in percent, up to which
	// authorizations may begin a transaction.
	authorizationBudget = 90
	// retryAuthorization is when an authorization that would be reverted, and may be public,
	// is simulated again. After transactions that did not carry it out the wait doubles.
	retryAuthorization = 15 * time.Second
	// txGas is the most that a transaction may take besides what its items may.
	txGas = 100_000
	// intentGas is the most that an intent may take. To close a commitment that
	// has not expired takes about 25,000, with new storage.
	intentGas = 40_000
	// maxPolled is how many nodes are asked whether another one is right.
	maxPolled = 3
	// maxForeign is how many pending transactions of other programs are
	// believed.
	maxForeign = 16
	// tipBlocks is how many blocks of the fee history the tip is taken from, as
	// the median of their medians.
	tipBlocks = 20
	// maxPages is how many pages of due intents, of maxBatch each, one round
	// looks through for some that can be sent.
	maxPages = 10
	// maxAttempts is how many attempts of a transaction are signed.
	maxAttempts = 64
	// gasMargin is what is added to an estimate, in percent: what the contract
	// holds may change before the transaction is carried out.
	gasMargin = 25
	// bumpAfter and bumpBlocks say when a transaction is stuck: so long after
	// it was signed, and so many blocks after its broadcast.
	bumpAfter  = 30 * time.Second
	bumpBlocks = 3
	// rebroadcastAfter is when a transaction that is not mined is broadcast
	// again, in case that it was dropped.
	rebroadcastAfter = 15 * time.Second
	// harmlessAfter is when a transaction that no node has accepted is replaced by
	// one that does nothing.
	harmlessAfter = 5 * time.Minute
	// lostAfter is how long a transaction may have neither a receipt nor its
	// nonce before another is believed to have used that: nodes behind one
	// endpoint differ for a while.
	lostAfter = 30 * time.Second
	// firstAfter is the same before the first transaction of a sender: other
	// programs, such as the one that deployed the registry, used its nonces.
	firstAfter = 3 * time.Second
	// compareTimeout bounds the question of how many nonces an account has used.
	compareTimeout = 5 * time.Second
	// noteEvery is how often a writer asks that while it has nothing to send. A person who sends by hand has a minute
	// until the service may be stopped.
	noteEvery = time.Minute
	// foreignAfter is how long a pending transaction of another program may
	// hold up ours before ours takes its nonce.
	foreignAfter = 5 * time.Minute
	// blockerCheckEvery is how often it is looked whether transactions can be sent
	// again.
	blockerCheckEvery = 5 * time.Second
	// blockerMaxAge is how long a blocker is judged by the transaction that met
	// it: then everything is checked again.
	blockerMaxAge = time.Minute
	// skipFor is how long an intent that the registry refused on its own waits
	// before it is tried again.
	skipFor = 10 * time.Minute
	// countEvery is how often what is due is counted.
	countEvery = 5 * time.Second
	// sweepGas is what sweeping one deposit is believed to take before one was
	// swept, and minSweepGas the least that is believed afterwards.
	sweepGas    = 90_000
	minSweepGas = 30_000
	// maxSweepGas is the most that sweeping one deposit may take: what the factory
	// lets it use, and its calldata and log.
	maxSweepGas = 510_000
	// sweepBudgetPercent is the part of the daily budget up to which deposits are
	// swept. The rest is for commitments and authorizations.
	sweepBudgetPercent = 75
	// sweepRetry is how long a deposit waits that a transaction did not sweep. The
	// wait doubles each time, up to sweepRetryMax.
	sweepRetry    = 10 * time.Minute
	sweepRetryMax = 24 * time.Hour
	// sweepCheckEvery is how often deposits that the price of gas keeps from being
	// swept are compared with it.
	sweepCheckEvery = 15 * time.Second
	// releaseTimeout bounds giving back the lease at the end.
	releaseTimeout = 5 * time.Second
)
