// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package observe reports on Retriers to logs: each function returns an
// [interceptor.Observer] for one kind of logger.
//
//	retrier, err := interceptor.Watch(ctx, "retry.yaml", interceptor.WithObserver(observe.Slog(slog.Default())))
//
// [Slog] is for log/slog, and [Log] for the loggers of go-grpc-middleware. Package debugpage serves a page about Retriers, package repeat
// finds methods that are wrongly declared idempotent, and the module otelstagger has metrics and traces for OpenTelemetry.
// docs/observability.md lists what they show.
package observe

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/logging"
	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/policyfile/codename"
	"github.com/stagger-go/stagger/internal/policyfile/document"
	"github.com/stagger-go/stagger/policy"
)

// Slog logs these events:
//
//   - a retry or a hedge that is sent, at level info: silent retries hide faults. [EveryRetry] logs all of them
//   - a failed call that was retried, or whose retry was refused, at level warn, with the reason and the backend of its last attempt
//   - a call that its deadline has ended, or that the service failed with a code that is not retried, at level warn
//   - a call that its caller has cancelled while an attempt was slow, at level info
//   - for each minute that begins with a slow or failed attempt, the backends at which more than a fifth were slow or failed, at level
//     warn: "attempts at 10.0.0.3:7002 were slow: 37 of 120, at others 1 of 240", and "attempts at 10.0.0.3:7002 failed: 268 of 268
//     (UNAVAILABLE), at others 0 of 769"
//   - once for each outage of a target in which calls wait for an answer, at level warn, and 5 s after the last of them, at level info, how many
//     waited and how many succeeded. The second line is at level warn if none did
//   - in mode OBSERVE, at level info: the retry or hedge that mode ENFORCE would send
//   - a mode set by hand, at level info; at level warn if it prevents retries
//   - a change of the policies, at level info, with the first ten settings that have changed, such as "maxAttempts of GetOrder 3 → 2"
//   - a refused change of the policy file, at level error, in one line and one more for each error in the file
//   - a warning of the Retrier, at level warn, and a note, at level info
//
// Calls that succeed are not logged, but for their retries. Neither are other calls that the caller has cancelled, calls that failed because
// of the request, such as NOT_FOUND, and calls whose server has forbidden a retry (pushback_stop): that server, or a service below it, logs
// the failure. For each message, method and reason, the first line is written at once. While such events continue, one line every ten
// seconds has the number of suppressed lines, in the field more. Methods beyond the first hundred count together, as "other". Fields:
// method, target, attempt or attempts, peer, code, reason, commit, answers, delay or waited, elapsed, budget, pushback, mode unless it is
// ENFORCE, slow if an attempt was, error; since, lasted, calls, saved; source, hash, changes; from, to, service, by; more. Durations are strings with a unit, such as
// 120ms. A hedge that follows a slow attempt has the code SLOW. The line of a retry has at most 200 bytes of an error's text, other lines
// 1,024.
//
// Slog(nil) returns an observer without functions, which [interceptor.WithObserver] refuses.
func Slog(l *slog.Logger, options ...LogOption) interceptor.Observer {
	if l == nil {
		return interceptor.Observer{}
	}
	return observer(l.Log, options)
}

// Log logs as [Slog] does, to any logger with the interface of go-grpc-middleware, and with the conventions of its package logging. One
// query then finds the lines of both libraries:
//
//   - Each line has protocol and grpc.component, and the fields that logging.InjectFields has put into the call's context.
//   - The fields method, code and error are grpc.service and grpc.method (as in OrderService and GetOrder), grpc.code (as in Unavailable),
//     and grpc.error. A hedge that follows a slow attempt has the code SLOW. Other fields are those of [Slog].
//
// The lines that count suppressed ones, and those about backends, belong to no call, so they have no fields of a context. For a nil logger,
// see [Slog].
func Log(l logging.Logger, options ...LogOption) interceptor.Observer {
	if v := reflect.ValueOf(l); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return interceptor.Observer{}
	}
	return observer(func(ctx context.Context, level slog.Level, message string, fields ...any) {
		l.Log(ctx, logging.Level(level), message, middlewareFields(ctx, fields)...) // both have the same numeric levels
	}, options)
}

