// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package redisfleet

import (
	"encoding/gob"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/stagger-go/stagger/internal/testkit"
)

// group is a set of client processes, and their output.
type group struct {
	rate  float64
	began time.Duration

	mu   sync.Mutex // guards list
	list []entry
}

// add starts a process, and returns a function that kills it.
func (g *group) add(t *testing.T, p part) (kill func()) {
	t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	in, out := io.Pipe()
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := gob.NewDecoder(in); ; {
			var l line
			if lines.Decode(&l) != nil {
				return // the process was killed, maybe while it wrote
			}
			g.mu.Lock()
			g.list = append(g.list, entry{l.Client, l.At - g.began, l.Known - g.began, l.Tokens, l.Kind})
			g.mu.Unlock()
		}
	}()
	process := testkit.StartProcess(t, func(c *exec.Cmd) { c.Stdout = out }, []string{partKey + "=" + string(text)}, os.Args[0])
	kill = sync.OnceFunc(func() {
		process.Kill()
		out.Close()
		<-read
	})
	t.Cleanup(kill)
	return kill
}

func (g *group) all() []entry {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]entry(nil), g.list...)
}
