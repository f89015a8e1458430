package main

import (
	"context"
	"time"

	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/test/dbtest"
)

// database is the PostgreSQL database that the replicas of a world share; nil with SQLite. The server and the
// connections are real, and the world's time does not pass while a statement runs. The server's clock is the world's.
type database struct {
	urls    []string // a replica's, through its proxy
	proxies []*dbtest.Proxy
	setTime func(time.Time)
}

// database makes the database of a world, outside its bubble.
func (b bubbles) database(seed uint64) *database {
	if !b.postgres {
		return nil
	}
	url, setTime := dbtest.PostgresWithClock(b.t)
	d := &database{setTime: setTime}
	for range 1 + stream(seed, "replicas").IntN(3) {
		p, through, err := dbtest.StartProxy(context.Background(), url, 0)
		if err != nil {
			panic(err)
		}
		d.proxies, d.urls = append(d.proxies, p), append(d.urls, through)
	}
	return d
}

func (d *database) close() {
	if d == nil {
		return
	}
	for _, p := range d.proxies {
		if err := p.Close(); err != nil {
			panic(err)
		}
	}
}

func (d *database) replicas() int {
	if d == nil {
		return 1
	}
	return len(d.urls)
}

// now returns the time of a replica's machine, and sets the server's clock.
func (s *service) now() time.Time {
	if d := s.world.database; d != nil {
		d.setTime(time.Now())
	}
	return s.world.machine.now()
}

// refuse keeps a replica from the database while on is true.
func (s *service) refuse(on bool) {
	if d := s.world.database; d != nil {
		d.proxies[s.index].Refuse(on)
	}
}

// cutConnections breaks connections to the database until the active time is over.
func (w *world) cutConnections() {
	r := stream(w.seed, "connections")
	for w.database != nil && clock.Sleep(w.ctx, time.Duration(r.ExpFloat64()*float64(20*time.Second)), nil) && time.Since(w.plan.began) < w.active {
		i, most := r.IntN(len(w.services)), []int{1, 3, 100}[r.IntN(3)]
		w.log.say("database", "%d connections of replica %d broke", w.database.proxies[i].Cut(most), i+1)
	}
}
