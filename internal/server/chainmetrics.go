package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quittance/quittance/internal/indexer"
	"github.com/quittance/quittance/internal/ledger"
)

// Metrics of chains.
var (
	chainBlock = prometheus.NewDesc("quittance_chain_block",
		"Block numbers of a chain: its head, the newest one indexed, the newest one confirmed.", []string{"chain", "block"}, nil)
	chainReading = prometheus.NewDesc("quittance_chain_reading",
		"1 while this replica reads the chain. Summed over all replicas it is 1, but for seconds.", []string{"chain"}, nil)
	chainHalted = prometheus.NewDesc("quittance_chain_halted",
		"1 while the chain's indexer waits for somebody to look and resume it.", []string{"chain"}, nil)
	chainBackfill = prometheus.NewDesc("quittance_chain_backfill_blocks",
		"Older blocks of a chain that are still to be read beside its head.", []string{"chain"}, nil)
	chainRestarts = prometheus.NewDesc("quittance_chain_restarts_total",
		"How often reading a chain was begun anew, since it made no progress for a minute.", []string{"chain"}, nil)
	chainUnread = prometheus.NewDesc("quittance_chain_unread_transactions",
		"Transactions of a chain that are not recorded and wait to be read again.", []string{"chain", "reason"}, nil)
	chainCompared = prometheus.NewDesc("quittance_chain_compared_blocks_total",
		"Blocks by what their logs were compared with when they were read.", []string{"chain", "by"}, nil)
	chainAudited = prometheus.NewDesc("quittance_chain_audited_blocks_total",
		"Final blocks of a chain that were audited, by what they were verified with.", []string{"chain", "by"}, nil)
	chainUnaudited = prometheus.NewDesc("quittance_chain_unaudited_blocks",
		"Final blocks of a chain that are still to be audited, and those of a back-fill.", []string{"chain", "part"}, nil)
	chainSkew = prometheus.NewDesc("quittance_chain_clock_skew_seconds",
		"How far this machine's clock is ahead of the time of a chain's new blocks.", []string{"chain"}, nil)
)

// collectChains collects the metrics of chains from their indexers' statuses, as /readyz and /status do.
func (s *Server) collectChains(send sendValue) {
	for _, run := range s.chains {
		st := run.indexer.Status()
		send(chainRestarts, prometheus.CounterValue, float64(st.Restarts), run.Key)
		for _, by := range indexer.Comparisons {
			send(chainCompared, prometheus.CounterValue, float64(st.Compared[by]), run.Key, string(by))
		}
		if st.Skew != nil {
			send.gauge(chainSkew, st.Skew.Seconds(), run.Key)
		}
		if !st.Succeeded.IsZero() || st.Error != "" { // a sync has ended
			collectSync(send, run.Key, st)
		}
	}
}

// collectSync collects the results of the last sync.
func collectSync(send sendValue, chainKey string, st indexer.Status) {
	send.gauge(chainBlock, float64(st.Head), chainKey, "head")
	send.gauge(chainBlock, float64(st.Indexed), chainKey, "indexed")
	send.gauge(chainBlock, float64(st.Confirmed), chainKey, "confirmed")
	send.state(chainReading, st.Reading, chainKey)
	send.state(chainHalted, st.Halted != "", chainKey)
	left := 0.0
	if st.Backfill != nil {
		left = float64(st.Backfill.To + 1 - st.Backfill.At)
	}
	send.gauge(chainBackfill, left, chainKey)
	if st.Audit != nil {
		collectAudit(send, chainKey, *st.Audit)
	}
	for _, reason := range ledger.UnreadReasons {
		send.gauge(chainUnread, float64(st.Unread[reason]), chainKey, string(reason))
	}
}

// collectAudit collects how far the audit of final blocks is.
func collectAudit(send sendValue, chainKey string, a indexer.Audit) {
	for by, n := range map[indexer.Comparison]uint64{
		indexer.ComparedHeader: a.Counted.Header, indexer.ComparedReceipts: a.Counted.Receipts,
		indexer.ComparedNode: a.Counted.Node, indexer.ComparedNone: a.Counted.Unverified,
	} {
		send(chainAudited, prometheus.CounterValue, float64(n), chainKey, string(by))
	}
	send.gauge(chainUnaudited, float64(a.Behind), chainKey, string(ledger.AuditNew))
	send.gauge(chainUnaudited, float64(a.Older), chainKey, string(ledger.AuditOlder))
}
