// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package clients

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// relay forwards TCP connections to a server, and what the server sends arrives some time later. When it is cut, its connections
// break, and what was under way to the clients is lost, as when a machine loses its power.
type relay struct {
	target string

	mu    sync.Mutex
	conns map[net.Conn]bool
	done  bool
}

// newRelay starts a relay to an address. It stops at the end of the test.
func newRelay(t *testing.T, address string, latency time.Duration) *relay {
	t.Helper()
	lis := listen(t)
	r := &relay{target: lis.Addr().String(), conns: map[net.Conn]bool{}}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			client, err := lis.Accept()
			if err != nil {
				return
			}
			running.Go(func() { r.serve(t.Context(), client, address, latency) })
		}
	})
	t.Cleanup(func() {
		_ = lis.Close() // Accept says so
		r.mu.Lock()
		r.done = true
		r.mu.Unlock()
		r.cut()
		running.Wait()
	})
	return r
}

// cut breaks all connections.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.conns {
		_ = c.Close() // both directions see it
	}
}

// keep has cut break the connections, and reports whether they may be used.
func (r *relay) keep(conns ...net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range conns {
		r.conns[c] = true
	}
	return !r.done
}

func (r *relay) forget(conns ...net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range conns {
		_ = c.Close() // it may be closed already
		delete(r.conns, c)
	}
}

// serve forwards one connection until one end of it closes.
func (r *relay) serve(ctx context.Context, client net.Conn, address string, latency time.Duration) {
	server, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		_ = client.Close() // the server is down, and so is the relay
		return
	}
	defer r.forget(client, server)
	if !r.keep(client, server) {
		return
	}
	type chunk struct {
		due   time.Time
		bytes []byte
	}
	late := make(chan chunk, 1024)
	var up sync.WaitGroup
	up.Go(func() {
		_, _ = io.Copy(server, client) // its error is the end of the connection
		_ = server.Close()
	})
	up.Go(func() {
		defer client.Close()
		for c := range late {
			time.Sleep(time.Until(c.due))
			if _, err := client.Write(c.bytes); err != nil {
				break
			}
		}
		for range late { // until the server's end
		}
	})
	for {
		b := make([]byte, 32<<10)
		n, err := server.Read(b)
		if n > 0 {
			late <- chunk{time.Now().Add(latency), b[:n]}
		}
		if err != nil {
			break
		}
	}
	close(late)
	up.Wait()
}
