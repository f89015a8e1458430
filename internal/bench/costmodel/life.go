package costmodel

import "time"

// finality is how many blocks make a payment final on the chain of the bench.
const finality = 2

// Lives simulates clients that create invoices for a time, and pay each once it is created.
// Blocks are sealed at an interval, until all payments are final and all events delivered. The
// rate is that of whole lives.
func Lives(c Constants, m Machine, clients int, interval, during time.Duration) Created {
	l := &life{simulation: newSimulation(c, m), during: during, node: slots{free: 1}, indexer: slots{free: 1}, posts: slots{free: deliveries * max(1, m.Replicas)}}
	for range clients {
		l.begin()
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
	node    slots // of the chain
	indexer slots
	posts   slots
	open    int   // creates and transfers that have not ended
	paid    int   // transfers that are in no block
	sealing int   // blocks that are being sealed
	blocks  []int // payments of the blocks that are not final
}

// begin creates an invoice, unless it is too late.
func (l *life) begin() {
	if l.elapsed() >= l.during {
		return
	}
	l.open++
	l.client.run(l.c.Request, func() {
		l.create(func() {
			l.deliver(1, l.c.Deliver)
			l.pay()
		})
	})
}

// pay sends a transfer for the next block, and goes on with the next invoice.
func (l *life) pay() {
	l.node.acquire(func() {
		l.client.run(l.c.Transfer, func() {
			l.wait(max(0, l.c.TransferTime-l.c.Transfer), func() {
				l.open--
				l.paid++
				l.node.release()
				l.begin()
			})
		})
	})
}

// seal seals a block after each interval, until no client, transfer or payment is left.
func (l *life) seal(interval time.Duration) {
	l.wait(interval, func() {
		if l.elapsed() >= l.during && l.open+l.paid+l.sealing == 0 && len(l.blocks) <= finality {
			for range finality { // they make the last payments final
				l.wait(0, func() { l.indexer.acquire(func() { l.index(0) }) })
			}
			return
		}
		l.sealing++
		l.node.acquire(func() {
			n := l.paid
			l.paid = 0
			l.client.run(l.c.Block.Client+l.of(l.c.Seen, n).Client, func() {
				l.sealing--
				l.node.release()
				l.indexer.acquire(func() { l.index(n) })
			})
		})
		l.seal(interval)
	})
}

// index stores a block's payments, and then those that are final by it.
func (l *life) index(payments int) {
	l.blocks = append(l.blocks, payments)
	l.apply(l.c.Block.Plus(l.of(l.c.Seen, payments)), payments, func() {
		if len(l.blocks) <= finality {
			l.indexer.release()
			return
		}
		final := l.blocks[0]
		l.blocks = l.blocks[1:]
		l.apply(l.of(l.c.Final, final), final, l.indexer.release)
	})
}

// of returns the cost of payments, which is nothing without any.
func (l *life) of(b Batch, payments int) CPU {
	if payments == 0 {
		return CPU{}
	}
	return b.Of(float64(payments))
}

// apply handles payments in one transaction, and has their events delivered.
func (l *life) apply(cost CPU, payments int, then func()) {
	l.service.run(cost.Service, func() {
		if payments == 0 {
			l.compute(cost.Database, then)
			return
		}
		l.transact(cost.Database, l.c.Hold.Of(float64(payments)), func() {
			l.deliver(int(float64(payments)*(l.c.Events-1)/2+0.5), l.c.DeliverPaid)
			then()
		})
	})
}

// deliver posts events.
func (l *life) deliver(events int, cost CPU) {
	for range events {
		l.posts.acquire(func() {
			l.service.run(cost.Service, func() { l.compute(cost.Client+cost.Database, l.posts.release) })
		})
	}
}
