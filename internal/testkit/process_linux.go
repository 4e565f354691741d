// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package testkit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// Process is a running program, in its own process group.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
}

// StartProcess starts a program, with env added to the environment, in an empty folder. It ends with the test at the latest,
// even if this process is killed. A failed test shows the end of the program's output. prepare may connect the program's
// input and output before the start; it may be nil.
func StartProcess(tb testing.TB, prepare func(*exec.Cmd), env []string, name string, args ...string) *Process {
	tb.Helper()
	cmd, output := exec.CommandContext(context.Background(), name, args...), new(tail)
	cmd.Env, cmd.Dir = append(os.Environ(), env...), tb.TempDir()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Stdout, cmd.Stderr = output, output
	if prepare != nil {
		prepare(cmd)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	p := &Process{cmd, make(chan struct{})}
	go func() {
		_ = cmd.Wait() // tests check its effects instead
		close(p.done)
	}()
	tb.Cleanup(func() {
		p.Kill()
		if tb.Failed() {
			tb.Logf("%s said:\n%s", filepath.Base(name), output)
		}
	})
	return p
}

// Signal sends a signal to the process itself.
func (p *Process) Signal(tb testing.TB, s syscall.Signal) {
	tb.Helper()
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		tb.Fatal(err)
	}
}

// Kill kills the whole group, and returns when the process is gone.
func (p *Process) Kill() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // it may have ended
	<-p.done
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// The ports are below those that Linux gives to connections (from 32768 on), which could take the port of a server that is down
// for a moment.
const lowest, ports = 20_000, 12_000

var (
	first = rand.Uint32N(ports) // other processes begin elsewhere
	given atomic.Uint32         // counts the ports that were given or were not free
)

// Port returns a port of loopback that was free just now, and that this process has not had before.
func Port(tb testing.TB) int {
	tb.Helper()
	for range ports {
		port := lowest + int((first+given.Add(1))%ports)
		lis, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			_ = lis.Close() // only a second close fails
			return port
		}
	}
	tb.Fatal("no port of loopback is free")
	return 0
}

// tail keeps the end of a program's output.
type tail struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *tail) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if over := l.text.Len() + len(b) - 4<<10; over > 0 {
		l.text.Next(over)
	}
	return l.text.Write(b)
}

func (l *tail) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
