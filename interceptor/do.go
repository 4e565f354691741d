// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// Do runs f as a call of a method, "/service/method", that isn't a gRPC call of a connection with this Retrier: a call of connect-go, an HTTP
// request, or a query of a database. The method's policy, the budget, the circuit breaker, the reasons, logs and metrics are those of gRPC
// calls. So are the rules: f runs again only if the method is declared idempotent, since each of its errors may come from a server that has
// done the work.
//
// Do returns the error of the last run of f, in an [*Error]. By default, f's errors must have a gRPC status (status.FromError), and any other
// error is final: [StatusOf] gives errors a status. [Target] names what f calls; by default, that is the method's service.
//
// f gets a context for each attempt. It has the attempt's number ([AttemptFromContext]) and, in its outgoing gRPC metadata, the idempotency
// key. Attempts never run in parallel: perAttemptTimeout cancels the context of f, and the next attempt begins when f has returned. A
// hedgingPolicy sends an attempt only after one that has failed. So f must return when its context is done: Do returns after f has.
//
// Do returns an error without running f if f is nil, if method isn't a full name, or for an option that only gRPC can carry out: Header,
// Trailer, Peer, OnFinish and [Resume].
func (r *Retrier) Do(ctx context.Context, method string, f func(ctx context.Context) error, opts ...grpc.CallOption) error {
	switch {
	case f == nil:
		return errors.New("interceptor: Do: the function is nil")
	case !isFullMethod(method):
		return fmt.Errorf(`interceptor: Do: method %q: must be a full name, such as "/acme.orders.v1.OrderService/GetOrder"`, method)
	}
	if !r.made() {
		return f(ctx)
	}
	var u unary
	u.retrier, u.method, u.inSequence = r, method, true
	target := serviceOf(method)
	var statusOf func(error) *status.Status
	for _, o := range opts {
		switch o := o.(type) {
		case targetOption:
			target = o.name
		case statusOption:
			statusOf = o.of
		case grpc.OnFinishCallOption, resumeOption:
			return errOnlyGRPC(o)
		}
		if targetOf(o) != nil {
			return errOnlyGRPC(o)
		}
	}
	u.invoke = func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, options ...grpc.CallOption) error {
		err := withStatus(f(ctx), statusOf)
		endAsGRPC(err, options)
		return err
	}
	options := newAttemptOptions(r.observers.Load().ofCalls)
	u.readRequest(target, opts, options)
	if u.flags&disabled != 0 {
		return f(ctx)
	}
	u.notifyStart(ctx)
	return u.run(options)
}

func errOnlyGRPC(o grpc.CallOption) error {
	return fmt.Errorf("interceptor: Do: option %T: only a gRPC call can have it", o)
}

// endAsGRPC ends an attempt as gRPC ends one that a server has seen: it writes a trailer, and calls OnFinish.
func endAsGRPC(err error, options []grpc.CallOption) {
	for _, o := range options {
		switch o := o.(type) {
		case grpc.TrailerCallOption:
			*o.TrailerAddr = metadata.MD{}
		case grpc.OnFinishCallOption:
			o.OnFinish(err)
		}
	}
}

// statusedError is the error of a function to which StatusOf has given a status.
type statusedError struct {
	error

	st *status.Status
}

func (e *statusedError) GRPCStatus() *status.Status { return e.st }
func (e *statusedError) Unwrap() error              { return e.error }

func withStatus(err error, of func(error) *status.Status) error {
	if err == nil || of == nil {
		return err
	}
	if st := of(err); st != nil {
		return &statusedError{err, st}
	}
	return err
}

type targetOption struct {
	grpc.EmptyCallOption

	name string
}

// Target names what the function of a [Retrier.Do] calls, such as "inventory" or a host. All calls to one target share its budget and its
// circuit breaker, so give each dependency its own name. It has no effect on gRPC calls, whose connection has a target.
func Target(name string) grpc.CallOption { return targetOption{name: name} }

type statusOption struct {
	grpc.EmptyCallOption

	of func(error) *status.Status
}

// StatusOf gives the errors of a [Retrier.Do]'s function a gRPC status, by which the policy decides: HTTP's 503 may become UNAVAILABLE. A
// RetryInfo in the status's details is the delay that the server asks for. A nil status leaves an error as it is. The classifier of
// [WithClassifier] is asked afterwards, with an error that wraps f's. StatusOf has no effect on gRPC calls.
func StatusOf(of func(error) *status.Status) grpc.CallOption { return statusOption{of: of} }
