// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package redisfleet

import (
	"context"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stagger-go/stagger/internal/testkit"
)

// required skips a test of a real Redis unless `make redis` runs it.
func required(t *testing.T) {
	t.Helper()
	if os.Getenv("STAGGER_REDIS") == "" {
		t.Skip("it needs redis-server, and a minute and a half in all; `make redis` installs that and runs it")
	}
}

// server is a real Redis on loopback, without persistence.
type server struct {
	*testkit.Process

	addr string
	args []string
}

func newServer(t *testing.T, args ...string) *server {
	t.Helper()
	port := strconv.Itoa(testkit.Port(t))
	s := &server{addr: "127.0.0.1:" + port, args: append([]string{"--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no"}, args...)}
	s.start(t)
	return s
}

// start starts it, on the same port after a kill.
func (s *server) start(t *testing.T) {
	t.Helper()
	s.Process = testkit.StartProcess(t, nil, nil, "redis-server", s.args...)
	client := s.client(t)
	until(t, "Redis starts", func() bool { return client.Ping(t.Context()).Err() == nil })
}

func (s *server) client(t *testing.T) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: s.addr, MaxRetries: -1, ContextTimeoutEnabled: true})
	t.Cleanup(func() { c.Close() })
	return c
}

// proxy is between clients and a Redis, which may be replaced, and may be slow.
type proxy struct {
	lis    net.Listener
	target atomic.Pointer[string]
	delay  atomic.Int64 // of Redis's answers
	wg     sync.WaitGroup

	mu    sync.Mutex // guards conns
	conns map[net.Conn]bool
}

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{lis: lis, conns: map[net.Conn]bool{}}
	p.target.Store(&target)
	p.wg.Go(func() {
		for {
			conn, err := lis.Accept()
			if err != nil {
				return
			}
			p.wg.Go(func() { p.serve(conn) })
		}
	})
	t.Cleanup(func() {
		lis.Close()
		p.cut()
		p.wg.Wait()
	})
	return p
}

// to connects clients to another Redis.
func (p *proxy) to(target string) {
	p.target.Store(&target)
	p.cut()
}

// cut closes all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
}

func (p *proxy) keep(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		p.conns[c] = true
	}
}

func (p *proxy) serve(client net.Conn) {
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	server, err := new(net.Dialer).DialContext(ctx, "tcp", *p.target.Load())
	if err != nil {
		return
	}
	defer server.Close()
	p.keep(client, server)
	p.wg.Go(func() {
		_, _ = io.Copy(server, client)
		server.Close()
	})
	buffer := make([]byte, 4096)
	for {
		n, err := server.Read(buffer)
		if err != nil {
			return
		}
		pass(time.Duration(p.delay.Load()))
		if _, err := client.Write(buffer[:n]); err != nil {
			return
		}
	}
}
