package db

import (
	"errors"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// setUserTimeout makes the system end a TCP connection if sent data is not acknowledged for
// userTimeout.
func setUserTimeout(network, _ string, conn syscall.RawConn) error {
	if !strings.HasPrefix(network, "tcp") {
		return nil
	}
	var set error
	err := conn.Control(func(fd uintptr) {
		set = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(userTimeout.Milliseconds()))
	})
	return errors.Join(err, set)
}
