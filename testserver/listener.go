// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testserver

import (
	"net"
	"sync"
)

// listener keeps its open connections, so that they can be cut.
type listener struct {
	net.Listener
	mu       sync.Mutex
	down     bool
	accepted int
	open     map[*connection]struct{}
}

// Accept waits for the next connection. While the server is down, it cuts new connections.
func (l *listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c := l.adopt(conn); c != nil {
			return c, nil
		}
		_ = conn.Close()
	}
}

func (l *listener) adopt(conn net.Conn) *connection {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		return nil
	}
	l.accepted++
	c := &connection{Conn: conn, id: l.accepted, listener: l}
	l.open[c] = struct{}{}
	return c
}

func (l *listener) isDown() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.down
}

func (l *listener) setDown(down bool) {
	l.mu.Lock()
	l.down = down
	var cut []*connection
	if down {
		for c := range l.open {
			cut = append(cut, c)
		}
	}
	l.mu.Unlock()
	for _, c := range cut {
		_ = c.Close()
	}
}

func (l *listener) forget(c *connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, c)
}