// LogOption configures [Slog] and [Log].
type LogOption struct{ apply func(*logger) }

// EveryRetry logs every retry and every hedge. By default, only the first of ten seconds has a line, and the others are counted.
func EveryRetry() LogOption {
	return LogOption{func(l *logger) { l.everyRetry = true }}
}

// longestError bounds the bytes of an error's text in a line: a server may send megabytes.
const longestError = 1024

// longestRetried bounds them in the line of a retry.
const longestRetried = 200

// logger writes lines.
type logger struct {
	write func(ctx context.Context, level slog.Level, message string, fields ...any)
	limit limit

	everyRetry bool
	trouble    trouble
	outages    outages
}

func observer(write func(context.Context, slog.Level, string, ...any), options []LogOption) interceptor.Observer {
	l := &logger{write: write, limit: limit{topics: map[topic]uint{}}}
	for _, option := range options {
		if option.apply != nil {
			option.apply(l)
		}
	}
	return interceptor.Observer{
		Attempt:  l.attempt,
		Decision: l.decision,
		Sent:     l.sent,
		CallEnd:  l.call,
		Reload: func(set *policy.Set, changes []string, err error) {
			if err == nil { // else Diagnostic gets each error in a file, or the program has the error
				l.write(context.Background(), slog.LevelInfo, "stagger: policies reloaded",
					"source", set.Source(), "hash", set.Hash(), "changes", listed(changes))
			}
		},
		ModeChange: func(from, to interceptor.ModeSwitch) {
			level := slog.LevelInfo
			if policy.StrictestMode(to.Mode) != policy.ModeEnforce {
				level = slog.LevelWarn
			}
			fields := []any{"from", string(from.Mode), "to", string(to.Mode)}
			if to.Service != "" {
				fields = append(fields, "service", to.Service)
			}
			if to.By != "" {
				fields = append(fields, "by", to.By)
			}
			l.write(context.Background(), level, "stagger: mode set", fields...)
		},
		Diagnostic: func(d policy.Diagnostic) {
			levels := map[string]slog.Level{document.SeverityWarning: slog.LevelWarn, document.SeverityNote: slog.LevelInfo}
			level, known := levels[d.Severity]
			if !known {
				level = slog.LevelError
			}
			severity := d.Severity
			l.write(context.Background(), level, "stagger: policy "+severity, severity, d.String())
		},
	}
}

// longestList bounds the changes in a line.
const longestList = 10

// listed returns the first changes as a text, and the number of the others.
func listed(changes []string) string {
	if more := len(changes) - longestList; more > 0 {
		changes = append(slices.Clone(changes[:longestList]), fmt.Sprintf("%d more", more))
	}
	return strings.Join(changes, "; ")
}

// decision logs the first call of an outage that waits for an answer. In mode OBSERVE, it logs the attempt that mode ENFORCE would send, and
// calls that admission would refuse. Real attempts are logged when they are sent, and refusals at the end of the call.
func (l *logger) decision(ctx context.Context, e interceptor.Event) {
	switch {
	case e.ForAnswer:
		l.waits(ctx, e)
	case wouldRefuse(e):
		l.extraAttempt(ctx, e, "stagger: would refuse")
	case !e.WillRetry && (e.Reason == policy.ReasonRetry || e.Reason == policy.ReasonHedge):
		l.extraAttempt(ctx, e, "stagger: would "+string(e.Reason))
	}
}

// wouldRefuse reports whether admission would have refused the call in mode ENFORCE.
func wouldRefuse(e interceptor.Event) bool {
	return e.Mode == policy.ModeObserve && e.Reason == policy.ReasonOverloaded
}

func (l *logger) sent(ctx context.Context, e interceptor.Event) {
	l.extraAttempt(ctx, e, "stagger: "+string(e.Reason))
}

