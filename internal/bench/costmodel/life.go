package costmodel

import "time"

// finality is how many blocks make a payment final on the chain of the bench.
const finality = 2

// Lives simulates clients that create invoices for a time, and pay each once it is created.
// Blocks are sealed at an interval, until all payments are final and all events delivered. The
// rate is that of whole lives.
func Lives(c Constants, m Machine, clients int, interval, during time.Duration) Created {
	l := &life{simulation: newSimulation(c, m), during: during, indexer: slots{free: 1}, posts: slots{free: deliveries * max(1, m.Replicas)}}
	for range clients {
		l.client()
	}
	l.seal(interval)
	for more := true; more; { // until there is no work, no block to come, and no client
		more = l.step()
	}
	return l.result()
}

// life is a simulation of invoices that are created, paid and delivered.
type life struct {
	*simulation
	during  time.Duration
	indexer slots
	posts   slots
	paid    int   // transfers that are in no block
	open    int   // creates that have not ended
	blocks  []int // payments of the blocks that are not final
}

func (l *life) client() {
	if l.elapsed() >= l.during {
		return
	}
	l.open++
	l.compute(l.c.Request, func() {
		l.create(func() {
			l.open--
			l.paid++
			l.deliver(1)
			l.client()
		})
	})
}

// seal seals a block after each interval.
func (l *life) seal(interval time.Duration) {
	l.wait(interval, func() {
		n := l.paid
		l.paid = 0
		l.compute(l.c.Block.Client+share(l.c.Seen.Client, float64(n)), func() { l.indexer.acquire(func() { l.index(n) }) })
		if l.elapsed() < l.during || l.open > 0 || n > 0 || l.paid > 0 || len(l.blocks) > finality {
			l.seal(interval)
			return
		}
		for range finality { // they make the last payments final
			l.wait(0, func() { l.indexer.acquire(func() { l.index(0) }) })
		}
	})
}

// index stores a block's payments, and then those that are final by it.
func (l *life) index(payments int) {
	l.blocks = append(l.blocks, payments)
	l.apply(l.c.Block, l.c.Seen, payments, func() {
		if len(l.blocks) <= finality {
			l.indexer.release()
			return
		}
		final := l.blocks[0]
		l.blocks = l.blocks[1:]
		l.apply(CPU{}, l.c.Final, final, l.indexer.release)
	})
}

// apply handles payments in one transaction, and has their events delivered.
func (l *life) apply(fixed, each CPU, payments int, then func()) {
	cost := fixed.Plus(each.Times(float64(payments)))
	l.compute(cost.Service, func() {
		if payments == 0 {
			l.compute(cost.Database, then)
			return
		}
		l.transact(cost.Database, l.c.Hold.Of(float64(payments)), func() {
			l.deliver(int(float64(payments)*(l.c.Events-1)/2 + 0.5))
			then()
		})
	})
}

// deliver posts events.
func (l *life) deliver(events int) {
	cost := l.c.Deliver.Client + l.c.Deliver.Served()
	for range events {
		l.posts.acquire(func() { l.compute(cost, l.posts.release) })
	}
}
