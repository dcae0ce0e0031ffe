package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// process is one child with its log file.
type process struct {
	name   string
	log    string
	cmd    *exec.Cmd
	exited chan struct{} // closed once the child is gone
}

// startProcess must be called on the main goroutine (see init in main.go).
func startProcess(dir, binary string, args ...string) (*process, error) {
	name := filepath.Base(binary)
	p := &process{name: name, log: filepath.Join(dir, name+".log"), exited: make(chan struct{})}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", name, err)
	}
	defer log.Close()
	p.cmd = exec.Command(binary, args...)
	p.cmd.Dir = dir
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = childAttributes()
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", binary, err)
	}
	go func() {
		_ = p.cmd.Wait() // how it ended is read from ProcessState
		close(p.exited)
	}()
	return p, nil
}

// stop asks the child to end, and ends it if it does not within the grace.
func (p *process) stop(grace time.Duration) {
	if p == nil {
		return
	}
	if grace > 0 {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-p.exited:
			return
		case <-time.After(grace):
		}
	}
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// running says whether the child is still there.
func (p *process) running() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// report says how the child stands and shows the end of its log.
func (p *process) report() string {
	if p == nil {
		return "not started"
	}
	state := "still running"
	if !p.running() {
		state = p.cmd.ProcessState.String()
	}
	return fmt.Sprintf("%s (%s), end of its log:\n%s", p.name, state, tail(p.log, 30))
}

// tail reads the last lines of a file.
func tail(path string, count int) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	if len(lines) > count {
		lines = lines[len(lines)-count:]
	}
	return strings.Join(lines, "\n")
}
