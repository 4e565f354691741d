// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package otelstagger

import (
	"fmt"
	"net"
	"testing"
)

func TestTracesPeer(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		addr net.Addr
		want string
	}{
		{nil, "[]"},
		{&net.TCPAddr{IP: net.IPv4(10, 0, 0, 7), Port: 443}, "[{network.peer.address 10.0.0.7} {network.peer.port 443}]"},
		{&net.TCPAddr{IP: net.ParseIP("2001:db8::7"), Port: 443}, "[{network.peer.address 2001:db8::7} {network.peer.port 443}]"},
		{&net.UnixAddr{Name: "/run/orders.sock", Net: "unix"}, "[{network.peer.address /run/orders.sock}]"},
	} {
		var got []string
		for _, kv := range peer(row.addr) {
			got = append(got, fmt.Sprintf("{%s %v}", kv.Key, kv.Value.AsInterface()))
		}
		if fmt.Sprint(got) != row.want {
			t.Errorf("%v: %s; want %s", row.addr, got, row.want)
		}
	}
}

func TestTracesServer(t *testing.T) {
	t.Parallel()
	for target, want := range map[string]string{
		"dns:///orders:50051":              "[{server.address orders} {server.port 50051}]",
		"dns://1.1.1.1/orders:50051":       "[{server.address orders} {server.port 50051}]",
		"dns:///orders":                    "[{server.address orders}]",
		"passthrough:///[2001:db8::7]:443": "[{server.address 2001:db8::7} {server.port 443}]",
		"unix:///run/orders.sock":          "[{server.address /run/orders.sock}]",
		"unix:run/orders.sock":             "[{server.address run/orders.sock}]",
		"xds:///orders.acme.example":       "[{server.address orders.acme.example}]",
	} {
		var got []string
		for _, kv := range server(target) {
			got = append(got, fmt.Sprintf("{%s %v}", kv.Key, kv.Value.AsInterface()))
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%v: %s; want %s", target, got, want)
		}
	}
}
