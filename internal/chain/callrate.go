package chain

import "time"

// Limits of estimating the calls per day.
const (
	rateSamples = 61 // one hour of samples
	rateEvery   = time.Minute
	day         = 24 * time.Hour
)

// callRate estimates a node's calls per day from the calls of the last hour.
type callRate struct{ samples []callSample } // the oldest first

type callSample struct {
	at    time.Time
	calls uint64 // number of calls until then
}

// observe records how many calls were made until a time.
func (r *callRate) observe(at time.Time, calls uint64) {
	if n := len(r.samples); n > 0 && at.Sub(r.samples[n-1].at) < rateEvery {
		return
	}
	r.samples = append(r.samples, callSample{at, calls})
	r.samples = r.samples[max(0, len(r.samples)-rateSamples):]
}

// perDay returns the estimate, or 0 in the first minute.
func (r *callRate) perDay(now time.Time, calls uint64) uint64 {
	if len(r.samples) == 0 {
		return 0
	}
	oldest := r.samples[0]
	took := now.Sub(oldest.at)
	if took < rateEvery {
		return 0
	}
	return uint64(float64(calls-oldest.calls) / float64(took) * float64(day))
}
