package main

import (
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/admin"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/server"
	"github.com/quittance/quittance/internal/test/simdisk"
)

// operate stops, kills and starts the service until the active time is over: at a drawn time, at a request, or when
// a fault stops its disk.
func (s *service) operate() {
	w, r := s.world, stream(s.world.seed, "operator"+s.name)
	for left := w.active; left > 0 && w.ctx.Err() == nil && !w.failed(); left = w.active - time.Since(w.plan.began) {
		d, crash := time.Duration(r.ExpFloat64()*float64(w.active/2)), (<-chan struct{})(nil)
		switch r.IntN(6) {
		case 0:
			crash = w.plan.crashAfter(1 + r.IntN(1000))
		case 1, 2:
			s.faulty = true
			s.healthy.Store(0)
			s.disk.Plan(simdisk.Draw(r, s.disk.Ops(), 3000))
		}
		timer, kill := time.NewTimer(min(d, left)), true
		select {
		case <-timer.C:
			kill = r.IntN(2) == 0
		case <-crash:
		case <-s.disk.Stopped():
		}
		if timer.Stop() || d < left {
			s.restart(r, kill, time.Duration(r.ExpFloat64()*float64(8*time.Second)))
		}
	}
	s.disk.Heal()
	w.returns.Store(time.Now().Add(w.outage).UnixNano())
	if w.outage > 0 || s.stopped() || s.changed {
		s.restart(r, s.stopped() || r.IntN(2) == 0, w.outage)
	}
	s.faulty = false
}

// pause waits before somebody asks the service again, and until the outage ends. It reports whether the world goes on.
func (w *world) pause(d time.Duration) bool {
	return !w.failed() && clock.Sleep(w.ctx, max(d, time.Until(time.Unix(0, w.returns.Load()))), nil)
}

// restart stops or kills the service, and starts it after a pause. With a faulty disk that may take more attempts.
func (s *service) restart(r *mathrand.Rand, kill bool, pause time.Duration) {
	w := s.world
	s.held <- struct{}{}
	defer func() { <-s.held }()
	if kill {
		s.kill(r)
	} else if err := s.stopNow(); err != nil && !s.faulty {
		w.fail("the service did not stop in order: %v", err)
	}
	w.pace.Store(int64(pause / 100))
	clock.Sleep(w.ctx, pause-pause/80, nil)
	w.pace.Store(0) // a block that is due by the slow pace still comes before the end
	clock.Sleep(w.ctx, pause/80, nil)
	if name := fmt.Sprint("operator key ", s.runs); w.database == nil && stream(w.seed, name).IntN(8) == 0 {
		w.drawOperatorKey(name)
		w.rekeyed = true
	}
	restores := s.backup != ""
	if restores {
		s.restore()
	}
	s.persist(s.faulty, s.start)
	if restores {
		w.busy.Go(w.decideAgain)
	}
}

// persist repeats what may fail because of a fault, until it succeeds. It must once there are no more faults.
func (s *service) persist(faulty bool, do func() error) {
	w := s.world
	for {
		if s.stopped() {
			s.restartDisk()
		}
		if time.Since(w.plan.began) > w.active {
			s.disk.Heal()
			w.plan.stop()
			faulty = false
		}
		err := do()
		if err == nil {
			return
		}
		w.log.say("operator", "%v", err)
		if !faulty || !clock.Sleep(w.ctx, 10*time.Second, nil) {
			w.fail("%v", err)
			return
		}
	}
}

// drawOperatorKey draws the operator's key in the next configuration.
func (w *world) drawOperatorKey(name string) {
	key, err := access.NewKey(access.Live, &randomReader{r: stream(w.seed, name)})
	if err != nil {
		panic(err)
	}
	w.operatorKey = key
	w.operator.key.Store(&apitypes.KeySecretResponse{Secret: key.Reveal()})
}

