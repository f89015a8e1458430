package costmodel

import "time"

// simSeed makes simulations repeatable.
const simSeed = 1

// simulation is a service with clients that each wait for an answer before their next request.
type simulation struct {
	*engine
	c       Constants
	m       Machine
	client  *program
	service *program // all replicas
	lanes   slots
	lock    slots    // of events
	waiting []func() // creates, by what is called when they are answered
	created int
	batches int
}

func newSimulation(c Constants, m Machine) *simulation {
	e := newEngine(m.CPUs, simSeed)
	s := &simulation{engine: e, c: c, m: m, client: newProgram(e), service: newProgram(e)}
	s.lanes.free, s.lock.free = lanes*s.replicas(), 1
	return s
}

func (s *simulation) replicas() int { return max(1, s.m.Replicas) }

// busyLanes returns how many transactions of creates run.
func (s *simulation) busyLanes() int { return lanes*s.replicas() - s.lanes.free }

// Created is the outcome of a simulation.
type Created struct {
	Rate  float64       // a second
	Batch float64       // invoices in a transaction
	CPU   time.Duration // of an invoice, the client's included
}

// Creates simulates clients that create invoices for a time.
func Creates(c Constants, m Machine, clients int, during time.Duration) Created {
	s := newSimulation(c, m)
	var client func()
	client = func() {
		s.client.run(c.Create.Each.Client, func() { s.create(client) })
	}
	for range clients {
		client()
	}
	s.run(during)
	return s.result()
}

func (s *simulation) result() Created {
	made := float64(max(1, s.created))
	return Created{made / s.now, made / float64(max(1, s.batches)), time.Duration(s.used / made * float64(time.Second))}
}

// create handles a request, and calls then when it is answered.
func (s *simulation) create(then func()) {
	s.service.run(share(s.c.Create.Each.Service, 1-s.c.LaneShare), func() {
		s.waiting = append(s.waiting, then)
		if s.busyLanes() < s.replicas() || s.lanes.free > 0 && len(s.waiting) >= batch {
			s.lanes.free--
			s.runLane()
		}
	})
}

// runLane creates waiting invoices, batch after batch, until none waits, or too few for another lane.
func (s *simulation) runLane() {
	n := min(batch, len(s.waiting))
	if n == 0 || n < batch && s.busyLanes() > s.replicas() {
		s.lanes.free++
		return
	}
	calls := s.waiting[:n:n]
	s.waiting = s.waiting[n:]
	service := s.c.Create.Fixed.Service + share(s.c.Create.Each.Service, s.c.LaneShare*float64(n))
	s.service.run(service, func() {
		s.transact(s.c.Create.Of(float64(n)).Database, s.c.Hold.Of(float64(n)), func() {
			s.created += n
			s.batches++
			s.client.run(s.c.Create.Fixed.Client, func() {})
			for _, then := range calls {
				then()
			}
			s.runLane()
		})
	})
}

// transact is a transaction of the database, which holds the lock of events at its end.
func (s *simulation) transact(cpu, hold time.Duration, then func()) {
	s.compute(max(0, cpu-hold), func() {
		s.lock.acquire(func() {
			s.compute(min(cpu, hold), func() {
				s.wait(s.m.Sync, func() {
					s.lock.release()
					then()
				})
			})
		})
	})
}

// share returns a part of a time.
func share(d time.Duration, part float64) time.Duration { return time.Duration(part * float64(d)) }
