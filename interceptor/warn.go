// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/policy"
)

// once remembers which warnings have been given, [maxDiagnostics] of them: names of methods and targets may come from
// users.
type once struct {
	seen  sync.Map
	count atomic.Int64
}

func (o *once) first(key string) bool {
	if _, seen := o.seen.Load(key); seen || o.count.Load() >= maxDiagnostics {
		return false
	}
	if _, seen := o.seen.LoadOrStore(key, true); seen {
		return false
	}
	return o.count.Add(1) <= maxDiagnostics
}

// Warnings returns what is not wrong but may surprise in the policies: those of the set, and
// policies that want more attempts than the Retrier allows; then the problems of service configs that
// connections have received ([WithServiceConfig]), the first thousand.
func (r *Retrier) Warnings() []policy.Diagnostic {
	warnings := r.warnings()
	if r.serviceConfigs != nil {
		warnings = append(warnings, r.serviceConfigs.diagnostics.all()...)
	}
	return warnings
}

// warnings are those of the set.
func (r *Retrier) warnings() []policy.Diagnostic {
	set := r.rules.Load().set
	return append(set.Warnings(), r.cuts(set)...)
}

// cuts are the warnings about policies that want more attempts than the Retrier allows.
func (r *Retrier) cuts(set *policy.Set) (warnings []policy.Diagnostic) {
	for _, p := range set.Policies() {
		if most := r.attemptLimit(); p.MaxAttempts() > most {
			warnings = append(warnings, policy.Diagnostic{
				Severity: policy.SeverityWarning,

				Field:   "maxAttempts of " + p.Name().String(),
				Value:   strconv.Itoa(p.MaxAttempts()),
				Message: fmt.Sprintf("is cut to %d, the most that this Retrier allows; %s", most, allowsMore),
			})
		}
	}
	return warnings
}

// allowsMore says how to raise the cap over maxAttempts.
const allowsMore = "maxAttemptsLimit in the policy file, or interceptor.WithMaxAttempts, allows more"

// warn tells the observers, or the default logger if none of them listens: a warning that nobody
// asked for must still be seen.
func (r *Retrier) warn(d policy.Diagnostic) {
	d.Severity = policy.SeverityWarning // what is wrong with a config that was delivered stops nobody
	r.diagnose(d, func(o Observer) func(policy.Diagnostic) { return o.Warning })
}

// refuse is warn for what is wrong with the file that the Retrier follows.
func (r *Retrier) refuse(d policy.Diagnostic) {
	d.Severity = policy.SeverityError
	r.diagnose(d, func(o Observer) func(policy.Diagnostic) { return o.Warning })
}

// note is warn for what is worth knowing.
func (r *Retrier) note(d policy.Diagnostic) {
	d.Severity = policy.SeverityNote
	r.diagnose(d, func(o Observer) func(policy.Diagnostic) { return o.Note })
}

// reportWarnings gives the observers the warnings and notes of the set.
func (r *Retrier) reportWarnings() {
	for _, d := range r.warnings() {
		if d.Severity == policy.SeverityNote {
			r.note(d)
		} else {
			r.warn(d)
		}
	}
}

// diagnose gives a diagnostic to the functions of observers that of returns, or to the default logger if there are none.
func (r *Retrier) diagnose(d policy.Diagnostic, of func(Observer) func(policy.Diagnostic)) {
	heard := false
	for _, o := range r.observers {
		if tell := of(o); tell != nil {
			tell(d)
			heard = true
		}
	}
	if !heard {
		level := map[policy.Severity]slog.Level{
			policy.SeverityError: slog.LevelError, policy.SeverityWarning: slog.LevelWarn, policy.SeverityNote: slog.LevelInfo,
		}[d.Severity]
		slog.LogAttrs(context.Background(), level, "stagger: "+d.String())
	}
}

// warnNested reports, once, that a call has passed another Retrier already.
func (r *Retrier) warnNested() {
	if r.warned.first("nested") {
		r.warn(policy.Diagnostic{Message: "two Retriers are installed on one connection; " +
			"the inner one lets calls pass, since their attempts would multiply"})
	}
}

// warnUnknownBudget reports, once for each name, a policy of a single call that names a budget
// which the Retrier does not have.
func (r *Retrier) warnUnknownBudget(name string) {
	if r.warned.first("budget " + name) {
		r.warn(policy.Diagnostic{Field: "budget", Value: name, Message: "the policy of a call names a budget " +
			"that the Retrier does not have; the default budget pays. Declare it in the policy file, or give it with interceptor.WithBudget"})
	}
}

// warnBudget reports, once for each name, a budget that a service config has delivered and that cannot be made.
func (r *Retrier) warnBudget(name string, err error) {
	if r.warned.first("bad budget " + name) {
		r.warn(policy.Diagnostic{Field: "budgets", Value: name, Message: "cannot be used, so its calls get no other attempt: " + err.Error()})
	}
}

// warnOpaque reports, once for each type, a call option whose target cannot be found.
func (r *Retrier) warnOpaque(option grpc.CallOption) {
	kind := fmt.Sprintf("%T", option)
	if r.warned.first("option " + kind) {
		r.warn(policy.Diagnostic{Field: "call option", Value: kind, Message: "embeds gRPC's option where nobody can copy it; " +
			"calls with it have one attempt, since others would write to the caller too. Embed grpc.HeaderCallOption and the like by value"})
	}
}

