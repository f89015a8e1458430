package simdisk

import (
	"errors"
	"path/filepath"
	"sync"
	"time"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// The functions of SQLite's VFS that are replaced.
type (
	openFunc     = func(tls *libc.TLS, vfs, name, file uintptr, flags int32, outFlags uintptr) int32
	sleepFunc    = func(tls *libc.TLS, vfs uintptr, us int32) int32
	closeFunc    = func(tls *libc.TLS, file uintptr) int32
	dataFunc     = func(tls *libc.TLS, file, buffer uintptr, n int32, offset int64) int32
	truncateFunc = func(tls *libc.TLS, file uintptr, size int64) int32
	syncFunc     = func(tls *libc.TLS, file uintptr, flags int32) int32
	shmLockFunc  = func(tls *libc.TLS, file uintptr, offset, n, flags int32) int32
)

var (
	disks   sync.Map // of *Disk by folder
	handles sync.Map // of *handle by the address of SQLite's file
	methods sync.Map // of *sqlite3.Tsqlite3_io_methods by the address of those that they replace

	unix *sqlite3.Tsqlite3_vfs // SQLite's own
	shim sqlite3.Tsqlite3_vfs  // ours, which SQLite refers to
)

// handle is a file that SQLite opened.
type handle struct {
	disk *Disk
	file *file
	life int // of the disk
	real *sqlite3.Tsqlite3_io_methods
}

// register makes shim SQLite's default.
var register = sync.OnceValue(func() error {
	tls := libc.NewTLS()
	defer tls.Close()
	unix = at[sqlite3.Tsqlite3_vfs](sqlite3.Xsqlite3_vfs_find(tls, 0))
	shim = *unix
	name, err := libc.CString("simdisk") // SQLite keeps it
	if err != nil {
		return err
	}
	shim.FzName, shim.FxOpen, shim.FxSleep = name, address[openFunc](vfsOpen), address[sleepFunc](vfsSleep)
	if sqlite3.Xsqlite3_vfs_register(tls, uintptr(unsafe.Pointer(&shim)), 1) != sqlite3.SQLITE_OK {
		return errors.New("register the VFS of simulated disks")
	}
	return nil
})

func vfsSleep(_ *libc.TLS, _ uintptr, us int32) int32 {
	time.Sleep(time.Duration(us) * time.Microsecond) //nolint:forbidigo // SQLite waits for a lock
	return us
}

func vfsOpen(tls *libc.TLS, _, name, file uintptr, flags int32, outFlags uintptr) int32 {
	open := func() int32 {
		return function[openFunc](unix.FxOpen)(tls, uintptr(unsafe.Pointer(unix)), name, file, flags, outFlags)
	}
	if name == 0 { // a temporary file
		return open()
	}
	path := libc.GoString(name)
	d, ok := disks.Load(filepath.Dir(path))
	if !ok {
		return open()
	}
	pMethods := at[uintptr](file)
	*pMethods = 0 // SQLite does not close it if opening it fails
	h, result := d.(*Disk).handle(path, open)
	if h != nil {
		h.real = at[sqlite3.Tsqlite3_io_methods](*pMethods)
		handles.Store(file, h)
		*pMethods = replaced(*pMethods)
	}
	return result
}

// replaced returns SQLite's methods of a file with some replaced. SQLite refers to the result, which methods keeps.
func replaced(own uintptr) uintptr {
	known, ok := methods.Load(own)
	if !ok {
		m := *at[sqlite3.Tsqlite3_io_methods](own)
		m.FxClose, m.FxRead, m.FxWrite = address[closeFunc](fileClose), address[dataFunc](fileRead), address[dataFunc](fileWrite)
		m.FxTruncate, m.FxSync = address[truncateFunc](fileTruncate), address[syncFunc](fileSync)
		if m.FxShmLock != 0 {
			m.FxShmLock = address[shmLockFunc](fileShmLock)
		}
		known, _ = methods.LoadOrStore(own, &m)
	}
	return uintptr(unsafe.Pointer(known.(*sqlite3.Tsqlite3_io_methods)))
}

func handleOf(file uintptr) *handle {
	h, _ := handles.Load(file)
	return h.(*handle)
}

// dead reports whether the disk stopped since the file was opened.
func (h *handle) dead() bool {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	return h.life != h.disk.life
}

func fileClose(tls *libc.TLS, file uintptr) int32 {
	h := handleOf(file)
	handles.Delete(file)
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	h.disk.open--
	return function[closeFunc](h.real.FxClose)(tls, file)
}

func fileRead(tls *libc.TLS, file, buffer uintptr, n int32, offset int64) int32 {
	h := handleOf(file)
	if h.dead() {
		return sqlite3.SQLITE_IOERR_READ
	}
	return function[dataFunc](h.real.FxRead)(tls, file, buffer, n, offset)
}

func fileWrite(tls *libc.TLS, file, buffer uintptr, n int32, offset int64) int32 {
	h := handleOf(file)
	data := append([]byte{}, unsafe.Slice(at[byte](buffer), n)...)
	return h.disk.run(operation{h, &change{offset, data}, sqlite3.SQLITE_IOERR_WRITE, func() int32 {
		return function[dataFunc](h.real.FxWrite)(tls, file, buffer, n, offset)
	}})
}

func fileTruncate(tls *libc.TLS, file uintptr, size int64) int32 {
	h := handleOf(file)
	return h.disk.run(operation{h, &change{at: size}, sqlite3.SQLITE_IOERR_TRUNCATE, func() int32 {
		return function[truncateFunc](h.real.FxTruncate)(tls, file, size)
	}})
}

func fileSync(_ *libc.TLS, file uintptr, _ int32) int32 {
	h := handleOf(file)
	return h.disk.run(operation{handle: h, failed: sqlite3.SQLITE_IOERR_FSYNC})
}

func fileShmLock(tls *libc.TLS, file uintptr, offset, n, flags int32) int32 {
	h := handleOf(file)
	if flags&sqlite3.SQLITE_SHM_UNLOCK == 0 && h.dead() {
		return sqlite3.SQLITE_IOERR_SHMLOCK
	}
	return function[shmLockFunc](h.real.FxShmLock)(tls, file, offset, n, flags)
}

// at returns the pointer to an address outside of Go's memory.
func at[T any](address uintptr) *T { return *(**T)(unsafe.Pointer(&address)) }

// function returns the function at an address of modernc.org/sqlite. address is its inverse.
func function[F any](address uintptr) F { return *(*F)(unsafe.Pointer(&address)) }

func address[F any](f F) uintptr { return *(*uintptr)(unsafe.Pointer(&f)) }
