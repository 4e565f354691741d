// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/methods"
)

// Option configures a [Retrier]. It is a function, so that a package such as otelstagger can combine several options into one.
type Option func(*Retrier) error

// WithObserver makes the Retrier notify o of calls. You can give it more than once: observers are notified in that order. An observer
// without any function is an error, because it most likely comes from a nil logger.
func WithObserver(o Observer) Option {
	return func(r *Retrier) error {
		if o.deaf() {
			return errors.New("interceptor: WithObserver: the observer has no function, as that of observe.Slog(nil): " +
				"must have at least one, since it would hear of nothing")
		}
		r.AddObserver(o)
		return nil
	}
}

// WithRandom makes random the source of all jitter, for tests and simulations that repeat. It must return numbers in [0, 1), and be safe for
// concurrent use.
func WithRandom(random func() float64) Option {
	return func(r *Retrier) error {
		if random == nil {
			return errors.New("interceptor: WithRandom(nil): must be a function that returns numbers in [0, 1)")
		}
		r.random = random
		return nil
	}
}

// WithStatsHandler makes [Retrier.DialOptions] pass h to gRPC, which notifies it of every attempt. [AttemptFromContext]
// returns the attempt's number.
func WithStatsHandler(h stats.Handler) Option {
	return func(r *Retrier) error {
		if h == nil {
			return errors.New("interceptor: WithStatsHandler(nil): must be a handler")
		}
		r.stats = append(r.stats, h)
		return nil
	}
}

// WithBudget gives each target a budget of that name, instead of the policy file's. The Retrier calls budgetOf when a call to the target
// first needs the budget, and again if it has dropped an unused budget because there were too many. budgetOf may return the same budget for
// all targets, and for other Retriers. It gets the target in the form of CanonicalTarget, must be safe for concurrent use, and must not use
// the Retrier. If it returns nil, the target's calls get no extra attempts. The name "" means the default budget. A Retrier does not close
// the budgets. Calls in mode OBSERVE use the policy file's budget.
func WithBudget(name string, budgetOf func(target string) budget.Budget) Option {
	return func(r *Retrier) error {
		if name == "NONE" {
			return fmt.Errorf("interceptor: WithBudget(%q): a policy that names it has no budget; give another name", name)
		}
		if budgetOf == nil {
			return fmt.Errorf("interceptor: WithBudget(%q, nil): must be a function; for no limit return budget.Unlimited", name)
		}
		if r.budgets.Given == nil { // the option of a Retrier that New doesn't make
			r.budgets.Given = map[string]func(string) budget.Budget{}
		}
		r.budgets.Given[name] = budgetOf
		return nil
	}
}

// WithMaxReplayBytes limits the bytes that all streams of the Retrier together keep for replay. The limit of one stream is
// grpc.MaxRetryRPCBufferSize, 256 KiB by default. A stream that exceeds a limit is committed to its attempt, and keeps nothing. n must be
// at least 0. With 0, no stream keeps anything. The default is 16 MiB.
func WithMaxReplayBytes(n int64) Option {
	return func(r *Retrier) error {
		if n < 0 {
			return fmt.Errorf("interceptor: WithMaxReplayBytes(%d): must be at least 0", n)
		}
		r.maxReplayed = n
		return nil
	}
}

// Descriptors returns the descriptors that [WithDescriptors] has given, in addition to those of generated code in the program. It is safe for
// concurrent use.
func (r *Retrier) Descriptors() []*protoregistry.Files { return slices.Clone(r.descriptors) }

// WithDescriptors gives the Retrier the descriptors of APIs whose generated code is not in the program: for proxies, and for clients with
// dynamic messages. They supply the methods' idempotency_level, and say which methods have client streams. For services in both, they
// override generated code. You can give the option more than once: the first one that has a service wins. Package protodesc makes files of
// a google.protobuf.FileDescriptorSet, as written by "buf build -o api.binpb" or protoc --include_imports.
func WithDescriptors(files *protoregistry.Files) Option {
	return func(r *Retrier) error {
		if files == nil {
			return errors.New("interceptor: WithDescriptors(nil): must be the files of a descriptor set")
		}
		r.descriptors = append(r.descriptors, files)
		return nil
	}
}

// described reports whether generated code or a descriptor set has a service.
func (r *Retrier) described(service string) bool {
	return methods.Descriptors{Files: r.descriptors}.Service(service) != nil
}

// Gate is a circuit breaker: it decides for each attempt of a call whether it may be sent, and learns how it ended. examples/breaker adapts
// github.com/sony/gobreaker/v2 in ten lines. Both methods get the call's context, with its deadline, and the attempt's number, 1 for the
// first. They run under the lock of a call: they must not block, use the Retrier or make calls.
type Gate interface {
	// Open returns nil if Allow would let the attempt pass now, otherwise an error. It is called before the wait for a retry, so that no
	// call waits in vain, and before a slow attempt is cancelled for the next one. It must reserve nothing, because the attempt may never
	// be sent.
	Open(ctx context.Context, attempt int) error
	// Allow is called when an attempt is sent, the first included. If it returns an error, the attempt is not sent. Otherwise done is
	// called once, when the attempt has ended, with its error; a nil done is not called. The gate decides which errors count as failures of
	// the server: those that wrap [ErrLocal] never should. Allow is not called for a call whose deadline has passed before it starts.
	Allow(ctx context.Context, attempt int) (done func(error), err error)
}

// ErrLocal marks errors that don't come from the server. A [Gate] gets errors that wrap it for attempts that failed because of this
// client's size limits, codecs, credentials or inner interceptors, or that panicked. Their status is unchanged. A failure to connect
// doesn't wrap ErrLocal, because it says that the server can't be reached. An inner interceptor must pass on its call options: they show
// that gRPC has made the attempt. Errors of calls never wrap ErrLocal.
var ErrLocal = attempts.ErrLocal

// WithBreaker asks a circuit breaker before every attempt. find returns the breaker for a target and method, or nil for none. It is called
// once per call, and must be safe for concurrent use. If the first attempt is refused, the call ends with UNAVAILABLE, which wraps the
// breaker's error (errors.Is). If a retry is refused, the call ends with its last error. The reason of both is breaker_open.
func WithBreaker(find func(target, method string) Gate) Option {
	return func(r *Retrier) error {
		if find == nil {
			return errors.New("interceptor: WithBreaker(nil): must be a function that finds a breaker")
		}
		r.breaker = find
		return nil
	}
}

// callGate is a [Gate] for one call.
type callGate struct {
	gate Gate
	ctx  context.Context
}

var _ attempts.Gate = (*callGate)(nil)

// Open implements [attempts.Gate].
func (g *callGate) Open(attempt int) error { return g.gate.Open(g.ctx, attempt) }

// Allow implements [attempts.Gate].
func (g *callGate) Allow(attempt int) (done func(error), err error) {
	done, err = g.gate.Allow(g.ctx, attempt)
	if err != nil {
		return nil, &openError{err} // a done that wraps the gate's may wrap nil
	}
	return done, nil
}

// openError is the error of a call whose first attempt a breaker has refused.
type openError struct{ err error }

func (e *openError) Error() string { return e.GRPCStatus().String() }
func (e *openError) Unwrap() error { return e.err }
func (e *openError) GRPCStatus() *status.Status {
	return status.New(codes.Unavailable, "circuit breaker: "+e.err.Error())
}
