// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"context"
	"net"
	"net/netip"

	"github.com/stagger-go/stagger/cmd/stagger/internal/misuse"
)

// listen listens on an address that only this machine reaches, or with remote on any.
func listen(ctx context.Context, address string, remote bool) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, misuse.Errorf("--listen %q: must be host:port, such as 127.0.0.1:50051", address)
	}
	if !remote {
		if host, err = loopback(ctx, host); err != nil {
			return nil, err
		}
		if host == "" {
			return nil, misuse.Errorf("--listen %s: other machines can reach it, and tell it what to do: "+
				"must be 127.0.0.1, [::1] or localhost, or --allow-remote must be given", address)
		}
	}
	var config net.ListenConfig
	return config.Listen(ctx, "tcp", net.JoinHostPort(host, port))
}

// loopback is the first address of a host that has no others than of this machine alone; "" for all others.
func loopback(ctx context.Context, host string) (string, error) {
	if host == "" {
		return "", nil // every address of the machine
	}
	addresses, err := new(net.Resolver).LookupNetIP(ctx, "ip", host)
	if err != nil {
		return "", misuse.Errorf("--listen %s: %w", host, err)
	}
	var first netip.Addr
	for i, a := range addresses {
		if !a.Unmap().IsLoopback() {
			return "", nil
		}
		if a = a.Unmap(); i == 0 || a.Is4() && !first.Is4() {
			first = a
		}
	}
	return first.String(), nil
}
