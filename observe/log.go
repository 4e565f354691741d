// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package observe tells people and systems what a Retrier does: each function makes an
// [interceptor.Observer] for one kind of listener.
package observe

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/logging"
	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
)

// Slog logs to l what [Log] logs.
func Slog(l *slog.Logger) interceptor.Observer {
	return Log(logging.LoggerFunc(func(ctx context.Context, level logging.Level, msg string, fields ...any) {
		l.Log(ctx, slog.Level(level), msg, fields...) // the two count levels alike
	}))
}

// Log logs what deserves a person's attention, to any logger in the shape of go-grpc-middleware:
//
//   - a retry or a hedge, at level info: silent retries hide faults
//   - a failed call that was retried, or whose retry was refused, at level warn, with the reason
//   - a call that succeeded after retries, at level info
//   - a change of the policies, at level info, with the names of what has changed; one that is refused is a warning
//   - a warning of the Retrier, at level warn
//
// A call that succeeds at once, or fails for good at once, logs nothing. Fields: method, target,
// attempt or attempts, code, reason, commit, delay or waited, elapsed, pushback, error; source, hash, changes.
func Log(l logging.Logger) interceptor.Observer {
	return interceptor.Observer{
		Decision: func(ctx context.Context, e interceptor.DecisionEvent) { logDecision(ctx, l, e) },
		Call:     func(ctx context.Context, e interceptor.CallEvent) { logCall(ctx, l, e) },
		Reload: func(e interceptor.ReloadEvent) {
			if e.Err == nil { // else there is a warning
				l.Log(context.Background(), logging.LevelInfo, "stagger: policies reloaded", "source", e.Source, "hash", e.Hash, "changes", changes(e.Changes))
			}
		},
		Warning: func(p policy.Diagnostic) {
			l.Log(context.Background(), logging.LevelWarn, "stagger: policy warning", "warning", p.String())
		},
	}
}

// changes is such as "policy /orders/Get changed, budget spare removed".
func changes(list []policy.Change) string {
	names := make([]string, len(list))
	for i, c := range list {
		names[i] = c.String()
	}
	return strings.Join(names, ", ")
}

func logDecision(ctx context.Context, l logging.Logger, e interceptor.DecisionEvent) {
	if !e.Decision.Retry {
		return // the end of the call says it
	}
	fields := append(make([]any, 0, 14),
		"method", e.Method, "target", e.Target, "attempt", e.Attempt,
		"code", policy.CodeName(e.Code), "delay", e.Decision.Delay)
	if e.TimedOut {
		fields = append(fields, "timed_out", true)
	}
	if source := e.Decision.Pushback.Source; source != "" {
		fields = append(fields, "pushback", source)
	}
	message := "stagger: retry"
	if e.Decision.Reason == policy.ReasonHedge {
		message = "stagger: hedge"
	}
	l.Log(ctx, logging.LevelInfo, message, fields...)
}

// wantedRetry reports whether a call of one attempt ended for want of another.
func wantedRetry(e interceptor.CallEvent) bool {
	switch e.Reason {
	case policy.ReasonNonRetryable, policy.ReasonDeadlineExceeded, policy.ReasonCancelled, policy.ReasonClosed:
		return false
	default:
		return e.Code != codes.OK
	}
}

func logCall(ctx context.Context, l logging.Logger, e interceptor.CallEvent) {
	if e.Attempts < 2 && !wantedRetry(e) {
		return
	}
	fields := append(make([]any, 0, 16),
		"method", e.Method, "target", e.Target, "attempts", e.Attempts, "code", policy.CodeName(e.Code),
		"reason", string(e.Reason), "elapsed", e.Elapsed, "waited", e.Waited)
	if err, ok := errors.AsType[*interceptor.Error](e.Err); ok && err.Commit != policy.CommitNone {
		fields = append(fields, "commit", string(err.Commit))
	}
	if e.Err == nil {
		l.Log(ctx, logging.LevelInfo, "stagger: call succeeded after retries", fields...)
		return
	}
	l.Log(ctx, logging.LevelWarn, "stagger: call failed", append(fields, "error", e.Err.Error())...)
}
