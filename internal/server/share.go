package server

import (
	"strings"

	"github.com/quittance/quittance/internal/indexer"
)

// readingWork is the prefix of the names of leases on reading a chain.
const readingWork = "indexer:"

// newShare returns this replica's share of the chains to be read. It is nil if no other service can
// use the database, and in a recovery.
func (s *Server) newShare() *Share {
	if !s.store.Shared() || s.recovering {
		return nil
	}
	var works []string
	for _, c := range s.cfg.Chains {
		works = append(works, readingWork+c.Key)
	}
	indexerOf := func(work string) *indexer.Supervisor { return s.byKey[strings.TrimPrefix(work, readingWork)].indexer }
	return newReplicas(replicaConfig{
		Store: clockedStore{s.store, s.clock}, Holder: s.ids.New("lse_"), Works: works,
		Able:    func(work string) bool { return !indexerOf(work).Failing() },
		Changed: func(work string) { indexerOf(work).Wake() },
		Now:     s.cfg.Now, Logger: s.cfg.Logger,
	})
}

// reads returns a function that reports whether this replica reads a chain; nil means always.
func (s *Server) reads(chainKey string) func() bool {
	if s.share == nil {
		return nil
	}
	return func() bool { return s.share.Has(readingWork + chainKey) }
}
