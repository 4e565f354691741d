// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package lint gives advice on policy files, and writes them as plain gRPC service configs.
package lint

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/stagger-go/stagger/backoff"
	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/hooks/admitting"
	"github.com/stagger-go/stagger/internal/hooks/balancing"
	"github.com/stagger-go/stagger/internal/methods"
	"github.com/stagger-go/stagger/internal/policyfile/codename"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/policyfile/defaults"
	"github.com/stagger-go/stagger/internal/policyfile/document"
	"github.com/stagger-go/stagger/internal/policyfile/lookup"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/policy"
)

// Options configure a lint.
type Options struct {
	Descriptors  methods.Descriptors // of the APIs that the file's readers call
	OtherClients bool                // adds advice for gRPC clients without stagger that use the same file
}

// Lint parses a policy file, and returns all diagnostics, in the order of the file: the errors for which [policy.Parse] refuses it
// or, if there are none, the errors for which package elsewhere refuses it, its warnings, the names of the methods that aren't declared
// idempotent, and advice from experience.
func Lint(file string, data []byte, o Options) []policy.Diagnostic {
	parsed, err := policy.Parse(file, data)
	if wrong, ok := errors.AsType[*policy.Error](err); ok {
		if object := kubernetesObject(file, data); object != nil {
			return object
		}
		return wrong.Diagnostics
	}
	l := linter{report: document.NewReport(file), set: methods.DescribeBy(parsed, o.Descriptors), config: &compiled.OfSet(parsed).Config}
	document.Parse(l.report, data, document.Format{}) // for the places
	l.lintElsewhere()
	l.lintBalancers()
	l.noteNotBalanced()
	l.noteAdmission()
	l.lintBuckets()
	l.noteUnlimited()
	l.noteSharedBudgets()
	for i, m := range l.config.Methods {
		path := document.Item("methodConfig", i)
		m = capped(m, l.config.MaxAttemptsLimit)
		l.lintAdmission(path, m)
		switch {
		case m.Retry != nil:
			l.lintRetry(path+".retryPolicy", m)
		case m.Hedge != nil:
			l.lintHedge(path+".hedgingPolicy", *m.Hedge)
		}
		l.lintConnectionWait(path, m)
		l.noteHidden(path, m)
		l.notTimed(path, m)
		l.listUndeclared(path, m)
		l.listDeclared(path, m)
		l.noteKey(path, m)
		l.noteNoAttemptTimeout(path, m)
		l.noteStreamTimes(path, m)
	}
	if o.OtherClients {
		l.otherClients()
	}
	return document.InOrder(slices.Concat(l.report.Errors(), parsed.Warnings(), l.set.Lacking(), l.found, l.report.Warnings()))
}

// kubernetesObject reports a whole Kubernetes object, instead of each of its keys; nil if data is something else.
func kubernetesObject(file string, data []byte) []policy.Diagnostic {
	report := document.NewReport(file)
	root := document.Parse(report, data, document.Format{})
	if root == nil || root.Get("kind") == nil || root.Get("apiVersion") == nil || root.Get("methodConfig") != nil {
		return nil
	}
	kind := root.Get("kind")
	switch name := document.Shorten(kind.Text); name {
	case "ConfigMap", "Secret":
		report.ErrorAt(kind.At, "kind", "%s: is a whole Kubernetes object; the policy file is in its data: lint its data, "+
			"as with kubectl get %s NAME -o jsonpath='{.data.retry\\.yaml}' | stagger lint -", name, strings.ToLower(name))
	default:
		report.ErrorAt(kind.At, "kind", "%s: is a whole Kubernetes object, and no policy file, which has keys such as methodConfig; "+
			"lint its data, if that has one", name)
	}
	return report.Errors()
}

type linter struct {
	report *document.Report
	set    *methods.Set
	config *spec.Config
	found  []policy.Diagnostic // notes; warnings are in the report
}

func (l *linter) warn(field string, value any, format string, args ...any) {
	l.report.Warnf(field, value, format, args...)
}

func (l *linter) note(field, message string) {
	l.found = append(l.found, l.report.Locate(document.Diagnostic{Severity: document.SeverityNote, Field: field, Message: message}))
}

// Recommended limits, from the experience of the AWS SDKs, Google's SRE book, and gRFC A6.
const (
	saneAttempts   = defaults.MaxAttempts
	saneBackoff    = time.Minute
	sanePerSuccess = 0.5
	timerLimit     = time.Millisecond // the resolution of common systems' timers
)

