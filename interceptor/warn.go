// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/stagger-go/stagger/internal/hooks/admitting"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/policyfile/document"
	"github.com/stagger-go/stagger/policy"
)

// surprise is a warning about calls. It is given once per key.
type surprise struct {
	field string
	text  string // a format
}

// maxWarnings bounds the memory that users can make warnings of a kind use.
const maxWarnings = 100

// once records the warnings that the Retrier has given, at most [maxWarnings] of a kind. A proxy's callers choose names of methods and
// targets. Since each kind has its own limit, their names can't suppress the warnings of other kinds.
type once struct {
	mu    sync.Mutex // guards count, and what is added to seen
	seen  sync.Map   // of givenWarning; calls read it without the lock
	count map[*surprise]int
}

type givenWarning struct {
	what *surprise
	key  string
}

// first reports whether a warning is to be given, or is the one that says that no more of its kind are.
func (o *once) first(what *surprise, key string) (first, filled bool) {
	given := givenWarning{what, key}
	if _, seen := o.seen.Load(given); seen {
		return false, false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, seen := o.seen.Load(given); seen || o.count[what] >= maxWarnings {
		return false, false
	}
	if o.count == nil {
		o.count = map[*surprise]int{}
	}
	o.count[what]++
	o.seen.Store(given, true)
	return o.count[what] < maxWarnings, o.count[what] == maxWarnings
}

// warnOnce gives a warning, unless it was given with this key before.
func (r *Retrier) warnOnce(what *surprise, key, value string, args ...any) {
	r.giveOnce(what, key, func() policy.Diagnostic {
		return policy.Diagnostic{Field: what.field, Value: value, Message: fmt.Sprintf(what.text, args...)}
	})
}

// giveOnce gives a warning, unless it was given with this key before. The last one of a kind says
// that no more come.
func (r *Retrier) giveOnce(what *surprise, key string, warning func() policy.Diagnostic) {
	first, filled := r.warned.first(what, key)
	switch {
	case first:
		r.warn(warning())
	case filled:
		d := warning()
		d.Value = ""
		d.Message = fmt.Sprintf("further warnings about calls are not given for this reason: this is the last of %d. %s", maxWarnings, d.Message)
		r.warn(d)
	}
}

// The warnings about calls, and their keys. Without a key, a warning is given only once.
var (
	nestedRetriers = surprise{"", "two Retriers are installed on one connection. " +
		"The inner one does nothing, because attempts would multiply. Remove one"}
	// By the budget's name: the policy of a single call names a budget that the Retrier does not have.
	unknownBudget = surprise{"budget", "the policy of a call names a budget " +
		"that the Retrier doesn't have, so the default budget pays. Declare it in the policy file, or pass it with interceptor.WithBudget"}
	// By the option's type: attempts may share the target of a call option.
	unknownOption = surprise{"call option", "is a type of your own, or a pointer, that doesn't embed grpc.EmptyCallOption. Calls with it have one " +
		"attempt, because another may write to the same header, trailer or peer. Pass the options of gRPC and stagger themselves"}
	// By the method: no second reply can be made for the call's codec.
	timeoutInSequence = surprise{"perAttemptTimeout", inSequence}
	hedgeInSequence   = surprise{"hedgingPolicy", inSequence}
	// By the method: the application sends a stream.
	timeoutOfUploads = surprise{"perAttemptTimeout", notForUploads}
	hedgeOfUploads   = surprise{"hedgingPolicy", notForUploads}
	// By the method: gRPC may have freed the request's buffers when the first attempt has sent them.
	givenAway = surprise{"codec", "calls have one attempt, because the request isn't a protobuf message, and an encoding.CodecV2 may " +
		"reuse its buffers. Use protobuf messages, or an encoding.Codec"}
	// By the method.
	noDeadline = surprise{"deadline", "unary calls have none, so a server that hangs keeps them for ever. " +
		"Pass a context with a deadline, or set defaultTimeout at the top of the policy file, a timeout of the entry, or " +
		"interceptor.WithDefaultTimeout"}
	// By the number: the policy of a single call has more attempts than the Retrier allows.
	cutAttempts = surprise{"maxAttempts", "of a policy given with a call is cut to %d, the most that this Retrier allows. " +
		"maxAttemptsLimit in the policy file allows more"}
	noAttempts = surprise{"interceptor.MaxAttempts", "counts as 1: must be at least 1, the first attempt"}
	// By the method: gRPC retries every attempt by itself, or may, by an xDS server's policies, which it does not show.
	multipliedAttempts = surprise{"retryPolicy", "gRPC has its own retry policy for this method, or may get one from an xDS server, " +
		"and attempts may multiply; dial with Retrier.DialOptions, which switches it off, " +
		"instead of grpc.WithUnaryInterceptor(retrier.Unary())"}
	// By the target: its service config has retries that nobody carries out.
	retriesOff = surprise{"retryPolicy", "the connection's service config has one for this method, but Retrier.DialOptions " +
		"switches gRPC's own retries off, and the policy file has no entry for the method, or mode OBSERVE. So calls aren't " +
		"retried. docs/coming-from.md says what to do"}
	// By the target.
	otherBalancing = surprise{"", "the connection has another load balancing policy, so a retry may go to the backend that has just failed: the resolver " +
		"delivers a service config, or Retrier.DialOptions are not among the dial options, or grpc.WithDefaultServiceConfig comes after them"}
	// An inner interceptor has made one attempt more than once.
	innerRetries = surprise{"inner interceptor", "has made one attempt more than once. If it retries, as go-grpc-middleware's " +
		"does, attempts multiply, also of calls that aren't idempotent. Remove it"}
	// By the method: a failed call is a retry by go-grpc-middleware.
	outerCalls = surprise{"outer retry", "go-grpc-middleware retries calls around the Retrier. So attempts multiply, also of calls that " +
		"aren't idempotent. Remove its interceptor (docs/runbook.md)"}
	// By the method: a call has retry options of go-grpc-middleware.
	middlewareOptions = surprise{"call option", "calls carry options of go-grpc-middleware's retries, which a Retrier ignores. It retries these " +
		"calls as their policy says, even with Disable() or WithMax(1). Use interceptor.MaxAttempts(1) or interceptor.Policy"}
)

// By the method: the caller's own policy has admission, which the policies of a file can't have then.
var noAdmission = surprise{"admission", "REFUSE in a policy of interceptor.Policy has no effect: " + admitting.NotImported}

// The warnings about what is full. By no key, but for the quantiles of a method.
var (
	fullTable = surprise{"", "calls have more methods, each counted once for a target, or more budgets than the Retrier keeps (%d). " +
		"The eighth that was used least recently is forgotten: how fast a method's servers respond, and what a budget has spent. Use one connection for " +
		"each service, and a budget with scope PROCESS for many targets"}
	manyCounts = surprise{"budget", "the budgets of further targets and services count as target \"other\": %d have counts " +
		"of their own. Their balances are still separate"}
	// By the method.
	manyQuantiles = surprise{"hedgingQuantile", "calls of this method have had more than 8 values, one policy each: with a further one, " +
		"hedges are sent after hedgingDelay. Use few policies"}
)

const (
	notForUploads = "does not apply to calls whose client sends a stream: another attempt follows only one that has failed (docs/streams.md)"
	inSequence    = "attempts don't run in parallel: the reply isn't a protobuf message, or it isn't empty, and a codec other than " +
		"gRPC's may add to it (docs/hedging.md)"
)

// warn reports a warning.
func (r *Retrier) warn(d policy.Diagnostic) { r.diagnose(document.SeverityWarning, d) }

// diagnoseError reports an error of the file that the Retrier follows.
func (r *Retrier) diagnoseError(d policy.Diagnostic) { r.diagnose(document.SeverityError, d) }

// note reports a note.
func (r *Retrier) note(d policy.Diagnostic) { r.diagnose(document.SeverityNote, d) }

// reportWarnings reports the warnings and notes about the set, and about its load balancing, to observers: after a reload only notes that
// were not true before. before is nil if there was no set.
func (r *Retrier) reportWarnings(before *rules) {
	now := r.rules.Load()
	for _, d := range now.set.Warnings() {
		if d.Severity != document.SeverityNote {
			r.warn(d)
		}
	}
	for _, d := range now.channel.warnings {
		r.warn(d)
	}
	var known []policy.Diagnostic
	if before != nil {
		known = before.notes()
	}
	for _, d := range now.notes() {
		if !slices.ContainsFunc(known, func(k policy.Diagnostic) bool {
			return k.Field == d.Field && k.Value == d.Value && k.Message == d.Message
		}) {
			r.note(d)
		}
	}
}

// notes returns the notes about the set and about its load balancing.
func (r *rules) notes() (list []policy.Diagnostic) {
	for _, d := range r.set.Warnings() {
		if d.Severity == document.SeverityNote {
			list = append(list, d)
		}
	}
	if r.channel.config != "" {
		list = append(list, r.channel.note)
	}
	return list
}

// diagnose reports a diagnostic to the observers, or to the default logger if none of them handles diagnostics: warnings
// must never be lost.
func (r *Retrier) diagnose(severity string, d policy.Diagnostic) {
	d.Severity = severity
	heard := false
	for _, o := range r.observers.Load().list {
		if o.Diagnostic != nil {
			o.Diagnostic(d)
			heard = true
		}
	}
	if !heard {
		level := map[string]slog.Level{
			document.SeverityError: slog.LevelError, document.SeverityWarning: slog.LevelWarn, document.SeverityNote: slog.LevelInfo,
		}[d.Severity]
		slog.LogAttrs(context.Background(), level, "stagger: "+d.String())
	}
}

// hidesRetries reports whether an xDS server configures the connection: gRPC hides its retry policies
// (gRFC A44).
func hidesRetries(cc *grpc.ClientConn) bool {
	scheme, _, _ := strings.Cut(cc.CanonicalTarget(), ":")
	return scheme == "xds" || scheme == "google-c2p"
}

// retriesItself reports whether gRPC's service config has a retry policy for
// the method. Calls use it only after a failed attempt, because gRPC takes a lock.
func retriesItself(cc *grpc.ClientConn, method string) bool {
	return cc.GetMethodConfig(method).RetryPolicy != nil
}

// ofMiddleware reports whether a call option belongs to the retries of go-grpc-middleware, in any version.
func ofMiddleware(option grpc.CallOption) bool {
	t := reflect.TypeOf(option)
	return t != nil && strings.HasPrefix(t.PkgPath(), "github.com/grpc-ecosystem/go-grpc-middleware/") && strings.HasSuffix(t.PkgPath(), "/retry")
}

// noteOuter reports whether a call that failed is itself a retry by go-grpc-middleware, in version 2 or 1, and warns once per method.
func (c *call) noteOuter(err error) bool {
	if err == nil || c.mode() != policy.ModeEnforce || c.options.maxAttempts < 2 {
		return false
	}
	md, _ := metadata.FromOutgoingContext(c.ctx)
	isRetry := len(md["x-retry-attempt"]) > 0 || len(md["x-retry-attempty"]) > 0
	if isRetry {
		c.retrier.warnOnce(&outerCalls, c.entry.name, c.entry.name)
	}
	return isRetry
}

// warnInSequence warns if the policy's attempts should run in parallel, and can't. No lock may be held: observers hear of it.
func (c *call) warnInSequence() {
	what := &timeoutInSequence
	switch {
	case !c.inSequence || !c.entry.policy.Parallel():
		return
	case c.entry.mode == policy.ModeOff || c.options.maxAttempts < 2:
		return
	case compiled.Of(c.entry.policy).Hedge != nil:
		what = &hedgeInSequence
	}
	c.retrier.warnOnce(what, c.entry.name, c.entry.name)
}

// warnUntimed warns if the policy's attempts should be followed when they are slow, and can't be, since the application sends a stream.
func (c *call) warnUntimed() {
	what := &timeoutOfUploads
	switch {
	case !c.entry.policy.Watched() || c.single():
		return
	case compiled.Of(c.entry.policy).Hedge != nil:
		what = &hedgeOfUploads
	}
	c.retrier.warnOnce(what, c.entry.name, c.entry.name)
}
