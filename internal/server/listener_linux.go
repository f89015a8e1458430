package server

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

// Fields of a TCP header (RFC 9293).
const (
	tcpFlags = 13 // offset of the byte
	tcpSYN   = 0x02
	tcpACK   = 0x10
)

// refuseHandshakes makes the kernel drop SYN packets to the listener. Handshakes in
// progress complete. A client whose SYN was dropped retries after a second, when the
// listener is closed.
func refuseHandshakes(l *net.TCPListener) error {
	raw, err := l.SyscallConn()
	if err != nil {
		return err
	}
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: tcpFlags},
		{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: tcpSYN | tcpACK},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: tcpSYN, Jt: 0, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0},           // drop the packet
		{Code: unix.BPF_RET | unix.BPF_K, K: 0xffff_ffff}, // keep all of it
	}
	var set error
	err = raw.Control(func(fd uintptr) {
		set = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
			&unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]})
	})
	return errors.Join(err, set)
}
