package chain

// OpenPool returns a pool of clients for the chain's RPC URLs. conf.Clients must be empty. Close closes the clients.
func OpenPool(conf PoolConfig) (*Pool, error) {
	conf.Clients = make([]*Client, len(conf.Chain.RPC))
	for i, url := range conf.Chain.RPC {
		settings := ClientConfig{URL: url, Timeout: conf.Timeout, MaxAnswer: conf.Chain.MaxAnswer, Dial: conf.Dial}
		if i < len(conf.Chain.Nodes) {
			settings.NodeSettings = conf.Chain.Nodes[i]
		}
		c, err := NewClient(settings)
		if err != nil {
			return nil, err // the earlier clients have no connection yet
		}
		conf.Clients[i] = c
	}
	return NewPool(conf), nil
}

// Close closes the pool's clients. Later calls fail.
func (p *Pool) Close() {
	for _, node := range p.nodes {
		node.Close()
	}
}
