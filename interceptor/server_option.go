// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/stagger-go/stagger/policy"
)

// ServerOption configures the server interceptors of a [Retrier].
type ServerOption func(*server)

// server has the settings of a server interceptor.
type server struct {
	take    func(ctx context.Context, method string) (release func(), err error) // nil: no call is refused
	highest policy.Criticality                                                   // that callers can claim; "": not read
}

func newServer(options []ServerOption) *server {
	s := new(server)
	for _, o := range options {
		o(s)
	}
	return s
}

// handle runs the handler of a call, unless the call is refused. It returns the trailer of the answer.
func (s *server) handle(ctx context.Context, in *inboundCall, handler func() error) (trailer metadata.MD, err error) {
	if s.take != nil {
		method, _ := grpc.Method(ctx)
		release, err := s.take(ctx, method)
		if err != nil {
			return refusal(ctx, method), err
		}
		if release != nil {
			defer release()
		}
	}
	err = handler()
	return in.trailer(err), err
}
