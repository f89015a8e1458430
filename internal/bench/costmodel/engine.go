package costmodel

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"time"
)

// engine runs a simulation. All work shares the CPUs equally, but nothing has more than one.
type engine struct {
	cpus float64
	rand *rand.Rand

	now     float64 // seconds
	used    float64 // seconds of CPU, of all tasks
	served  float64 // seconds of CPU that a task which was always running would have had
	running tasks   // by the value of served at which they end
	waiting tasks   // by the time at which they end
}

func newEngine(cpus float64, seed uint64) *engine {
	return &engine{cpus: cpus, rand: rand.New(rand.NewPCG(seed, seed))} //nolint:gosec // a simulation is repeatable
}

// compute has then called after about as much CPU time: half of it to one and a half.
func (e *engine) compute(cpu time.Duration, then func()) {
	took := cpu.Seconds() * (0.5 + e.rand.Float64())
	e.used += took
	heap.Push(&e.running, task{e.served + took, then})
}

// wait has then called after a time that takes no CPU.
func (e *engine) wait(d time.Duration, then func()) {
	heap.Push(&e.waiting, task{e.now + d.Seconds(), then})
}

// elapsed is the time since the simulation began.
func (e *engine) elapsed() time.Duration { return time.Duration(e.now * float64(time.Second)) }

// run ends at a time, or when nothing is left to do.
func (e *engine) run(until time.Duration) {
	for more := true; more && e.elapsed() < until; {
		more = e.step()
	}
}

// step advances to the end of the next task. It returns false if there is no task.
func (e *engine) step() bool {
	if len(e.running)+len(e.waiting) == 0 {
		return false
	}
	rate := min(1, e.cpus/float64(max(1, len(e.running))))
	if len(e.running) > 0 {
		took := max(0, e.running[0].end-e.served) / rate
		if len(e.waiting) == 0 || e.now+took <= e.waiting[0].end {
			e.now += took
			e.served = max(e.served, e.running[0].end)
			heap.Pop(&e.running).(task).then() //nolint:forcetypeassert // compute pushes nothing else
			return true
		}
		e.served += (e.waiting[0].end - e.now) * rate
	}
	e.now = e.waiting[0].end
	heap.Pop(&e.waiting).(task).then() //nolint:forcetypeassert // wait pushes nothing else
	return true
}

// task calls then at its end.
type task struct {
	end  float64
	then func()
}

// tasks is a heap of tasks.
type tasks []task

// Len implements heap.Interface.
func (t *tasks) Len() int { return len(*t) }

// Less implements heap.Interface.
func (t *tasks) Less(i, j int) bool { return (*t)[i].end < (*t)[j].end }

// Swap implements heap.Interface.
func (t *tasks) Swap(i, j int) { (*t)[i], (*t)[j] = (*t)[j], (*t)[i] }

// Push implements heap.Interface.
func (t *tasks) Push(x any) { *t = append(*t, x.(task)) } //nolint:forcetypeassert // the engine pushes nothing else

// Pop implements heap.Interface.
func (t *tasks) Pop() any {
	last := (*t)[len(*t)-1]
	*t = (*t)[:len(*t)-1]
	return last
}

// slots are held by as many holders at once as there are; others wait in order.
type slots struct {
	free  int
	queue []func()
}

// acquire calls then with a slot.
func (s *slots) acquire(then func()) {
	if s.free == 0 {
		s.queue = append(s.queue, then)
		return
	}
	s.free--
	then()
}

// program is a process that runs on as many threads at once as there are CPUs, and its tasks in the order of their arrival.
type program struct {
	*engine
	threads slots
}

func newProgram(e *engine) *program {
	return &program{e, slots{free: max(1, int(math.Ceil(e.cpus)))}}
}

// run has then called after about as much CPU time of the program.
func (p *program) run(cpu time.Duration, then func()) {
	p.threads.acquire(func() {
		p.compute(cpu, func() {
			p.threads.release()
			then()
		})
	})
}

// release passes the slot on.
func (s *slots) release() {
	if len(s.queue) == 0 {
		s.free++
		return
	}
	next := s.queue[0]
	s.queue = s.queue[1:]
	next()
}
