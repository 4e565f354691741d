// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package otelstagger

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	otelcodes "go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/policyfile/document"
	"github.com/stagger-go/stagger/policy"
)

// WithTraces makes a span for every call; the spans of its attempts are the children:
//
//	acme.orders.v1.OrderService/GetOrder          stagger.attempts=2, stagger.reason=succeeded
//	  │  retry                                    stagger.attempt=1, network.peer.address=10.0.0.7 …, an event
//	  ├─ acme.orders.v1.OrderService/GetOrder     stagger.attempt=1, of otelgrpc, gRPC or this package
//	  └─ acme.orders.v1.OrderService/GetOrder     stagger.attempt=2, stagger.hedge=false
//
// If otelgrpc, gRPC's stats/opentelemetry or the like makes a span for each attempt, WithTraces adds the
// attempt's number to that, in any order of the dial options; otherwise it makes one. That needs
// [interceptor.Retrier.DialOptions]: with only Unary and Stream, WithTraces makes spans of calls, but not of attempts.
func WithTraces(provider trace.TracerProvider) interceptor.Option {
	return func(r *interceptor.Retrier) error {
		if provider == nil {
			return errors.New("otelstagger: WithTraces(nil): must be a TracerProvider; otel.GetTracerProvider of OpenTelemetry returns the program's")
		}
		t := &tracer{provider.Tracer(scope)}
		return errors.Join(
			interceptor.WithObserver(interceptor.Observer{CallStart: t.callStart, Decision: t.decision, Wait: t.wait, CallEnd: t.callEnd})(r),
			interceptor.WithStatsHandler(t)(r))
	}
}

// tracer makes the spans of calls, and of attempts without another span.
type tracer struct{ trace.Tracer }

// callKey is the context key of a call's span.
type callKey struct{ *tracer }

// tracedCall is what attempts know of their call.
type tracedCall struct {
	span   trace.Span
	target string
}

// callSpan returns the span of the context's call, or nil if there is none.
func (t *tracer) callSpan(ctx context.Context) trace.Span {
	return t.callOf(ctx).span
}

// callOf returns the context's call; its span is nil if there is none.
func (t *tracer) callOf(ctx context.Context) tracedCall {
	call, _ := ctx.Value(callKey{t}).(tracedCall)
	return call
}

func (t *tracer) callStart(ctx context.Context, e interceptor.Event) context.Context {
	attributes := append(rpc(e.Method), attribute.String("stagger.target", valid(e.Target)))
	ctx, span := t.Start(ctx, spanName(e.Method), trace.WithAttributes(attributes...))
	return context.WithValue(ctx, callKey{t}, tracedCall{span, e.Target})
}

// decision adds the decision after an attempt to the span of the call.
func (t *tracer) decision(ctx context.Context, e interceptor.Event) {
	span := t.callSpan(ctx)
	if span == nil || !span.IsRecording() {
		return
	}
	name := "no retry"
	if e.Mode == policy.ModeObserve && e.Reason == policy.ReasonOverloaded { // admission would have refused the call in mode ENFORCE
		name = "would refuse"
	}
	attributes := append(decided(e), attribute.String("stagger.reason", string(e.Reason)))
	if e.Reason == policy.ReasonBudgetExhausted {
		attributes = append(attributes, attribute.String("stagger.budget", valid(budgetName(e.Budget))))
	}
	attributes = append(attributes, peer(e.Peer)...)
	if e.Reason == policy.ReasonRetry || e.Reason == policy.ReasonHedge {
		if name = string(e.Reason); !e.WillRetry {
			name = "would " + name
		}
		attributes = append(attributes, attribute.Float64("stagger.delay", e.Delay.Seconds()))
	}
	span.AddEvent(name, trace.WithAttributes(attributes...))
}

// decided describes the attempt that a decision is about. One that is slow has no code.
func decided(e interceptor.Event) []attribute.KeyValue {
	number := attribute.Int("stagger.attempt", e.Attempt)
	if e.Slow() {
		return []attribute.KeyValue{number}
	}
	return []attribute.KeyValue{number, statusCode(e.Code)}
}

// wait adds the beginning of a wait for a connection to the span of the call.
func (t *tracer) wait(ctx context.Context, e interceptor.Event) {
	if span := t.callSpan(ctx); span != nil {
		span.AddEvent("wait for a connection", trace.WithAttributes(decided(e)...))
	}
}

// callEnd ends the span of a call.
func (t *tracer) callEnd(ctx context.Context, e interceptor.CallEnd) {
	span := t.callSpan(ctx)
	if span == nil {
		return
	}
	span.SetAttributes(
		attribute.Int("stagger.attempts", e.Attempts), attribute.Int("stagger.retries", max(e.Attempts-1-e.Hedges, 0)), attribute.Int("stagger.hedges", e.Hedges),
		attribute.String("stagger.reason", string(e.Reason)), attribute.String("stagger.mode", string(e.Mode)))
	endSpan(span, e.Err, time.Now())
}

