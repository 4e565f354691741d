// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"google.golang.org/grpc"
	_ "google.golang.org/grpc/encoding/gzip" // clients compress as they like
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	reflectionv1alpha "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"

	"github.com/stagger-go/stagger/cmd/stagger/internal/cli"
	"github.com/stagger-go/stagger/testserver"
)

// start starts a test server that a control tells what to do, with gRPC's health and reflection services.
func (c *control) start(opts ...testserver.Option) (*testserver.Server, error) {
	return testserver.New(append(opts,
		testserver.Register(c.register),
		testserver.Observe(c.observe),
		testserver.Prepare(func(s *testserver.Server) error {
			c.server = s
			return c.restore()
		}))...)
}

func (c *control) register(to grpc.ServiceRegistrar) {
	healthv1.RegisterHealthServer(to, health.NewServer())
	shown := names(slices.Concat(own, c.known.services))
	options := reflection.ServerOptions{Services: shown, DescriptorResolver: c.known}
	reflectionv1.RegisterServerReflectionServer(to, reflection.NewServerV1(options))
	reflectionv1alpha.RegisterServerReflectionServer(to, reflection.NewServer(options)) // for clients that know no other
}

// names are services of which no more is known than what they are called.
type names []string

// GetServiceInfo implements reflection.ServiceInfoProvider.
func (n names) GetServiceInfo() map[string]grpc.ServiceInfo {
	all := map[string]grpc.ServiceInfo{}
	for _, name := range n {
		all[name] = grpc.ServiceInfo{}
	}
	return all
}

// serve serves until ctx is done.
func (s settings) serve(ctx context.Context, c *control, out io.Writer) error {
	calls, err := listen(ctx, "--listen", s.listen, s.remote)
	if err != nil {
		return err
	}
	defer func() { _ = calls.Close() }() // the second time if it was served on
	where := addresses{Listening: calls.Addr().String()}
	var requests net.Listener
	if s.control != "" {
		if requests, err = listen(ctx, "--control", s.control, s.remote); err != nil {
			return err
		}
		defer func() { _ = requests.Close() }()
		where.Control = "http://" + requests.Addr().String()
	}
	log, err := newAttemptLog(out, s.format, where)
	if err != nil {
		return err
	}
	server, err := c.start(testserver.Listener(calls), testserver.Keep(s.keep), testserver.Observe(log.add))
	if err != nil {
		return errors.Join(err, log.end())
	}
	if requests != nil {
		web := &http.Server{Handler: c.handler(), ReadHeaderTimeout: time.Minute}
		context.AfterFunc(ctx, func() { _ = web.Close() })
		_ = web.Serve(requests) // ends when it is closed
	}
	<-ctx.Done()
	server.Close()
	return log.end()
}

// listen listens on an address that only this machine reaches, or with remote on any.
func listen(ctx context.Context, flag, address string, remote bool) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, cli.UsageErrorf("%s %q: must be host:port, such as 127.0.0.1:50051", flag, address)
	}
	if !remote {
		if host, err = loopback(ctx, host); err != nil {
			return nil, cli.UsageErrorf("%s %s: %w", flag, address, err)
		}
		if host == "" {
			return nil, cli.UsageErrorf("%s %s: other machines can reach it: "+
				"must be 127.0.0.1, [::1] or localhost, or --allow-remote must be given", flag, address)
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
		return "", err
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