func (l *logger) extraAttempt(ctx context.Context, e interceptor.Event, message string) {
	if !l.everyRetry && !l.admit(topic{message, e.Method, e.Reason}, slog.LevelInfo) {
		return
	}
	fields := append(make([]any, 0, 20), "method", e.Method, "target", e.Target, "attempt", e.Attempt)
	if e.Peer != nil {
		fields = append(fields, "peer", e.Peer.String())
	}
	code := codename.Of(e.Code)
	if e.Slow() {
		code = "SLOW"
	}
	fields = append(fields, "code", code, "delay", e.Delay.String())
	fields = withMode(fields, e.Mode)
	if source := e.Pushback; source != "" {
		fields = append(fields, "pushback", source)
	}
	if e.Err != nil {
		fields = append(fields, "error", document.Bounded(e.Err.Error(), longestRetried))
	}
	l.write(ctx, slog.LevelInfo, message, fields...)
}

// withMode adds the mode to fields, unless it is ENFORCE.
func withMode(fields []any, m policy.Mode) []any {
	if policy.StrictestMode(m) != policy.ModeEnforce {
		fields = append(fields, "mode", string(m))
	}
	return fields
}

// withText adds a text to fields, if there is one.
func withText(fields []any, key, text string) []any {
	if text != "" {
		fields = append(fields, key, text)
	}
	return fields
}

// troubled reports whether a call with one attempt shows trouble of the service, and no line has reported it yet.
func troubled(e interceptor.CallEnd) bool {
	switch e.Reason {
	case policy.ReasonModeOff:
		return e.Mode != policy.ModeObserve // else decision has logged it
	case policy.ReasonCancelled:
		return e.SlowAttempt // the caller has left a slow service
	case policy.ReasonClosed:
		return false
	case policy.ReasonNonRetryable:
		return !answersRequest(e.Code)
	default:
		return e.Code != codes.OK
	}
}

// answersRequest reports whether a code says something of the request, and nothing of the service.
func answersRequest(code codes.Code) bool {
	switch code {
	case codes.OK, codes.Canceled, codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.PermissionDenied,
		codes.FailedPrecondition,
		codes.Aborted, codes.OutOfRange, codes.Unauthenticated:
		return true
	default:
		return false
	}
}

func (l *logger) call(ctx context.Context, e interceptor.CallEnd) {
	if e.ForAnswer {
		l.hasWaited(e)
	}
	if e.Err == nil || e.Reason == policy.ReasonPushbackStop || e.Attempts < 2 && e.Waited == 0 && !troubled(e) {
		return
	}
	level, message := slog.LevelWarn, "stagger: call failed"
	if e.Reason == policy.ReasonCancelled && e.SlowAttempt {
		level, message = slog.LevelInfo, "stagger: call cancelled while it was slow"
	}
	if !l.admit(topic{message, e.Method, e.Reason}, level) {
		return
	}
	fields := append(make([]any, 0, 26), "method", e.Method, "target", e.Target, "attempts", e.Attempts)
	if e.Peer != nil {
		fields = append(fields, "peer", e.Peer.String())
	}
	fields = append(fields, "code", codename.Of(e.Code), "reason", string(e.Reason), "elapsed", e.Elapsed.String(), "waited", e.Waited.String())
	fields = withMode(fields, e.Mode)
	if e.Reason == policy.ReasonBudgetExhausted && e.Budget != "" {
		fields = append(fields, "budget", e.Budget)
	}
	if e.SlowAttempt {
		fields = append(fields, "slow", true)
	}
	if err, ok := errors.AsType[*interceptor.Error](e.Err); ok {
		fields = withText(fields, "commit", err.Commit)
		fields = withText(fields, "waitedFor", err.WaitedFor)
	}
	fields = withText(fields, "answers", e.Answers.String())
	fields = append(fields, "error", document.Bounded(e.Err.Error(), longestError))
	l.write(ctx, level, message, fields...)
}
