// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"errors"
	"fmt"

	"google.golang.org/grpc/stats"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/inside"
	"github.com/stagger-go/stagger/internal/lease"
	"github.com/stagger-go/stagger/policy"
)

// Option configures a [Retrier].
type Option func(*Retrier) error

// attemptLimit is the cap over the policies' maxAttempts, whatever source they come from.
func (r *Retrier) attemptLimit() int { return r.rules.Load().set.Config().MaxAttemptsLimit }

// WithObserver tells o what happens to calls. It may be given more than once; observers are told
// in the order in which they were given. [Retrier.Observe] adds more later.
func WithObserver(o Observer) Option {
	return func(r *Retrier) error {
		r.Observe(o)
		return nil
	}
}

// WithStatsHandler has [Retrier.DialOptions] give h to gRPC too, which tells it of every attempt. In the contexts that
// it sees, [AttemptFromContext] says which one.
func WithStatsHandler(h stats.Handler) Option {
	return func(r *Retrier) error {
		if h == nil {
			return errors.New("interceptor: WithStatsHandler(nil): must be a handler")
		}
		r.stats = append(r.stats, h)
		return nil
	}
}

// WithBudget makes b the budget of that name, in place of one that the policy file describes; its
// scope is whoever else was given b, another Retrier too. The name "" stands for the default
// budget. A Retrier does not close b.
func WithBudget(name string, b budget.Budget) Option {
	return func(r *Retrier) error {
		if name == policy.NoBudget {
			return fmt.Errorf("interceptor: WithBudget(%q): a policy that names it has no budget; give another name", name)
		}
		if b == nil {
			return fmt.Errorf("interceptor: WithBudget(%q, nil): must be a budget; for no limit give budget.Unlimited", name)
		}
		r.budgets.given[name] = inside.Budget(b)
		return nil
	}
}

// WithFleet says where the pools are that a policy file's ratio budgets name (fleet): module budget/redisbudget has
// them on Redis. The Retrier asks in the background, until it is closed. That a pool cannot be used any more is a
// warning, and that it can again a note ([Observer]); [Retrier.State] says more.
func WithFleet(f budget.Fleet) Option {
	return func(r *Retrier) error {
		if f == nil {
			return errors.New("interceptor: WithFleet(nil): must be a fleet; for no pool leave the option out")
		}
		r.budgets.pools = lease.NewPools(f, r.notePool)
		return nil
	}
}

// WithMaxReplayBytes sets how much all streams of the Retrier together may keep for replay, in bytes.
// What one stream may keep is grpc.MaxRetryRPCBufferSize, 256 KiB by default. A stream that goes over
// a bound is committed to its attempt, and keeps nothing. n is at least 0, which lets no stream keep
// anything; the default is 16 MiB.
func WithMaxReplayBytes(n int64) Option {
	return func(r *Retrier) error {
		if n < 0 {
			return fmt.Errorf("interceptor: WithMaxReplayBytes(%d): must be at least 0", n)
		}
		r.maxReplayed = n
		return nil
	}
}

// WithNewReply declares how replies are made for attempts that run in parallel, where stagger doesn't know that by
// itself: a codec that isn't protobuf's, a reply that the application prepares. docs/hedging.md has the table. Before
// the first attempt of a call, newReply is given the method and the application's reply. It returns a function that
// makes another one of the same type, and may be called by several goroutines; or nil, if it knows of none. The winner's
// reply is copied over the application's, as by an assignment.
func WithNewReply(newReply func(method string, reply any) func() any) Option {
	return func(r *Retrier) error {
		if newReply == nil {
			return errors.New("interceptor: WithNewReply(nil): must be a function")
		}
		r.newReply = newReply
		return nil
	}
}

// WithRandom makes random the source of all jitter: uniform in [0, 1), and safe for concurrent use.
// The default is rand.Float64 of math/rand/v2. For tests and simulations that must repeat.
func WithRandom(random func() float64) Option {
	return func(r *Retrier) error {
		if random == nil {
			return errors.New("interceptor: WithRandom(nil): must be a function")
		}
		r.random = random
		return nil
	}
}
