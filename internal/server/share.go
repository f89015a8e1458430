package server

import (
	"github.com/quittance/quittance/internal/replicas"
)

// readingWork begins the names of the leases on reading a chain.
const readingWork = "indexer:"

// newShare returns this replica's share of the chains to be read. It is nil where no other
// service can use the database.
func (s *Server) newShare() *replicas.Share {
	if !s.store.Shared() {
		return nil
	}
	var works []string
	byWork := make(map[string]string)
	for _, c := range s.cfg.Chains {
		work := readingWork + c.Key
		works = append(works, work)
		byWork[work] = c.Key
	}
	return replicas.New(replicas.Config{
		Store: clockedStore{s.store, s.clock}, Holder: s.ids.New("lse_"), Works: works,
		Able:    func(work string) bool { return !s.byKey[byWork[work]].indexer.Failing() },
		Changed: func(work string) { s.byKey[byWork[work]].indexer.Wake() },
		Now:     s.cfg.Now, Logger: s.cfg.Logger,
	})
}

// reads returns a function that reports whether this replica is to read a chain; nil is always.
func (s *Server) reads(chainKey string) func() bool {
	if s.share == nil {
		return nil
	}
	return func() bool { return s.share.Has(readingWork + chainKey) }
}