// permanent codes mean that the same call would fail again.
var permanent = []codes.Code{
	codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.PermissionDenied,
	codes.FailedPrecondition, codes.OutOfRange, codes.Unimplemented, codes.Unauthenticated, codes.DataLoss,
}

// capped returns an entry with at most so many attempts: those that calls make.
func capped(m spec.MethodConfig, most int) spec.MethodConfig {
	if m.Retry != nil {
		m.Retry = new(*m.Retry)
		m.Retry.MaxAttempts = min(m.Retry.MaxAttempts, most)
	}
	if m.Hedge != nil {
		m.Hedge = new(*m.Hedge)
		m.Hedge.MaxAttempts = min(m.Hedge.MaxAttempts, most)
	}
	return m
}

// lintRepeated warns of codes that a list has twice: by name, by number, or in lower case.
func (l *linter) lintRepeated(field string) {
	list := l.report.Node(field)
	if list == nil {
		return
	}
	seen := map[codes.Code]bool{}
	for i, n := range list.Items {
		c, _ := codename.Parse(n.Text)
		if seen[c] {
			l.warn(document.Item(field, i), nil, "is listed twice; remove it")
		}
		seen[c] = true
	}
}

// lintBuckets warns of budgets that let retries multiply the load in an outage, and of those that pay for nothing.
func (l *linter) lintBuckets() {
	for i, own := range l.config.Budgets {
		bucket, ok := own.Config.(budget.BucketConfig)
		path := document.Item("budgets", i) + ".bucket."
		if ok && bucket.PerSuccess > sanePerSuccess {
			l.warn(path+"perSuccess", bucket.PerSuccess, "lets retries add %v times the calls while a part of them fails; "+
				"0.1 to 0.5 are enough, because a successful retry refunds its cost", bucket.PerSuccess)
		}
		if ok && bucket.SlowCost > bucket.Size {
			l.warn(path+"slowCost", bucket.SlowCost, "a client that makes few calls never sends an attempt in parallel with a slow one: "+
				"its bucket holds size, %v; raise size or lower slowCost", bucket.Size)
		}
	}
}

// noteUnlimited notes the entries whose unary calls may wait for ever for a server that hangs. A policy makes no difference to that, but
// without a deadline neither retries nor attempt timeouts have time to divide.
func (l *linter) noteUnlimited() {
	if l.config.DefaultTimeout > 0 {
		return
	}
	var entries []string
	for i, m := range l.config.Methods {
		if m.Timeout == 0 && (m.Retry != nil || m.Hedge != nil) && l.mayBeUnary(m.Names) {
			entries = append(entries, document.Item("methodConfig", i))
		}
	}
	if len(entries) == 0 {
		return
	}
	message := "a unary call without a deadline waits for ever for a server that hangs; set a timeout, or defaultTimeout at " +
		"the top of the file, " +
		"for unary calls without a deadline"
	if others := entries[1:]; len(others) > 0 {
		message += "; the same holds for " + atMost(others)
	}
	l.note(entries[0], message)
}

// mayBeUnary reports whether one of the names has a unary method, or methods that no descriptor shows.
func (l *linter) mayBeUnary(names []string) bool {
	for _, name := range names {
		known := false
		for m := range l.set.MethodsOf(name) {
			known = true
			if !m.IsStreamingClient() && !m.IsStreamingServer() {
				return true
			}
		}
		if !known && l.set.Matches(name) {
			return true
		}
	}
	return false
}

// noteSharedBudgets notes unary methods and server streams whose extra attempts the same balance pays for: streams that are cut together
// take all of it.
func (l *linter) noteSharedBudgets() {
	type balance struct{ budget, service string }
	type user struct{ method, field string }
	streams, unary := map[balance]user{}, map[balance]user{}
	var order []balance
	for i, m := range l.config.Methods {
		for _, n := range m.Names {
			p := l.set.Lookup(n)
			name := p.Budget()
			if p.MaxAttempts() < 2 || name == "NONE" {
				continue
			}
			for method := range l.set.MethodsOf(n) {
				b := balance{name, l.sharing(name, method)}
				users := unary
				if method.IsStreamingServer() {
					users = streams
				}
				path := methods.MethodPath(method)
				if method.IsStreamingClient() || users[b].method != "" || !l.set.Safe(p, path) && p.IdempotencyKey() == "" {
					continue
				}
				users[b] = user{path, document.Item("methodConfig", i)}
				if streams[b].method != "" && unary[b].method != "" {
					order = append(order, b)
				}
			}
		}
	}
	for _, b := range order {
		l.note(streams[b].field, streams[b].method+" is a server stream, and shares the balance of its budget with the "+
			"unary "+unary[b].method+
			": streams that are cut together take the retries of both; give streams a budget of their own (docs/streams.md)")
	}
}

