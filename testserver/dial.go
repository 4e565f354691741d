// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
)

// Target returns the target for grpc.NewClient, to use with [Server.DialOptions]. It is unique
// for each server. On TCP it is the server's address, such as "127.0.0.1:40123", which other clients can dial as well.
func (s *Server) Target() string {
	if _, ok := s.lis.Addr().(*net.TCPAddr); ok {
		return s.addr()
	}
	return "passthrough:///" + s.addr()
}

// addr returns the address of a server on a network, or the name of one in memory.
func (s *Server) addr() string {
	if s.mem == nil {
		return s.lis.Addr().String()
	}
	return s.name
}

// DialOptions returns the options to reach the server: no encryption, its dialer, and gRPC's default connection
// backoff (1 s, growing by 1.6 up to 120 s) without jitter, so that tests are exact.
func (s *Server) DialOptions() []grpc.DialOption {
	return dialOptions(func(ctx context.Context, _ string) (net.Conn, error) { return s.dial(ctx) })
}

func dialOptions(dial func(context.Context, string) (net.Conn, error)) []grpc.DialOption {
	exact := backoff.DefaultConfig
	exact.Jitter = 0
	return []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(dial),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: exact, MinConnectTimeout: 20 * time.Second}),
	}
}

// Dial returns a new connection to the server, and closes it when the test ends. opts
// follow [Server.DialOptions]. An error in them ends the test.
func (s *Server) Dial(tb testing.TB, opts ...grpc.DialOption) *grpc.ClientConn {
	tb.Helper()
	conn, err := grpc.NewClient(s.Target(), append(s.DialOptions(), opts...)...)
	return closedByTest(tb, conn, err)
}

func closedByTest(tb testing.TB, conn *grpc.ClientConn, err error) *grpc.ClientConn {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.Close() })
	return conn
}

// DialAll returns one connection to several servers, each with its own address, with the
// round_robin load balancer. opts follow these options, so a default service config in
// opts replaces round_robin and should name it again. The caller closes the connection.
func DialAll(servers []*Server, opts ...grpc.DialOption) (*grpc.ClientConn, error) {
	if len(servers) == 0 {
		return nil, errors.New("testserver: DialAll without servers: want at least one")
	}
	byAddr := map[string]*Server{}
	var addrs []resolver.Address
	for _, s := range servers {
		if byAddr[s.addr()] != nil {
			return nil, fmt.Errorf("testserver: DialAll: two servers named %q: want one name each", s.addr())
		}
		byAddr[s.addr()] = s
		addrs = append(addrs, resolver.Address{Addr: s.addr()})
	}
	fixed := manual.NewBuilderWithScheme("testserver")
	fixed.InitialState(resolver.State{Addresses: addrs})
	all := append(dialOptions(func(ctx context.Context, addr string) (net.Conn, error) { return byAddr[addr].dial(ctx) }),
		grpc.WithResolvers(fixed),
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"round_robin": {}}]}`))
	return grpc.NewClient("testserver:///"+target(servers), append(all, opts...)...)
}

func target(servers []*Server) string {
	names := make([]string, len(servers))
	for i, s := range servers {
		names[i] = s.addr()
	}
	return strings.Join(names, ",")
}
