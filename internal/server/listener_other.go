//go:build !linux

package server

import (
	"errors"
	"net"
)

func refuseHandshakes(*net.TCPListener) error { return errors.ErrUnsupported }
