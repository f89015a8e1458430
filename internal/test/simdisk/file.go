package simdisk

import (
	"math/rand/v2"
	"os"
)

// sector is the number of bytes that a disk writes at once.
const sector = 512

// file is what a disk knows of a file. The file itself has every change, as the page cache does.
type file struct {
	info    os.FileInfo
	size    int64
	durable []byte   // the content that survives a loss of power
	pending []change // since the last sync
}

// change is a write, or a truncation to the offset if data is nil.
type change struct {
	at   int64
	data []byte
}

// end returns the offset after the last byte.
func (c change) end() int64 { return c.at + int64(len(c.data)) }

// has reports whether the path still names the file.
func (f *file) has(path string) bool {
	info, err := os.Stat(path)
	return err == nil && os.SameFile(info, f.info)
}

// add notes a change that was carried out.
func (f *file) add(c change) {
	f.pending = append(f.pending, c)
	f.size = max(f.size, c.end())
	if c.data == nil {
		f.size = c.at
	}
}

// sync makes the pending changes durable.
func (f *file) sync() {
	for _, c := range f.pending {
		f.keep(c)
	}
	f.pending = nil
}

// settle draws which pending changes become durable: each is kept, torn or lost. A sector is written as a
// whole, so it has every change up to the last one that it kept.
func (f *file) settle(rng *rand.Rand) {
	const kept, lost = 0, 2 // 1 is torn
	last := make(map[int64]int)
	truncated := make(map[int]bool)
	for i, c := range f.pending {
		fate := rng.IntN(3)
		truncated[i] = c.data == nil && fate == kept
		for s := c.at / sector; s*sector < c.end() && fate != lost; s++ {
			if fate == kept || rng.IntN(2) == 0 {
				last[s] = i + 1
			}
		}
	}
	for i, c := range f.pending {
		if truncated[i] {
			f.keep(c)
		}
		for s := c.at / sector; s*sector < c.end(); s++ {
			if from, to := max(s*sector, c.at), min((s+1)*sector, c.end()); i < last[s] {
				f.keep(change{from, c.data[from-c.at : to-c.at]})
			}
		}
	}
	f.pending = nil
}

// keep makes a change durable.
func (f *file) keep(c change) {
	size := c.end()
	if c.data != nil {
		size = max(size, int64(len(f.durable)))
	}
	if more := size - int64(len(f.durable)); more > 0 {
		f.durable = append(f.durable, make([]byte, more)...)
	}
	f.durable = f.durable[:size]
	copy(f.durable[c.at:], c.data)
}
