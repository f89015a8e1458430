package limits

import "sync"

// Shares divides a fixed amount of a resource, such as memory or connections, among the clients that
// use it at the same time. It is safe for concurrent use.
//
// A client may hold up to the free number, times the weight of its claim. So one greedy client gets
// half, two get a third each, and there is always room for one more.
//
// Invariant: held has each client's number, unless it is 0. Each Take added to used once.
type Shares[K comparable] struct {
	name     string
	capacity int64

	mu   sync.Mutex
	used int64
	held map[K]int64
}

// Claim is a client for which an amount is taken.
type Claim[K comparable] struct {
	Client K
	// Weight is how many times the free amount the client may have. 1 is the weight of one client; a group
	// of clients has more.
	Weight int64
	// Most is an additional bound for the client, if it is not 0.
	Most int64
	// Of is set for parties that divide another client's amount, such as the networks that pay at a
	// merchant. They divide the rest of half of the capacity, which is the most that one client gets.
	Of *K
}

// NewShares returns shares of a capacity. The name is the limit's name in errors.
func NewShares[K comparable](name string, capacity int64) *Shares[K] {
	return &Shares[K]{name: name, capacity: capacity, held: make(map[K]int64)}
}

// Name returns the name of the limit.
func (s *Shares[K]) Name() string { return s.name }

// Take takes n for each of the clients, or fails and takes no amount. The error is ErrBusy if less
// than n is free, and an *ExceededError if a client would have more than its share.
func (s *Shares[K]) Take(n int64, claims ...Claim[K]) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	free := s.capacity - s.used
	if n > free {
		return ErrBusy
	}
	if err := s.charge(n, free, claims); err != nil {
		return err
	}
	s.used += n
	return nil
}

// Charge counts n, which was taken before, for more clients, as if they had taken it. If it fails, it
// counts no amount. The error is an *ExceededError.
func (s *Shares[K]) Charge(n int64, claims ...Claim[K]) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.charge(n, s.capacity-s.used+n, claims)
}

// charge counts n for clients, if that much is free. The caller holds mu.
func (s *Shares[K]) charge(n, free int64, claims []Claim[K]) error {
	for _, c := range claims {
		left := free
		if c.Of != nil {
			left = min(left, s.capacity/2-s.held[*c.Of])
		}
		if held := s.held[c.Client] + n; held > c.Weight*left || c.Most > 0 && held > c.Most {
			return &ExceededError{Limit: s.name, RetryAfter: retryShare}
		}
	}
	for _, c := range claims {
		s.held[c.Client] += n
	}
	return nil
}

// Give returns an amount that Take took, for all clients to which it was charged.
func (s *Shares[K]) Give(n int64, claims ...Claim[K]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used -= n
	for _, c := range claims {
		if s.held[c.Client] -= n; s.held[c.Client] == 0 {
			delete(s.held, c.Client)
		}
	}
}

// Held returns the largest amount that a client of these claims has.
func (s *Shares[K]) Held(claims []Claim[K]) (most int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range claims {
		most = max(most, s.held[c.Client])
	}
	return most
}

// retryShare is the Retry-After of a client that has used up its share, in seconds.
const retryShare = "1"
