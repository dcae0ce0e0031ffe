//go:build !linux

package main

import "syscall"

// childAttributes keep a terminal's Ctrl-C away from the child. There is no
// parent-death signal here: after a hard kill the children are left.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