// sharing returns what the methods have in common that share a balance of a budget: "" with scope PROCESS, else their service. Methods of
// different services may be at different targets.
func (l *linter) sharing(name string, method protoreflect.MethodDescriptor) string {
	for _, b := range l.config.Budgets {
		if b.Name == name && b.Scope == "PROCESS" {
			return ""
		}
	}
	return string(method.Parent().FullName())
}

// noteAdmission notes which package a program imports for admission, once.
func (l *linter) noteAdmission() {
	i := slices.IndexFunc(l.config.Methods, func(m spec.MethodConfig) bool { return m.Admission == "REFUSE" })
	if i >= 0 {
		l.note(document.Item("methodConfig", i)+".admission", fmt.Sprintf("a program must import admission to read this "+
			"file: import _ %q", admitting.Package))
	}
}

// lintAdmission warns of admission that can't work as intended.
func (l *linter) lintAdmission(path string, m spec.MethodConfig) {
	if m.Admission == "REFUSE" && m.Timeout == 0 {
		l.warn(path+".admission", "REFUSE", "calls without a deadline are never refused; set a timeout")
	}
}

func (l *linter) lintRetry(path string, m spec.MethodConfig) {
	r := m.Retry
	l.lintRepeated(path + ".retryableStatusCodes")
	for i := range r.PerCode {
		l.lintRepeated(document.Item(path+".perCode", i) + ".codes")
	}
	if r.MaxAttempts > saneAttempts {
		l.warn(path+".maxAttempts", r.MaxAttempts, "3 to 5 are enough: five failures are not a short fault")
	}
	l.lintBackoff(path, r.Backoff)
	bad := slices.DeleteFunc(slices.Clone(r.RetryableStatusCodes), func(c codes.Code) bool { return !slices.Contains(permanent, c) })
	if len(bad) > 0 {
		l.warn(path+".retryableStatusCodes", nil, "%s: the same call will most likely fail again; "+
			"if it means something else here, say so with interceptor.WithClassifier", codename.List(bad))
	}
	if r.Budget == "NONE" {
		l.warn(path+".budget", r.Budget, "nothing bounds what all calls together add in an outage, but maxAttempts: up to %d times the load",
			r.MaxAttempts)
	}
	l.lintCallDeadline(path, m, r)
	l.lintTime(path, m, r)
	if r.PerAttemptTimeout > 0 && m.Timeout > 0 && r.PerAttemptTimeout >= m.Timeout {
		l.warn(l.attemptTimeout(path), r.PerAttemptTimeout, "timeout ends the call after %s already", document.FormatDuration(m.Timeout))
	}
	l.lintFirstRetry(path, r)
}

// lintCallDeadline warns of a list that asks for retries after the call's own deadline: its author means a timeout of each attempt.
func (l *linter) lintCallDeadline(path string, m spec.MethodConfig, r *spec.Retry) {
	limit, key := m.Timeout, "timeout"
	if limit == 0 {
		limit, key = l.config.DefaultTimeout, "defaultTimeout"
	}
	if limit > 0 && r.PerAttemptTimeout == 0 && slices.Contains(r.RetryableStatusCodes, codes.DeadlineExceeded) {
		l.warn(path+".retryableStatusCodes", nil, "DEADLINE_EXCEEDED: %s bounds the whole call with its retries, and nothing follows its end; "+
			"if each attempt may take %s, set perAttemptTimeout: %[2]s, and a longer %[1]s", key, document.FormatDuration(limit))
	}
}

// lintConnectionWait warns of a wait for a connection that the age of the outage always ends before.
func (l *linter) lintConnectionWait(path string, m spec.MethodConfig) {
	if wait := m.MaxConnectionWait; wait != nil && *wait > attempts.MaxOutage {
		l.warn(path+"."+strategy(m)+".maxConnectionWait", *wait, "calls wait for a connection only in the "+
			"first %s of an outage, and so never that long; "+
			"with waitForReady: true, gRPC lets them wait until their deadlines", document.FormatDuration(attempts.MaxOutage))
	}
}

