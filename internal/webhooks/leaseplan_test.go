package webhooks

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// In every case a plan stays within the request's room and every merchant's limit, takes no delivery that is in flight
// or not due, and gives no merchant two deliveries more than another that could have had them.
func TestPlanProperties(t *testing.T) {
	now := time.UnixMilli(1_000_000_000_000)
	rapid.Check(t, func(rt *rapid.T) {
		r := LeaseRequest{
			Now: now, Lane: First, PerMerchant: rapid.IntRange(1, 8).Draw(rt, "per merchant"),
			Healthy: rapid.IntRange(0, 20).Draw(rt, "healthy"), Suspect: rapid.IntRange(0, 20).Draw(rt, "suspect"),
		}
		breakers, queued := make(map[string]Breaker), make(map[string][]Delivery)
		for i := range rapid.IntRange(1, 6).Draw(rt, "merchants") {
			id := fmt.Sprint("m", i)
			breakers[id] = Breaker{State: BreakerClosed, Healthy: rapid.Bool().Draw(rt, "is healthy"), Allowed: rapid.IntRange(1, 8).Draw(rt, "allowed")}
			r.Queues = append(r.Queues, Queue{MerchantID: id})
			for n := range rapid.IntRange(0, 20).Draw(rt, "queued") {
				due := now.Add(time.Duration(n-10) * time.Millisecond)
				queued[id] = append(queued[id], Delivery{MerchantID: id, Seq: int64(100*i + n), Due: due, Deadline: due.Add(RetryWindow)})
			}
		}
		p := NewPlan(r, breakers)
		inFlight := make(map[string]int)
		for id, all := range queued {
			inFlight[id] = rapid.IntRange(0, min(3, len(all))).Draw(rt, "in flight")
			for _, d := range all[:inFlight[id]] {
				p.AddInFlight(id, d.Seq)
			}
		}
		byDue, _ := p.Peeks()
		for _, peek := range byDue {
			all := queued[peek.MerchantID]
			p.Found(peek, all[:min(len(all), peek.Limit)])
		}
		chosen, states := p.Choose()
		taken, room := make(map[string]int), map[bool]int{true: r.Healthy, false: r.Suspect}
		for _, d := range chosen {
			if d.Due.After(now) || d.Suspect == breakers[d.MerchantID].Healthy {
				rt.Fatalf("took %+v", d)
			}
			if next := queued[d.MerchantID][inFlight[d.MerchantID]+taken[d.MerchantID]]; next.Seq != d.Seq {
				rt.Fatalf("took %d of %s before %d", d.Seq, d.MerchantID, next.Seq)
			}
			taken[d.MerchantID]++
			room[!d.Suspect]--
		}
		for id, b := range breakers {
			if taken[id] > 0 && inFlight[id]+taken[id] > min(r.PerMerchant, b.Allowed) || room[b.Healthy] < 0 {
				rt.Fatalf("%s has %d and %d in flight, with room %v", id, taken[id], inFlight[id], room)
			}
			for other, o := range breakers {
				if b.Healthy == o.Healthy && taken[other] > taken[id]+1 && inFlight[id]+taken[id] < min(r.PerMerchant, b.Allowed) && len(queued[id]) > inFlight[id]+taken[id] &&
					!queued[id][inFlight[id]+taken[id]].Due.After(now) {
					rt.Fatalf("%s has %d, %s %d", id, taken[id], other, taken[other])
				}
			}
		}
		for _, s := range states {
			if rest := queued[s.MerchantID][inFlight[s.MerchantID]+taken[s.MerchantID]:]; len(rest) > 0 && (s.Head.IsZero() || s.Head.After(rest[0].Due)) {
				rt.Fatalf("%s goes on at %s, and %s waits", s.MerchantID, s.Head, rest[0].Due)
			}
		}
	})
}
