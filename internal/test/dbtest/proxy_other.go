//go:build !linux

package dbtest

import (
	"errors"
	"net"
)

func dropPackets(*net.TCPConn) error { return errors.ErrUnsupported }
