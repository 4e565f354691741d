// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/defaults"
	"github.com/stagger-go/stagger/internal/frombudget"
	"github.com/stagger-go/stagger/policy"
)

// Option configures a [Retrier].
type Option func(*Retrier) error

// attemptLimit returns the cap on the maxAttempts of policies from any source.
func (r *Retrier) attemptLimit() int { return r.rules.Load().set.Config().MaxAttemptsLimit }

// WithObserver makes the Retrier notify o of calls. It may be given more than once; observers are notified
// in that order. [Retrier.Observe] adds more later.
func WithObserver(o Observer) Option {
	return func(r *Retrier) error {
		r.Observe(o)
		return nil
	}
}

// WithRandom makes random the source of all jitter, for simulations and tests that repeat. It must return numbers in [0, 1), and be
// safe for concurrent use.
func WithRandom(random func() float64) Option {
	return func(r *Retrier) error {
		if random == nil {
			return errors.New("interceptor: WithRandom(nil): must be a function")
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

// WithBudget makes b the budget of that name. It replaces the policy file's. All users of
// b share it, including other Retriers. The name "" means the default
// budget. A Retrier does not close b.
func WithBudget(name string, b budget.Budget) Option {
	return func(r *Retrier) error {
		if name == policy.NoBudget {
			return fmt.Errorf("interceptor: WithBudget(%q): a policy that names it has no budget; give another name", name)
		}
		if b == nil {
			return fmt.Errorf("interceptor: WithBudget(%q, nil): must be a budget; for no limit give budget.Unlimited", name)
		}
		r.budgets.given[name] = frombudget.Budget(b)
		return nil
	}
}

// WithBudgetPerTarget gives each target a budget of that name, instead of the policy file's: newBudget returns it, when a
// call to the target first needs it, and again if it was unused and there were too many. It gets the target in the form of CanonicalTarget, must be
// safe for concurrent use, and must not use the Retrier; nil means that the target's calls get no extra attempt. The name ""
// means the default budget. A Retrier does not close the budgets. Calls in mode OBSERVE have the file's budget.
func WithBudgetPerTarget(name string, newBudget func(target string) budget.Budget) Option {
	return func(r *Retrier) error {
		if name == policy.NoBudget {
			return fmt.Errorf("interceptor: WithBudgetPerTarget(%q): a policy that names it has no budget; give another name", name)
		}
		if newBudget == nil {
			return fmt.Errorf("interceptor: WithBudgetPerTarget(%q, nil): must be a function", name)
		}
		r.budgets.perTarget[name] = newBudget
		return nil
	}
}

// WithMaxReplayBytes limits the bytes that all streams of the Retrier together keep for replay.
// The limit of one stream is grpc.MaxRetryRPCBufferSize, 256 KiB by default. A stream that exceeds
// a limit is committed to its attempt, and keeps nothing. n is at least 0, with which no stream keeps
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

// WithNewReply sets how to make replies for parallel attempts, in cases that stagger can't handle by
// itself: a codec other than protobuf's, or a reply that the application prepares (see the table in docs/hedging.md). Before
// the first attempt of a call, newReply gets the method and the application's reply. It returns a function that
// makes another reply of the same type and is safe for concurrent use, or nil if it can't. The winner's
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

// policyOption has the policy of one call. Like all options of this package it embeds
// grpc.EmptyCallOption, so that it has no effect on a connection without the interceptor.
type policyOption struct {
	grpc.EmptyCallOption

	policy *decision.Policy // nil: one attempt
}

// Policy makes p the policy of one call. It replaces the Retrier's policy for the
// method. If a policy made by [policy.New] doesn't set the idempotency, the
// method's descriptor does. To change only some settings of the policy file's entry, and keep its idempotency,
// use [policy.Policy.Spec]. maxAttempts above the Retrier's limit is cut, with a warning. A
// nil policy means no retries. Make the option once and reuse it: each call of Policy prepares the policy again.
func Policy(p *policy.Policy) grpc.CallOption {
	if p == nil {
		return policyOption{}
	}
	return policyOption{policy: decision.New(p.Spec())}
}

type maxAttemptsOption struct {
	grpc.EmptyCallOption

	n int
}

// MaxAttempts limits one call to n attempts, including the first. It never raises the limits of the policy and the Retrier,
// and all their other settings apply. 1 means no retries and no hedges; less counts as 1,
// with a warning. If given several times, the last applies. For a stream with [Resume], the limit holds between two messages:
// an attempt that delivers a message counts as the first again, so the whole stream may make any number of attempts.
func MaxAttempts(n int) grpc.CallOption { return maxAttemptsOption{n: n} }

type idempotentOption struct{ grpc.EmptyCallOption }

// Idempotent declares one call idempotent: if it has already taken effect, a second effect
// does no harm. It overrides policy and descriptor.
func Idempotent() grpc.CallOption { return idempotentOption{} }

type disableOption struct{ grpc.EmptyCallOption }

// Disable makes one call bypass the Retrier: no policy, no retries, no events, and no deposit in a
// budget. gRPC then behaves as without a Retrier.
func Disable() grpc.CallOption { return disableOption{} }

// insideOption marks the attempts of a Retrier, so that a second one on the same connection ignores
// them: two would multiply their attempts.
type insideOption struct{ grpc.EmptyCallOption }

// Verdict is a classifier's judgment of an attempt's result.
type Verdict uint8

// The verdicts.
const (
	VerdictByCode Verdict = iota // the policy decides by the status code
	VerdictRetry                 // another attempt may help, whatever the code
	VerdictFinal                 // no other attempt can help
)

// WithClassifier lets classify judge the results of attempts: errors whose code is misleading, or
// replies that mean "not yet" (err is nil; VerdictRetry). If such a reply is not
// retried, the caller gets the reply. Idempotency, maxAttempts, deadline and budget are checked afterwards, as always. Without
// a retry policy for the method, classify is not called.
//
// It runs in the call, after every attempt that was not abandoned, and must be safe for concurrent
// use. It must not keep or change reply. reply is nil for streams, for which classify is called only after
// errors, and for an error of an inner interceptor whose attempt gRPC has not ended.
func WithClassifier(classify func(ctx context.Context, method string, reply any, err error) Verdict) Option {
	return func(r *Retrier) error {
		if classify == nil {
			return errors.New("interceptor: WithClassifier(nil): must be a function")
		}
		r.classifier = classify
		return nil
	}
}

// WithDescriptors gives the Retrier the descriptors of APIs whose generated code is not in the program: for proxies, and for clients
// with dynamic messages. They supply the methods' idempotency_level and whether clients send streams. For services in both, they
// override generated code. The option may be given more than once; the first that has a service wins. Package protodesc makes
// files of a google.protobuf.FileDescriptorSet, as written by "buf build -o api.binpb" or protoc --include_imports.
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
	return decision.Descriptors{Files: r.descriptors}.Service(service) != nil
}

// Breaker is a circuit breaker with two steps: permission to send, and a report of the result. examples/breaker adapts
// github.com/sony/gobreaker/v2 in three lines. The methods run under the lock of a call: they must not block, use
// the Retrier or make calls.
type Breaker interface {
	// Allow is called before every attempt. If it returns an error, the attempt is not sent. Otherwise done
	// is called once, with the attempt's error; the breaker decides which errors count as
	// failures of the server.
	Allow() (done func(error), err error)
	// Open reports whether Allow would refuse every attempt now. It is called before the backoff of a retry, so that no call
	// waits in vain.
	Open() bool
}

// WithBreaker asks a circuit breaker before every attempt. find returns the breaker for a target and
// method, or nil for none. It is called once per call, and must be safe for concurrent use. If the first
// attempt is refused, the call ends with UNAVAILABLE, which wraps the breaker's error (errors.Is). If a retry
// is refused, the call ends with its last error. The reason of both is breaker_open.
func WithBreaker(find func(target, method string) Breaker) Option {
	return func(r *Retrier) error {
		if find == nil {
			return errors.New("interceptor: WithBreaker(nil): must be a function that finds a breaker")
		}
		r.breaker = func(target, method string) attempts.Breaker {
			if b := find(target, method); b != nil {
				return twoStep{b}
			}
			return nil
		}
		return nil
	}
}

// twoStep adapts a [Breaker] to the engine.
type twoStep struct{ Breaker }

// Allow implements [attempts.Breaker].
func (b twoStep) Allow() (done func(error), err error) {
	if done, err = b.Breaker.Allow(); err != nil {
		err = &openError{err}
	}
	return done, err
}

// openError is the error of a call whose first attempt a breaker has refused.
type openError struct{ err error }

func (e *openError) Error() string { return e.GRPCStatus().String() }
func (e *openError) Unwrap() error { return e.err }
func (e *openError) GRPCStatus() *status.Status {
	return status.New(codes.Unavailable, "circuit breaker: "+e.err.Error())
}

type keyOption struct {
	grpc.EmptyCallOption

	key string
}

// IdempotencyKey sends key with every attempt of one call, in the header that the policy names or, by default, in
// "idempotency-key". It declares the call idempotent, unless its policy has idempotency NONE. The server must
// recognize by the key that two attempts are one call. Use one key for each operation that must happen once, and the same key
// when the application itself retries. If key is "", a random one is used.
func IdempotencyKey(key string) grpc.CallOption { return keyOption{key: key} }

// keyCounts reports whether a key makes the calls of a policy idempotent. A key of the caller's doesn't override an entry
// that declares its methods unsafe: the server may ignore the key.
func keyCounts(p *decision.Policy) bool {
	return p.IdempotencyKey() != "" || p.Spec().Idempotency != policy.IdempotencyNone
}

// withKey returns the context of a call that sends an idempotency key, and the key, "" if the call sends none. If
// header is "", it uses the default header, provided that the caller has asked for a key. The key is the
// option's, else the one in the caller's metadata, else a new one.
func withKey(ctx context.Context, header string, caller []grpc.CallOption) (_ context.Context, key string) {
	asked := false
	for _, o := range caller {
		if o, ok := unwrapped(o).(keyOption); ok {
			key, asked = o.key, true
		}
	}
	if header == "" && !asked {
		return ctx, ""
	}
	header = cmp.Or(header, defaults.IdempotencyHeader)
	md, ok := metadata.FromOutgoingContext(ctx)
	if own := cmp.Or(md.Get(header)...); key == "" && own != "" {
		return ctx, own
	}
	if !ok {
		md = metadata.MD{}
	}
	key = cmp.Or(key, rand.Text())
	md.Set(header, key)
	return metadata.NewOutgoingContext(ctx, md), key
}

type criticalityKey struct{}

// ContextWithCriticality returns a context whose calls have a criticality: whether they are refused before or after others, if
// their policy has admission: REFUSE. If a call's policy has another one, SHEDDABLE wins, then CRITICAL. An undefined value has
// no effect, with a warning. Servers don't see it.
func ContextWithCriticality(ctx context.Context, c policy.Criticality) context.Context {
	return context.WithValue(ctx, criticalityKey{}, c)
}

// criticality returns the criticality of a call with admission, else "". It is SHEDDABLE if its policy or its context has it, else
// CRITICAL if one of them has it.
func (c *call) criticality() policy.Criticality {
	if !c.policy.Refuses() {
		return ""
	}
	own := c.policy.Criticality()
	switch given, _ := c.ctx.Value(criticalityKey{}).(policy.Criticality); given {
	case policy.CriticalitySheddable:
		return given
	case policy.CriticalityCritical:
		if own != policy.CriticalitySheddable {
			return given
		}
	case policy.CriticalityDefault, "":
	default:
		c.retrier.warnOnce(&wrongCriticality, string(given), strconv.Quote(string(given)))
	}
	return own
}
