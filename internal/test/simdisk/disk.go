// Package simdisk simulates a disk under SQLite: loss of power, full, slow, failed syncs.
//
// It becomes SQLite's default VFS. For databases in the folder of a Disk it numbers the writes, truncations and
// syncs, and a schedule of faults refers to these numbers. The files themselves and their locks are the operating
// system's, so that every other access to them works as well. A Disk keeps in memory what of each file is durable,
// and what was changed since. SQLite waits by package time, so that a testing/synctest bubble controls it.
package simdisk

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	sqlite3 "modernc.org/sqlite/lib"
)

// Kind is a kind of fault.
type Kind string

// Kinds.
const (
	PowerLoss Kind = "power loss"  // the disk stops and loses changes that were not synced
	Kill      Kind = "kill"        // the disk stops and has every change, as if only the process ended
	Full      Kind = "disk full"   // writes that extend a file fail
	Slow      Kind = "slow disk"   // each operation takes Delay
	SyncFails Kind = "failed sync" // one sync fails, and a later one can succeed
)

// Fault begins with one of the disk's operations.
type Fault struct {
	At    int // the number of the operation; the first is 1
	Kind  Kind
	After bool          // the disk stops after it, not before
	For   time.Duration // how long Full and Slow last
	Delay time.Duration // of Slow
	Seed  uint64        // decides which changes PowerLoss loses
}

// Draw returns a fault that begins with one of the count operations after the given number. No sync that fails loses
// changes although a later one succeeds, as on Linux, because SQLite does not survive it: when readers let it copy
// only a part of the log to the file, it neither syncs the file nor copies that part again if a later sync fails.
func Draw(rng *rand.Rand, after, count int) Fault {
	kinds := []Kind{PowerLoss, Kill, Full, Slow, SyncFails}
	return Fault{
		At: after + 1 + rng.IntN(count), Kind: kinds[rng.IntN(len(kinds))], After: rng.IntN(2) == 0,
		For: time.Duration(rng.Int64N(int64(time.Hour))), Delay: time.Duration(rng.Int64N(int64(2 * time.Second))), Seed: rng.Uint64(),
	}
}

// Disk holds the SQLite files of a folder.
type Disk struct {
	dir string

	mu      sync.Mutex       // guards the fields below, and keeps operations apart
	life    int              // a file of an earlier life fails
	files   map[string]*file // by path
	open    int              // handles
	faults  []Fault          // that did not begin yet, by At
	ops     int              // operations until now
	stop    *Fault           // why the disk does not work
	stopped chan struct{}    // closed when the disk stops
	// Until these times the disk is full, and slow by delay.
	fullUntil, slowUntil time.Time
	delay                time.Duration
	syncFails            bool // the next sync fails
}

// New returns a disk that holds the files of an existing folder. Until Close, SQLite uses it for every
// database in the folder that this process opens. Call New in the bubble in which the disk is used.
func New(dir string) (*Disk, error) {
	if err := register(); err != nil {
		return nil, err
	}
	dir, err := filepath.EvalSymlinks(dir) // as SQLite does
	if err != nil {
		return nil, err
	}
	d := &Disk{dir: dir, files: make(map[string]*file), stopped: make(chan struct{})}
	if _, taken := disks.LoadOrStore(dir, d); taken {
		return nil, fmt.Errorf("%s has a simulated disk already", dir)
	}
	return d, nil
}

// Close ends the simulation. Close the databases first.
func (d *Disk) Close() { disks.Delete(d.dir) }

// Plan adds faults to the schedule. One with an At in the past begins with the next operation.
func (d *Disk) Plan(faults ...Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults = append(d.faults, faults...)
	slices.SortStableFunc(d.faults, func(a, b Fault) int { return cmp.Compare(a.At, b.At) })
}

// Heal ends all faults and clears the schedule. A disk that stopped needs Restart, too.
func (d *Disk) Heal() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults, d.syncFails, d.fullUntil, d.slowUntil = nil, false, time.Time{}, time.Time{}
}

