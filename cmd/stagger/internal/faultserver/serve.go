// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"context"
	"errors"
	"net"
	"net/netip"

	"github.com/stagger-go/stagger/cmd/stagger/internal/cli"
	"github.com/stagger-go/stagger/cmd/stagger/internal/control"
	"github.com/stagger-go/stagger/testserver"
)

// serve serves until ctx is done, and takes over lis.
func serve(ctx context.Context, lis net.Listener, log *attemptLog, settings control.Settings, keep int) error {
	srv, err := control.New(settings, testserver.Listener(lis), testserver.Keep(keep), testserver.Observe(log.add))
	if err != nil {
		return errors.Join(err, log.end())
	}
	<-ctx.Done()
	srv.Close()
	return log.end()
}

// listen listens on an address that only this machine reaches, or with remote on any.
func listen(ctx context.Context, address string, remote bool) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, cli.UsageErrorf("--listen %q: must be host:port, such as 127.0.0.1:50051", address)
	}
	if !remote {
		if host, err = loopback(ctx, host); err != nil {
			return nil, err
		}
		if host == "" {
			return nil, cli.UsageErrorf("--listen %s: other machines can reach it, and tell it what to do: "+
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
		return "", cli.UsageErrorf("--listen %s: %w", host, err)
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
