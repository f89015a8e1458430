package chain

import "cmp"

// OpenPool returns a pool of endpoints at the chain's RPC URLs, in place of
// conf.Endpoints. Close ends them.
func OpenPool(conf PoolConfig) (*Pool, error) {
	conf.Clients = make([]*Client, len(conf.Chain.RPC))
	for i, url := range conf.Chain.RPC {
		e, err := NewClient(url)
		if err != nil {
			return nil, err // those made so far have no connection yet
		}
		e.MaxAnswer = cmp.Or(conf.Chain.MaxAnswer, MaxResponse)
		conf.Clients[i] = e
	}
	return NewPool(conf), nil
}

// Close ends the connections of the pool's endpoints. Calls fail from then on.
func (p *Pool) Close() {
	for _, provider := range p.nodes {
		provider.Close()
	}
}