// Ops returns how many writes, truncations and syncs there were since New.
func (d *Disk) Ops() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ops
}

// Stopped returns a channel that is closed when the disk stops, until Restart.
func (d *Disk) Stopped() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stopped
}

// Stop stops the disk now by a Kill or PowerLoss, unless it has stopped.
func (d *Disk) Stop(f Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stop == nil {
		d.halt(f)
	}
}

func (d *Disk) halt(f Fault) {
	d.stop = &f
	d.life++
	close(d.stopped)
}

// Restart lets a stopped disk work again, with what it kept. Close the databases first.
func (d *Disk) Restart() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stop == nil || d.open > 0 {
		return fmt.Errorf("restart a disk with %d open files that stopped by %v", d.open, d.stop)
	}
	rng := d.stop.rand()
	for _, path := range slices.Sorted(maps.Keys(d.files)) {
		f := d.files[path]
		if d.stop.Kind != PowerLoss || !f.has(path) {
			continue
		}
		f.settle(rng)
		if err := os.WriteFile(path, f.durable, 0o600); err != nil {
			return err
		}
		f.size = int64(len(f.durable))
	}
	d.stop, d.syncFails, d.stopped = nil, false, make(chan struct{})
	return nil
}

func (f *Fault) rand() *rand.Rand { return rand.New(rand.NewPCG(f.Seed, 0)) } //nolint:gosec // a simulation

// operation is a write, truncation or sync.
type operation struct {
	*handle
	change *change // nil for a sync
	failed int32   // SQLite's code if it fails
	real   func() int32
}

// run numbers an operation, lets faults begin, and carries it out unless one prevents that.
func (d *Disk) run(op operation) int32 {
	time.Sleep(d.pause()) //nolint:forbidigo // SQLite waits for its disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if op.life != d.life {
		return op.failed
	}
	d.ops++
	stop := d.begin()
	result := op.failed
	if stop == nil || stop.After {
		result = d.carryOut(op)
	}
	if stop != nil {
		d.halt(*stop)
		return op.failed
	}
	return result
}

// pause returns how long the next operation takes.
func (d *Disk) pause() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if time.Now().Before(d.slowUntil) {
		return d.delay
	}
	return 0
}

// begin lets the faults begin that are due, and returns the one that stops the disk, or nil.
func (d *Disk) begin() *Fault {
	for len(d.faults) > 0 && d.faults[0].At <= d.ops {
		f := d.faults[0]
		d.faults = d.faults[1:]
		switch f.Kind {
		case PowerLoss, Kill:
			return &f
		case Full:
			d.fullUntil = time.Now().Add(f.For)
		case Slow:
			d.slowUntil, d.delay = time.Now().Add(f.For), f.Delay
		case SyncFails:
			d.syncFails = true
		}
	}
	return nil
}

func (d *Disk) carryOut(op operation) int32 {
	switch c := op.change; {
	case c == nil && d.syncFails:
		d.syncFails = false
		return op.failed
	case c == nil:
		op.file.sync()
	case c.end() > op.file.size && time.Now().Before(d.fullUntil):
		return sqlite3.SQLITE_FULL
	default:
		if result := op.real(); result != sqlite3.SQLITE_OK {
			return result
		}
		op.file.add(*c)
	}
	return sqlite3.SQLITE_OK
}

// handle opens a file by SQLite's own function. It returns nil if that fails.
func (d *Disk) handle(path string, open func() int32) (h *handle, result int32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stop != nil {
		return nil, sqlite3.SQLITE_IOERR
	}
	f := d.files[path]
	if f == nil || !f.has(path) {
		f = &file{}
		// No connection has the file open, so that closing it releases no lock of this process.
		content, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, sqlite3.SQLITE_IOERR
		}
		f.durable, f.size = content, int64(len(content))
	}
	if result = open(); result != sqlite3.SQLITE_OK {
		return nil, result
	}
	f.info, _ = os.Stat(path) // it was opened
	d.files[path] = f
	d.open++
	return &handle{disk: d, file: f, life: d.life}, result
}