// attemptTimeout returns the key of the attempt timeout.
func (l *linter) attemptTimeout(path string) string {
	return l.report.Either(path+".perAttemptTimeout", path+".perAttemptRecvTimeout")
}

// lintTime warns if the last attempt may not start before the call's timeout.
func (l *linter) lintTime(path string, m spec.MethodConfig, r *spec.Retry) {
	longest := longestWait(r)
	slow := float64(r.MaxAttempts-1) * float64(r.PerAttemptTimeout) // may be more than a Duration holds
	switch {
	case m.Timeout == 0:
	case longest >= m.Timeout:
		l.warn(path+".maxAttempts", r.MaxAttempts, "the waits before attempt %d may add up to %s, but timeout ends the call after %s",
			r.MaxAttempts, document.FormatDuration(longest), document.FormatDuration(m.Timeout))
	case r.PerAttemptTimeout < m.Timeout && float64(longest)+slow >= float64(m.Timeout):
		l.warn(path+".maxAttempts", r.MaxAttempts, "if attempts are slow, the waits and %d times perAttemptTimeout do not fit: "+
			"timeout ends the call after %s", r.MaxAttempts-1, document.FormatDuration(m.Timeout))
	}
}

func (l *linter) lintBackoff(path string, b backoff.Config) {
	if b.Max > saneBackoff {
		l.warn(path+".maxBackoff", b.Max, "30s to 60s are enough: few callers wait longer")
	}
	if b.Jitter == backoff.JitterNone {
		l.warn(path+".jitter", nil, "without jitter, clients that failed together come back together; FULL, the default, spreads them")
	}
	if b.Initial < timerLimit {
		l.warn(path+".initialBackoff", b.Initial, "is less than timers resolve (%v): retries follow immediately", timerLimit)
	}
	if b.Multiplier < 1 {
		l.warn(path+".backoffMultiplier", b.Multiplier, "makes each wait shorter than the last; 2 doubles it, 1 keeps it")
	}
	if b.Initial > b.Max {
		l.warn(path+".initialBackoff", b.Initial, "is cut to maxBackoff, %s", document.FormatDuration(b.Max))
	}
}

func (l *linter) lintHedge(path string, h spec.Hedge) {
	l.lintRepeated(path + ".nonFatalStatusCodes")
	if h.MaxAttempts > saneAttempts {
		l.warn(path+".maxAttempts", h.MaxAttempts, "2 or 3 are enough: more hedges help few calls more")
	}
	if h.HedgingDelay == 0 && h.Quantile == 0 {
		l.warn(path, nil, "without hedgingDelay all attempts are sent in parallel: %d times the load, as far as the budget goes", h.MaxAttempts)
	}
	if h.Budget == "NONE" {
		l.warn(path+".budget", h.Budget, "nothing bounds the hedges of a service that has become slow: up to %d times the load", h.MaxAttempts)
	}
}

// longestWait returns the maximum sum of a call's backoffs.
func longestWait(r *spec.Retry) time.Duration {
	var sum, previous time.Duration
	retries := r.MaxAttempts - 1
	if r.FirstRetry == "AT_ONCE" {
		sum, retries = time.Millisecond, retries-1
	}
	for retry := range min(retries, saneAttempts*20) {
		previous = r.Backoff.Delay(retry, previous, almostOne)
		if sum += previous; sum < 0 {
			return math.MaxInt64
		}
	}
	return sum.Round(time.Millisecond)
}

// almostOne is the largest random number.
const almostOne = 1 - 1.0/(1<<53)

// lintFirstRetry warns of immediate first retries that may go back to the backend that has just failed, and notes where one can be
// immediate, because it goes to another backend.
func (l *linter) lintFirstRetry(path string, r *spec.Retry) {
	elsewhere := l.elsewhere()
	switch {
	case r.FirstRetry == "AT_ONCE" && elsewhere == "":
		l.warn(path+".firstRetry", nil, "an immediate retry may go to the backend that has just failed; "+
			"let it go to another one (loadBalancingConfig: [{%s: {childPolicy: [{round_robin: {}}]}}]), or remove it", balancing.Policy)
	case elsewhere != "" && !l.report.Written(path+".firstRetry"):
		l.note(path, "retries go to another backend, so that the first need not wait: firstRetry AT_ONCE ends calls sooner "+
			"while one backend "+
			"fails or hangs, and costs some success where all fail for a moment; BACKOFF keeps the wait, and says so")
	}
}

