package main

import "syscall"

// childAttributes keep a terminal's Ctrl-C away from the child and end it with
// this program, however that ends.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