// warnInSequence reports, once for each method, a policy whose attempts cannot run in parallel, since no second reply
// can be made for the call's codec.
func (c *call) warnInSequence() {
	if c.options.mode == policy.ModeOff || min(c.options.maxAttempts, c.policy.MaxAttempts()) < 2 || !c.retrier.warned.first("in sequence "+c.method) {
		return
	}
	field := "perAttemptTimeout"
	if c.policy.Hedge() != nil {
		field = "hedgingPolicy"
	}
	c.retrier.warn(policy.Diagnostic{Field: field, Value: c.method, Message: "attempts don't run in parallel: stagger doesn't know how to make " +
		"another reply for the call's codec; interceptor.WithNewReply declares it (docs/hedging.md)"})
}

// warnCut reports, once for each number, a policy of a single call that wants more attempts than the
// Retrier allows.
func (r *Retrier) warnCut(attempts int) {
	if r.warned.first("cut " + strconv.Itoa(attempts)) {
		r.warn(policy.Diagnostic{Field: "maxAttempts", Value: strconv.Itoa(attempts), Message: fmt.Sprintf(
			"of a policy given with a call is cut to %d, the most that this Retrier allows; %s", r.attemptLimit(), allowsMore)})
	}
}

// warnMaxAttempts reports, once for each number, a [MaxAttempts] that allows not even the first.
func (r *Retrier) warnMaxAttempts(n int) {
	if r.warned.first("max attempts " + strconv.Itoa(n)) {
		r.warn(policy.Diagnostic{Field: "interceptor.MaxAttempts", Value: strconv.Itoa(n), Message: "counts as 1: must be at least 1, the first attempt"})
	}
}

// warnCriticality reports, once for each number, a [Criticality] that there is none of.
func (r *Retrier) warnCriticality(c policy.Criticality) {
	n := strconv.Itoa(int(c))
	if r.warned.first("criticality " + n) {
		r.warn(policy.Diagnostic{Field: "interceptor.Criticality", Value: n, Message: "counts as if the call did not say it: " +
			"must be policy.CriticalitySheddable, CriticalityDefault or CriticalityCritical"})
	}
}

// warnTrailer reports, once, that a server interceptor could not say upstream that a call has given up.
func (r *Retrier) warnTrailer(err error) {
	if r.warned.first("trailer") {
		r.warn(policy.Diagnostic{Field: policy.PushbackTrailer, Message: "could not be sent to the caller above, which may retry: " + err.Error()})
	}
}

// warnMultiplied reports, once for each method, that gRPC retries every attempt by itself.
func (r *Retrier) warnMultiplied(method string) {
	if r.warned.first("multiplied " + method) {
		r.warn(policy.Diagnostic{Field: "retryPolicy", Value: method, Message: "gRPC has a retry policy of its own for this method, " +
			"and attempts may multiply; dial with Retrier.DialOptions, which switches it off, " +
			"instead of grpc.WithUnaryInterceptor(retrier.Unary())"})
	}
}

// warnUnretried reports, once for each method, that gRPC's own retries are switched off, and nothing stands in for them.
func (r *Retrier) warnUnretried(method string, mode policy.Mode) {
	if r.warned.first("unretried " + method) {
		r.warn(policy.Diagnostic{Field: "mode", Value: mode.String(), Message: "gRPC has a retry policy of its own for " + method +
			", which Retrier.DialOptions switches off, so that nobody retries calls in this mode; install Retrier.Unary and Retrier.Stream " +
			"instead to keep gRPC's"})
	}
}

// warnHidden reports, once, a target whose retry policies gRPC does not show.
func (r *Retrier) warnHidden(target string) {
	if r.warned.first("hidden") {
		r.warn(policy.Diagnostic{Field: "target", Value: target, Message: "gRPC may retry by policies of the xDS server, which it shows " +
			"to nobody: attempts may multiply, and what failed without a connection counts as sent; dial with Retrier.DialOptions, " +
			"which switches gRPC's own retries off, instead of grpc.WithUnaryInterceptor(retrier.Unary())"})
	}
}

// warnRoutes reports, once, a method without a policy at a target whose retry policies gRPC does not show, and has
// switched off.
func (r *Retrier) warnRoutes(target, method string) {
	if r.warned.first("routes") {
		r.warn(policy.Diagnostic{Field: "target", Value: target, Message: "Retrier.DialOptions switches gRPC's own retries off, those of the " +
			"xDS server's routes too, and no policy is known for " + method + ": it is not retried. Write its policy into the policy file (docs/xds.md)"})
	}
}

// hidesRetries reports whether an xDS server configures the connection: gRPC does not show its retry policies
// (gRFC A44).
func hidesRetries(cc *grpc.ClientConn) bool {
	scheme, _, _ := strings.Cut(cc.CanonicalTarget(), ":")
	return scheme == "xds" || scheme == "google-c2p"
}

// retriesItself reports whether the service config that gRPC has received holds a retry policy for
// the method. The call asks only when an attempt has failed: gRPC takes a lock to answer.
func retriesItself(cc *grpc.ClientConn, method string) bool {
	return cc.GetMethodConfig(method).RetryPolicy != nil
}
