//go:build !linux

package storetest

import (
	"errors"
	"net"
)

func dropPackets(*net.TCPConn) error { return errors.ErrUnsupported }
