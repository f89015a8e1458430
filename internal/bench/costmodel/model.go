// Package costmodel computes what an invoice costs and how many of them a machine carries, from
// constants that the bench measures. docs/scaling.md explains it.
package costmodel

import (
	"time"
)

// CPU is the CPU time of an operation, by who uses it. The client is the load, the chain and the
// receiver of events: what is not the operator's.
type CPU struct{ Client, Service, Database time.Duration }

// Served is the CPU time of the service and its database.
func (c CPU) Served() time.Duration { return c.Service + c.Database }

// Times returns the CPU time of n operations.
func (c CPU) Times(n float64) CPU {
	times := func(d time.Duration) time.Duration { return time.Duration(float64(d) * n) }
	return CPU{times(c.Client), times(c.Service), times(c.Database)}
}

// Plus returns the sum.
func (c CPU) Plus(d CPU) CPU {
	return CPU{c.Client + d.Client, c.Service + d.Service, c.Database + d.Database}
}

// Minus returns the difference, of which no part is negative.
func (c CPU) Minus(d CPU) CPU {
	return CPU{max(0, c.Client-d.Client), max(0, c.Service-d.Service), max(0, c.Database-d.Database)}
}

// Batch is the cost of a transaction for several invoices or payments: a part for the transaction, and one
// for each of them.
type Batch struct{ Fixed, Each CPU }

// Of returns the cost of a transaction for n invoices.
func (b Batch) Of(n float64) CPU { return b.Fixed.Plus(b.Each.Times(n)) }

// Hold is how long a transaction holds the lock of events, without the sync to disk.
type Hold struct{ Fixed, Each time.Duration }

// Of returns the time for n invoices.
func (h Hold) Of(n float64) time.Duration {
	return h.Fixed + time.Duration(float64(h.Each)*n)
}

// Line returns the straight line through two points: its value at 0, and its slope. Neither is
// negative.
func Line(n1 float64, y1 time.Duration, n2 float64, y2 time.Duration) (fixed, each time.Duration) {
	slope := max(0, float64(y2-y1)/(n2-n1))
	at0 := float64(y1) - slope*n1
	if at0 < 0 {
		at0, slope = 0, float64(y2)/n2
	}
	return time.Duration(at0), time.Duration(slope)
}

// BatchOf returns the costs of a batch, of which those with n1 and n2 invoices were measured.
func BatchOf(n1 float64, y1 CPU, n2 float64, y2 CPU) (b Batch) {
	b.Fixed.Client, b.Each.Client = Line(n1, y1.Client, n2, y2.Client)
	b.Fixed.Service, b.Each.Service = Line(n1, y1.Service, n2, y2.Service)
	b.Fixed.Database, b.Each.Database = Line(n1, y1.Database, n2, y2.Database)
	return b
}

// Constants are what is measured.
type Constants struct {
	Create Batch
	Hold   Hold // of a transaction of creates
	// LaneShare is the part of the service's CPU time of each create that its transaction takes, besides the fixed
	// part; the rest is parallel, in the handlers of requests.
	LaneShare float64
	Request   time.Duration // client's CPU time of a create, in a whole life
	Transfer  time.Duration // client's CPU time of a transfer
	// TransferTime is how long the chain's node takes for a transfer. It takes one at a time, and none while it seals.
	TransferTime time.Duration
	Block        CPU     // an empty block
	Seen         Batch   // payments of a block, until they are stored
	Final        Batch   // payments of a block that become final
	Deliver      CPU     // an event of a create
	DeliverPaid  CPU     // an event of a payment in a block
	Events       float64 // of an invoice in its life
	Idle         CPU     // a second without work
}

// Life is the CPU time of an invoice from its create to the delivery of its last event, created
// in a transaction of n and paid in a block of payments, without its part of empty blocks.
func (c Constants) Life(n, payments float64) CPU {
	return c.Create.Of(n).Times(1 / n).Plus(c.Seen.Of(payments).Plus(c.Final.Of(payments)).Times(1 / payments)).Plus(c.Deliver).Plus(c.DeliverPaid.Times(c.Events - 1))
}

// Machine is what the constants are applied to.
type Machine struct {
	CPUs float64       // that service, database and client share
	Sync time.Duration // to disk
	// Replicas is how many services share the database. Each creates in one transaction at a
	// time, of up to 128 invoices, and in two while as many wait.
	Replicas int
}

const (
	// lanes is how many transactions of creates a service runs at once, and batch how many
	// invoices one of them has (internal/settle).
	lanes, batch = 2, 128
	// deliveries is how many events a service delivers at once: 8 to each of the bench's 16 merchants.
	deliveries = 128
)

// Limit is a resource, and how many invoices a second it allows.
type Limit struct {
	Resource string
	Rate     float64
}

// CreateLimits returns what bounds creates in transactions of n: the least of these is the most
// that is possible.
func (c Constants) CreateLimits(m Machine, n float64) []Limit {
	cost := c.Create.Of(n).Times(1 / n)
	lane := c.Create.Fixed.Service + share(c.Create.Each.Service, c.LaneShare*n) + c.Create.Of(n).Database + m.Sync
	return []Limit{
		{"CPUs", m.CPUs / (cost.Client + cost.Served()).Seconds()},
		{"lock of events", n / (m.Sync + c.Hold.Of(n)).Seconds()},
		{"transactions at a time", n * float64(lanes*m.Replicas) / lane.Seconds()},
	}
}

// LifeLimits returns what bounds whole lives of invoices that are created in transactions of n
// and paid in blocks of payments.
func (c Constants) LifeLimits(m Machine, n, payments float64) []Limit {
	cost := c.Life(n, payments)
	// A block is observed and made final in a transaction each, whose events are inserted under
	// the lock like those of creates.
	locked := (m.Sync+c.Hold.Of(n)).Seconds()/n + 2*(m.Sync+c.Hold.Of(payments)).Seconds()/payments
	return []Limit{
		{"CPUs", m.CPUs / (cost.Client + cost.Served()).Seconds()},
		{"lock of events", 1 / locked},
	}
}