// attemptKey is the key of an [ownSpan] in the context of an attempt.
type attemptKey struct{ *tracer }

// ownSpan is our span of an attempt. It is nil if another handler makes one.
type ownSpan struct {
	method string
	span   trace.Span
}

// TagRPC implements [stats.Handler]. HandleRPC finds out later whether another handler makes a span for the attempt.
func (t *tracer) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	if t.callSpan(ctx) == nil {
		return ctx
	}
	return context.WithValue(ctx, attemptKey{t}, &ownSpan{method: info.FullMethodName})
}

// HandleRPC implements [stats.Handler]. All handlers have already changed its context.
func (t *tracer) HandleRPC(ctx context.Context, event stats.RPCStats) {
	own, _ := ctx.Value(attemptKey{t}).(*ownSpan)
	if own == nil {
		return
	}
	switch event := event.(type) {
	case *stats.Begin:
		number, hedge := interceptor.AttemptFromContext(ctx)
		attributes := []attribute.KeyValue{attribute.Int("stagger.attempt", number), attribute.Bool("stagger.hedge", hedge)}
		if span := trace.SpanFromContext(ctx); span.SpanContext().SpanID() != t.callSpan(ctx).SpanContext().SpanID() {
			span.SetAttributes(attributes...)
			return
		}
		_, own.span = t.Start(ctx, spanName(own.method), trace.WithSpanKind(trace.SpanKindClient), trace.WithTimestamp(event.BeginTime),
			trace.WithAttributes(slices.Concat(attributes, rpc(own.method), server(t.callOf(ctx).target))...))
	case *stats.OutHeader:
		span := own.span
		if span == nil {
			span = trace.SpanFromContext(ctx) // whose handler may not record the backend
		}
		span.SetAttributes(peer(event.RemoteAddr)...)
	case *stats.End:
		if own.span != nil {
			if event.Error != nil {
				own.span.SetAttributes(attribute.String("error.type", codeName(status.Code(event.Error))))
			}
			endSpan(own.span, event.Error, event.EndTime)
		}
	}
}

// TagConn implements [stats.Handler].
func (*tracer) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements [stats.Handler].
func (*tracer) HandleConn(context.Context, stats.ConnStats) {}

// longestStatus bounds the bytes of a span's status: a server may send megabytes.
const longestStatus = 1024

// endSpan ends a span with the status of err.
func endSpan(span trace.Span, err error, at time.Time) {
	code := status.Code(err)
	span.SetAttributes(statusCode(code))
	if err != nil {
		span.SetStatus(otelcodes.Error, document.Bounded(status.Convert(err).Message(), longestStatus))
	}
	span.End(trace.WithTimestamp(at))
}

// spanName returns a name by OpenTelemetry's conventions for RPCs, which the attributes below follow too.
func spanName(method string) string { return valid(strings.TrimPrefix(method, "/")) }

// valid returns a text as valid UTF-8. OpenTelemetry's protocol has no other texts: a collector refuses a whole batch for one.
func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

func rpc(method string) []attribute.KeyValue {
	return []attribute.KeyValue{attribute.String("rpc.system.name", "grpc"), attribute.String("rpc.method", spanName(method))}
}

// server returns the attributes of the server that a target such as dns:///orders:50051 names.
func server(target string) []attribute.KeyValue {
	address := target
	if scheme, rest, ok := strings.Cut(target, "://"); ok {
		_, path, _ := strings.Cut(rest, "/") // after the authority
		address = path
		if scheme == "unix" {
			address = "/" + path
		}
	} else if path, ok := strings.CutPrefix(target, "unix:"); ok {
		address = path
	}
	host, port, err := net.SplitHostPort(address)
	number, numErr := strconv.Atoi(port)
	if err != nil || numErr != nil {
		return []attribute.KeyValue{attribute.String("server.address", valid(address))}
	}
	return []attribute.KeyValue{attribute.String("server.address", valid(host)), attribute.Int("server.port", number)}
}

// peer returns the attributes of an attempt's backend.
func peer(addr net.Addr) []attribute.KeyValue {
	if addr == nil {
		return nil
	}
	host, port, err := net.SplitHostPort(addr.String())
	number, numErr := strconv.Atoi(port)
	if err != nil || numErr != nil { // an in-memory connection or a Unix socket
		return []attribute.KeyValue{attribute.String("network.peer.address", valid(addr.String()))}
	}
	return []attribute.KeyValue{attribute.String("network.peer.address", valid(host)), attribute.Int("network.peer.port", number)}
}

func statusCode(c codes.Code) attribute.KeyValue {
	return attribute.String("rpc.response.status_code", codeName(c))
}
