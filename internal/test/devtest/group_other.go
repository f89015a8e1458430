//go:build !linux

package devtest

import "os/exec"

// ownGroup returns what kills a program. On this system its children may survive it.
func ownGroup(cmd *exec.Cmd) (kill func() error) {
	return func() error { return cmd.Process.Kill() }
}