// keyring returns the replica's master keys, at its step of replacing one: it reads with the next key, then seals with
// that, and then has no other.
func (s *service) keyring() *access.Keyring {
	key := func(n int) access.MasterKey {
		k, err := access.ParseMasterKey(fmt.Sprintf("%064x", hashOf("master key", uint64(n))))
		if err != nil {
			panic(err)
		}
		return k
	}
	old, next := key(s.keySteps/3), key(s.keySteps/3+1)
	return []*access.Keyring{access.NewKeyring(old), access.NewKeyring(old, next), access.NewKeyring(next, old)}[s.keySteps%3]
}

// replaceMasterKey takes the next step, as docs/operations.md says: once every replica has taken the last one, and the
// third one once all secrets are sealed again.
func (s *service) replaceMasterKey() {
	w := s.world
	w.mu.Lock()
	waits := slices.ContainsFunc(w.services, func(other *service) bool { return other.keySteps < s.keySteps })
	w.mu.Unlock()
	if waits {
		return
	}
	if s.keySteps%3 == 2 {
		if n, err := admin.Reseal(w.ctx, s.database, s.keyring()); err != nil {
			w.log.say("operator", "seal %d secrets again: %v", n, err)
			return
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	s.keySteps++
	w.log.say("operator"+s.name, "step %d of replacing master keys", s.keySteps)
}

// configure returns the chains of the next run of the service. While the configuration is another one, one of several
// chains may be left out.
func (s *service) configure(r *mathrand.Rand) (all []server.Chain) {
	w := s.world
	w.mu.Lock()
	defer w.mu.Unlock()
	away := r.IntN(3 * len(w.chains))
	for i, c := range w.chains {
		now := c
		if s.changed {
			now = c.changed(r)
		}
		c.both, c.away = s.changed && now.both, s.changed && i == away && len(w.chains) > 1
		if !c.away {
			all = append(all, now.configured())
		}
	}
	return all
}

// changed returns the chain with other settings, as an operator may choose for one run of the service. Two nodes stay
// compared if one is dishonest.
func (c *worldChain) changed(r *mathrand.Rand) *worldChain {
	now := &worldChain{
		evmChain: c.evmChain, key: c.key, finality: c.finality, quorum: c.quorum, compareLogs: c.compareLogs, fullBloom: c.fullBloom,
		limits: c.limits, both: r.IntN(2) == 0, writes: c.writes && r.IntN(4) > 0, nodes: slices.Clone(c.nodes),
	}
	now.drawPace(r)
	now.gasless = now.writes && r.IntN(3) > 0
	r.Shuffle(len(now.nodes), func(i, j int) { now.nodes[i], now.nodes[j] = now.nodes[j], now.nodes[i] })
	if now.quorum == 1 && !c.omits {
		now.quorum = 1 + r.IntN(min(2, len(now.nodes)))
		now.compareLogs = now.quorum == 1
	}
	now.nodes = now.nodes[:now.quorum+r.IntN(len(now.nodes)-now.quorum+1)]
	return now
}

// drawPace draws how often the chain is read, and when its deposits are swept.
func (c *worldChain) drawPace(r *mathrand.Rand) {
	c.sweep = []chain.SweepTime{chain.SweepAtOnce, chain.SweepNever, chain.SweepDaily}[r.IntN(3)]
	c.poll, c.idle = time.Duration(1+r.IntN(8))*time.Second, time.Duration(8+r.IntN(50))*time.Second
}

// refusable reports whether the service may refuse to create the invoice now: too little time is left by its clock, or
// it runs without the chain or the currency, or the address is perhaps not allowed, or the key is not in a backup.
func (o *order) refusable() bool {
	w := o.merchant.world
	must, _ := o.merchant.allows(o.wallet, time.Now())
	recovered := w.recovered.Load()
	restored := w.isRestored() && (recovered == 0 || time.Since(time.Unix(0, recovered)) < 2*clientTimeout)
	w.mu.Lock()
	defer w.mu.Unlock()
	ahead := slices.Max(w.machine.recent())
	return o.request.ExpiresAt < time.Now().Add(ahead).Unix()+5 || o.chain.away || o.request.Currency == euros && !o.chain.both || !must || restored
}
