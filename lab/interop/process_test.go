// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package interop

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is a program of others that runs, in a process group of its own.
type process struct {
	cmd    *exec.Cmd
	output *lines
	done   chan struct{} // closed when it has ended
}

// start starts a program that ends with the test at the latest.
func start(t *testing.T, env []string, name string, args ...string) *process {
	t.Helper()
	return startWith(t, nil, env, name, args...)
}

// startWith starts a program that talks to the test; what it prints to the standard output goes to talk, if that is given.
func startWith(t *testing.T, talk func(*exec.Cmd), env []string, name string, args ...string) *process {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Dir = t.TempDir()
	// With Pdeathsig it also ends if this process is killed.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	p := &process{cmd, new(lines), make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p.output, p.output
	if talk != nil {
		talk(cmd)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = cmd.Wait() // how it ended is seen by what it did
		close(p.done)
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s said:\n%s", filepath.Base(name), p.output)
		}
	})
	return p
}

// signal sends a signal to the process itself.
func (p *process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
}

// kill kills the whole group, as kill -9 does, and returns when the process is gone.
func (p *process) kill() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // it may have ended
	<-p.done
}

// lines keeps the end of what a process prints.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if over := l.text.Len() + len(b) - 4<<10; over > 0 {
		l.text.Next(over)
	}
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

var versionNumber = regexp.MustCompile(`[0-9]+\.[0-9]+(\.[0-9]+)?[-+~.0-9a-z]*`)

// version is the first version number that a program says of itself.
func version(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	number := versionNumber.FindString(string(out))
	if err != nil || number == "" {
		t.Fatalf("%s says no version: %v: %s", name, err, out)
	}
	return number
}

// port returns a port of loopback that was free just now.
func port(t *testing.T) int {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer lis.Close()
	return lis.Addr().(*net.TCPAddr).Port
}

// listening waits until somebody accepts connections there.
func listening(t *testing.T, port int) {
	t.Helper()
	await(t, 10*time.Second, fmt.Sprintf("a listener on port %d", port), func() bool {
		conn, err := net.DialTimeout("tcp", address(port), time.Second)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
}

func address(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// file writes a file that ends with the test, and returns its path.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