// listUndeclared names the methods of an entry that will not be retried.
func (l *linter) listUndeclared(path string, m spec.MethodConfig) {
	var undeclared, unknown []string // unknown are names without descriptors
	for _, name := range m.Names {
		if !strings.HasSuffix(name, "/") || !methods.NeedsLevel(l.set.Lookup(name)) || !l.set.Matches(name) {
			continue
		}
		safe, others := l.set.SafeMethods(name)
		undeclared = append(undeclared, others...)
		if len(safe)+len(others) == 0 {
			unknown = append(unknown, cmp.Or(strings.Trim(name, "/"), "{}"))
		}
	}
	var which []string
	if len(undeclared) > 0 {
		which = append(which, atMost(undeclared))
	}
	if len(unknown) > 0 {
		which = append(which, "methods of "+atMost(unknown))
	}
	if len(which) > 0 {
		l.note(path+".name", strings.Join(which, ", and ")+" will be retried only if the attempt never left the client, because nothing "+
			"declares them idempotent. If a method may run twice, set idempotency_level in its .proto, or name it in an "+
			"entry, which declares it idempotent. "+
			"If it must not, leave it, or use an idempotencyKey and a server that deduplicates")
	}
}

// listDeclared names the known methods of an entry that nothing but the file declares idempotent, and warns of names that say
// the opposite.
func (l *linter) listDeclared(path string, m spec.MethodConfig) {
	if m.Retry == nil && m.Hedge == nil || m.IdempotencyKey != "" {
		return
	}
	var only []string
	for i, name := range m.Names {
		if compiled.Of(l.set.Lookup(name)).Idempotency != "ASSUME" || !l.set.Matches(name) {
			continue
		}
		safe, others := l.set.SafeMethods(name)
		only = append(only, others...)
		if _, method := lookup.Split(name); hasEffect(method) && len(safe) == 0 && !l.report.Written(path+".idempotency") {
			l.warn(document.Item(path+".name", i), name, "naming a method declares it idempotent, so a failed call may run it twice; if that is harmless, "+
				`add "idempotency: ASSUME" to the entry; otherwise use an idempotencyKey, or remove the name`)
		}
	}
	if len(only) > 0 {
		l.note(path+".name", "only this file declares these methods idempotent, so failed calls may run them twice: "+atMost(only))
	}
}

// noteHidden notes an entry that replaces one with a policy, or with a timeout, and has none: gRPC takes the most specific entry whole.
// An entry that has nothing else, idempotency NONE, or mode OFF, switches retries off on purpose.
func (l *linter) noteHidden(path string, m spec.MethodConfig) {
	hasPolicy := m.Retry != nil || m.Hedge != nil
	isOff := m.Idempotency == "NONE" || m.Mode == "OFF" || reflect.DeepEqual(m, spec.MethodConfig{Names: m.Names})
	var noPolicy, noTimeout, entries []string // entries are those that are replaced
	for _, name := range m.Names {
		i := l.lessSpecific(name)
		if i < 0 {
			continue
		}
		other := l.config.Methods[i]
		switch {
		case !hasPolicy && !isOff && (other.Retry != nil || other.Hedge != nil):
			noPolicy = append(noPolicy, name)
		case hasPolicy && m.Timeout == 0 && other.Timeout > 0:
			noTimeout = append(noTimeout, name)
		default:
			continue
		}
		if entry := document.Item("methodConfig", i); !slices.Contains(entries, entry) {
			entries = append(entries, entry)
		}
	}
	replaced := "this entry replaces all of " + atMost(entries)
	if len(noPolicy) > 0 {
		l.note(path+".name", replaced+", also its policy, so these calls are not retried; repeat it here, or write idempotency: NONE: "+
			atMost(noPolicy))
	}
	if len(noTimeout) > 0 {
		l.note(path+".name", replaced+", also its timeout; repeat that here: "+atMost(noTimeout))
	}
}

// lessSpecific returns the index of the entry that would apply to a name if its own did not exist, or -1.
func (l *linter) lessSpecific(name string) int {
	service, method := lookup.Split(name)
	var others []string
	if method != "" {
		others = append(others, "/"+service+"/")
	}
	if service != "" {
		others = append(others, "/")
	}
	for _, other := range others {
		i := slices.IndexFunc(l.config.Methods, func(m spec.MethodConfig) bool { return slices.Contains(m.Names, other) })
		if i >= 0 {
			return i
		}
	}
	return -1
}

