// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package redisbudget_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/budget/redisbudget"
)

// lossy loses the connection after Redis has run a script, before its answer is read.
type lossy struct {
	net.Conn

	scripts *atomic.Int64 // that Redis has received, over all connections
	asked   atomic.Bool
}

func (l *lossy) Write(p []byte) (int, error) {
	if bytes.Contains(bytes.ToLower(p), []byte("\r\nevalsha\r\n")) {
		l.scripts.Add(1)
		l.asked.Store(true)
	}
	return l.Conn.Write(p)
}

func (l *lossy) Read(p []byte) (int, error) {
	n, err := l.Conn.Read(p)
	if l.asked.Load() && err == nil {
		l.Close()
		return 0, io.EOF
	}
	return n, err
}

// No kind of client repeats a request that may have been granted.
func TestFleet_AsksOnce(t *testing.T) {
	t.Parallel()
	type dial = func(context.Context, string, string) (net.Conn, error)
	for name, open := range map[string]func(addr string, dial dial) redis.UniversalClient{
		"a client": func(addr string, dial dial) redis.UniversalClient {
			return redis.NewClient(&redis.Options{Addr: addr, Dialer: dial, ContextTimeoutEnabled: true})
		},
		"a cluster": func(addr string, dial dial) redis.UniversalClient {
			return redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{addr}, Dialer: dial, ContextTimeoutEnabled: true})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scripts := new(atomic.Int64)
			client := open(miniredis.RunT(t).Addr(), func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := new(net.Dialer).DialContext(ctx, network, addr)
				return &lossy{Conn: conn, scripts: scripts}, err
			})
			defer client.Close()
			fleet, err := redisbudget.New(client)
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = fleet.Draw(t.Context(), budget.PoolRequest{Pool: "orders", PerSecond: 100})
			if got := scripts.Load(); err == nil || got != 1 {
				t.Errorf("%d scripts were sent for a request that ended with %v", got, err)
			}
		})
	}
}
