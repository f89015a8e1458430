package dbtest

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

// dropPackets has the kernel drop every packet that arrives for the connection.
func dropPackets(conn *net.TCPConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	none := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: 0} // keep 0 bytes
	var set error
	err = raw.Control(func(fd uintptr) {
		set = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &none})
	})
	return errors.Join(err, set)
}
