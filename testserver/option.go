// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testserver

import (
	"errors"
	"fmt"
	"net"

	"google.golang.org/grpc"
)

// Option is a setting of a new server.
type Option struct{ apply func(*settings) error }

type settings struct {
	listener net.Listener // nil: in memory
	keep     int
	observe  []func(Attempt)
	server   []grpc.ServerOption
	register []func(grpc.ServiceRegistrar)
}

// Listener makes the server accept connections from lis instead of in memory: of net.Listen("tcp", "127.0.0.1:0"), for clients in
// other processes. The server closes lis.
func Listener(lis net.Listener) Option {
	return Option{func(c *settings) error {
		if lis == nil {
			return errors.New("testserver: Listener(nil): want a listener")
		}
		if c.listener != nil {
			return errors.Join(errors.New("testserver: more than one Listener: want one"), lis.Close())
		}
		c.listener = lis
		return nil
	}}
}

// Keep limits the record to the last n attempts. By default, all are kept. With 0, none are kept, which makes calls cheaper under load.
// [Server.Count] always counts every attempt.
func Keep(n int) Option {
	return Option{func(c *settings) error {
		if n < 0 {
			return fmt.Errorf("testserver: Keep(%d): want 0 or more", n)
		}
		c.keep = n
		return nil
	}}
}

// Observe calls f with every attempt when it begins, before its messages are received, and again when it has ended, with End set.
// Both calls come from the attempt's own goroutine: the attempt goes on when f returns, and only then does the client learn its end.
// f must be safe for concurrent use. With several Observe options, all are called, in their order.
func Observe(f func(Attempt)) Option {
	return Option{func(c *settings) error {
		if f == nil {
			return errors.New("testserver: Observe(nil): want a function")
		}
		c.observe = append(c.observe, f)
		return nil
	}}
}

// ServerOptions adds options of the gRPC server: limits, keepalive, credentials, interceptors.
// For scripted methods of all kinds, only stream interceptors run. The testserver itself sets the codec, the handler of
// unknown services and grpc.WaitForHandlers.
func ServerOptions(opts ...grpc.ServerOption) Option {
	return Option{func(c *settings) error {
		c.server = append(c.server, opts...)
		return nil
	}}
}

// Register adds real services. Their methods are neither scripted nor recorded.
func Register(register func(grpc.ServiceRegistrar)) Option {
	return Option{func(c *settings) error {
		if register == nil {
			return errors.New("testserver: Register(nil): want a function")
		}
		c.register = append(c.register, register)
		return nil
	}}
}