// noteKey notes what a server has to do with an idempotency key, and that it gains nothing from parallel attempts.
func (l *linter) noteKey(path string, m spec.MethodConfig) {
	if m.IdempotencyKey == "" || m.Retry == nil && m.Hedge == nil {
		return
	}
	l.note(path+".idempotencyKey", "declares the methods idempotent, but only the server makes them so: "+
		"it must store the key with the effect, "+
		"and answer a key that it knows with the first response. At a server that ignores the header, a failed call may run twice")
	const waits = "is sent while the first still runs, and such a server lets it wait for that"
	switch {
	case m.Hedge != nil:
		l.note(path+".hedgingPolicy", "a hedge "+waits+": write a retryPolicy")
	case m.Retry.PerAttemptTimeout > 0 && m.Retry.OnAttemptTimeout != "RETRY":
		l.note(path+".retryPolicy.perAttemptTimeout", "the attempt after it "+waits+": write onAttemptTimeout: RETRY")
	}
}

// noteNoAttemptTimeout names unary methods of which a call has no other attempt while a server hangs.
func (l *linter) noteNoAttemptTimeout(path string, m spec.MethodConfig) {
	if m.Retry == nil || m.Retry.PerAttemptTimeout > 0 || m.IdempotencyKey != "" { // with a key, a parallel attempt may wait for the first
		return
	}
	var found []string
	for _, n := range m.Names {
		for method := range l.set.MethodsOf(n) {
			full := methods.MethodPath(method)
			if !method.IsStreamingClient() && !method.IsStreamingServer() && l.set.Safe(l.set.Lookup(full), full) {
				found = append(found, full)
			}
		}
	}
	if len(found) > 0 {
		l.note(path+".retryPolicy", "retries only failures: if a server never responds, a call waits for it until its "+
			"deadline. A perAttemptTimeout, longer than nearly all "+
			"responses take, sends another attempt: "+atMost(found))
	}
}

// noteStreamTimes notes times of an entry that mean something else for its streams than for its unary methods.
func (l *linter) noteStreamTimes(path string, m spec.MethodConfig) {
	var streams, timed []string
	for _, n := range m.Names {
		for method := range l.set.MethodsOf(n) {
			name := methods.MethodPath(method)
			if method.IsStreamingClient() || method.IsStreamingServer() {
				streams = append(streams, name)
			}
			if method.IsStreamingServer() && !method.IsStreamingClient() { // of the others, notTimed speaks
				timed = append(timed, name)
			}
		}
	}
	const remedy = ". If a stream may be longer or quiet, give it an entry of its own (docs/streams.md): "
	if m.Timeout > 0 && len(streams) > 0 {
		l.note(path+".timeout", "also bounds whole streams, from their start to their end"+remedy+atMost(streams))
	}
	if m.Retry != nil && m.Retry.PerAttemptTimeout > 0 && len(timed) > 0 {
		l.note(l.attemptTimeout(path+".retryPolicy"), "is the time to the first message of a stream"+remedy+atMost(timed))
	}
}

// notTimed names methods whose client sends a stream: hedges and attempt timeouts don't apply to them.
func (l *linter) notTimed(path string, m spec.MethodConfig) {
	var found []string
	for _, n := range m.Names {
		for method := range l.set.MethodsOf(n) {
			if method.IsStreamingClient() {
				found = append(found, methods.MethodPath(method))
			}
		}
	}
	switch {
	case len(found) == 0:
	case m.Hedge != nil:
		l.warn(path+".hedgingPolicy", nil, "%s is not hedged, since its client sends a stream: the next attempt follows a failure; "+
			"write a retryPolicy for it, in a separate entry", atMost(found))
	case m.Retry != nil && m.Retry.PerAttemptTimeout > 0:
		l.note(path+".retryPolicy.perAttemptTimeout", "does not apply to calls whose client sends a stream, where the next attempt follows "+
			"only a failure: "+atMost(found))
	}
}

// atMost lists methods, or the first ones and the number of the others.
func atMost(methods []string) string {
	const most = 20
	n := len(methods)
	which := strings.Join(methods[:min(n, most)], ", ")
	if n > most {
		which += fmt.Sprintf(" and %d more", n-most)
	}
	return which
}
