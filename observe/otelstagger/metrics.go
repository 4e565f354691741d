// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package otelstagger

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strconv"
	"strings"
	"time"
	"weak"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/running"
	"github.com/stagger-go/stagger/policy"
)

// scope is the name of meter and tracer.
const scope = "github.com/stagger-go/stagger/observe/otelstagger"

// WithMetrics records a Retrier's metrics with a provider: calls that run and that have ended, decisions about failed attempts, retries
// and hedges of calls, waiting calls, balances, and the current policies. The README of this package lists instruments and labels, which are
// gRPC's own where gRPC has one: grpc.method, grpc.target and grpc.status. Of a call that succeeds at the first attempt, only its end is
// counted. Gauges are read when metrics are collected.
//
// Two Retriers with one provider need different [Attributes]. The provider does not keep a Retrier alive, and stops reading
// one that the program has dropped.
func WithMetrics(provider metric.MeterProvider, options ...MetricsOption) interceptor.Option {
	return func(r *interceptor.Retrier) error {
		if provider == nil {
			return errors.New("otelstagger: WithMetrics(nil): must be a MeterProvider; otel.GetMeterProvider of OpenTelemetry returns the program's")
		}
		m := &metrics{
			retrier:  weak.Make(r),
			targets:  boundedLabels{what: "target", remedy: "; otelstagger.Target can give several targets one label"},
			services: boundedLabels{what: "service"},
			named:    func(string) bool { return false },
		}
		for i, option := range options {
			if option.apply == nil {
				return fmt.Errorf("otelstagger: WithMetrics: option %d is empty", i)
			}
			if err := option.apply(m); err != nil {
				return err
			}
		}
		callback, err := m.instruments(provider.Meter(scope))
		if err != nil {
			return fmt.Errorf("otelstagger: WithMetrics: %w", err)
		}
		runtime.AddCleanup(r, func(callback metric.Registration) { _ = callback.Unregister() }, callback)
		o := interceptor.Observer{
			CallStart: m.begin,
			Decision:  m.decision,
			Wait:      m.wait,
			Sent:      m.count,
			CallEnd:   m.call,
			Reload:    m.reload,
		}
		if m.backends != nil {
			o.Attempt = m.attempt
		}
		return interceptor.WithObserver(o)(r)
	}
}

// MetricsOption configures [WithMetrics].
type MetricsOption struct{ apply func(*metrics) error }

// Methods records methods by name if f accepts them, such as "/acme.orders.v1.OrderService/GetOrder". By default,
// a call's method is "other" unless the call has grpc.StaticMethod, as in generated code: the number of names from
// outside is unbounded.
func Methods(f func(method string) bool) MetricsOption {
	return MetricsOption{func(m *metrics) error {
		if f == nil {
			return errors.New("otelstagger: Methods(nil): must be a function")
		}
		m.named = f
		return nil
	}}
}

// Target uses f to convert targets to labels, for programs with too many targets: without it, and with it, the first thousand labels are
// shown, and the label of further targets is "other", which is reported once to OpenTelemetry's error handler. For balances with the same
// labels, Target adds up the counts, and shows the smallest remaining share.
func Target(f func(target string) string) MetricsOption {
	return MetricsOption{func(m *metrics) error {
		if f == nil {
			return errors.New("otelstagger: Target(nil): must be a function")
		}
		m.targets.convert = f
		return nil
	}}
}

// Backends counts attempts by backend, in stagger.client.attempts, with the label stagger.backend: the address that gRPC names at the end
// of an attempt, a proxy's if one stands before the service. The alert StaggerBackendFails needs it. It is off by default, since each
// backend is a label. The first thousand addresses of a Retrier are shown. Further ones are "other", which is reported once to
// OpenTelemetry's error handler. Where pods come and go, the table of the debug page forgets the old ones.
func Backends() MetricsOption {
	return MetricsOption{func(m *metrics) error {
		m.backends = &boundedLabels{what: "backend"}
		return nil
	}}
}

// Attributes adds attributes to all metrics.
func Attributes(attributes ...attribute.KeyValue) MetricsOption {
	return MetricsOption{func(m *metrics) error {
		m.attributes = append(m.attributes, attributes...)
		return nil
	}}
}

// metrics has the instruments of one Retrier.
type metrics struct {
	retrier    weak.Pointer[interceptor.Retrier] // the provider holds the callback that reads it
	named      func(method string) bool
	targets    boundedLabels
	services   boundedLabels  // of budgets
	backends   *boundedLabels // nil without Backends
	attributes []attribute.KeyValue
	running    running.Calls

	calls, attempts metric.Int64Counter
	decisions       metric.Int64Counter
	outer           metric.Int64Counter
	waits           metric.Int64Counter
	retries, hedges metric.Int64Histogram
	delay           metric.Float64Histogram
	reloads         metric.Int64Counter

	runningCalls      metric.Int64ObservableUpDownCounter
	oldest            metric.Float64ObservableGauge
	waiting           metric.Int64ObservableUpDownCounter
	withoutDeadline   metric.Int64ObservableCounter
	balance, capacity metric.Float64ObservableGauge
	granted, refused  metric.Int64ObservableCounter
	info, refusedFile metric.Int64ObservableGauge
}

// The buckets of gRFC A96; those for latencies come from A66.
var (
	countBuckets = metric.WithExplicitBucketBoundaries(1, 2, 3, 4, 5)
	delayBuckets = metric.WithExplicitBucketBoundaries(0, 0.00001, 0.00005, 0.0001, 0.0003, 0.0006, 0.0008, 0.001, 0.002,
		0.003, 0.004, 0.005, 0.006, 0.008, 0.01, 0.013, 0.016, 0.02, 0.025, 0.03, 0.04, 0.05, 0.065, 0.08, 0.1, 0.13, 0.16,
		0.2, 0.25, 0.3, 0.4, 0.5, 0.65, 0.8, 1, 2, 5, 10, 20, 50, 100)
)

// instruments makes all instruments, and registers collect.
func (m *metrics) instruments(meter metric.Meter) (metric.Registration, error) {
	// grpc-go doesn't record these three itself. Once it does, they leave.
	const calls = "grpc.client.call."
	var errs [19]error
	m.decisions, errs[0] = meter.Int64Counter("stagger.client.decisions", metric.WithUnit("{decision}"),
		metric.WithDescription("Retries and hedges when they are sent, and the reasons for which others were not. With mode OBSERVE, the first that each call would send: "+
			"the second failure of a call is not known."))
	m.retries, errs[1] = meter.Int64Histogram(calls+"retries", metric.WithUnit("{retry}"), countBuckets,
		metric.WithDescription("Number of retries during the client call. If there were no retries, 0 is not reported."))
	m.hedges, errs[2] = meter.Int64Histogram(calls+"hedges", metric.WithUnit("{hedge}"), countBuckets,
		metric.WithDescription("Number of hedges during the client call. If there were no hedges, 0 is not reported."))
	m.delay, errs[3] = meter.Float64Histogram(calls+"retry_delay", metric.WithUnit("s"), delayBuckets,
		metric.WithDescription("Total time of delay while there is no active attempt during the client call."))
	m.reloads, errs[4] = meter.Int64Counter("stagger.policy.reloads", metric.WithUnit("{reload}"),
		metric.WithDescription("Changes of the policies that were followed or refused."))
	m.waiting, errs[5] = meter.Int64ObservableUpDownCounter("stagger.client.waiting", metric.WithUnit("{call}"),
		metric.WithDescription("Calls that wait for their next attempt."))
	m.balance, errs[6] = meter.Float64ObservableGauge("stagger.budget.balance", metric.WithUnit("{attempt}"),
		metric.WithDescription("Extra attempts that the budget would grant now."))
	m.capacity, errs[7] = meter.Float64ObservableGauge("stagger.budget.capacity", metric.WithUnit("{attempt}"),
		metric.WithDescription("What the balance would be if nothing were spent."))
	m.granted, errs[8] = meter.Int64ObservableCounter("stagger.budget.granted", metric.WithUnit("{attempt}"),
		metric.WithDescription("Extra attempts that the budget has granted."))
	m.refused, errs[9] = meter.Int64ObservableCounter("stagger.budget.refused", metric.WithUnit("{attempt}"),
		metric.WithDescription("Extra attempts that the budget refused."))
	m.info, errs[10] = meter.Int64ObservableGauge("stagger.policy.info",
		metric.WithDescription("1, with labels that describe the policies that are followed."))
	m.refusedFile, errs[11] = meter.Int64ObservableGauge("stagger.policy.refused",
		metric.WithDescription("1 while the policy file is invalid and an older one is followed, else 0."))
	m.outer, errs[12] = meter.Int64Counter("stagger.client.outer_retries", metric.WithUnit("{call}"),
		metric.WithDescription("Failed calls that a loop or an interceptor outside of the Retrier has made again."))
	m.waits, errs[13] = meter.Int64Counter("stagger.client.connection_waits", metric.WithUnit("{wait}"),
		metric.WithDescription("Waits for a connection before an extra attempt, which may not be sent."))
	m.withoutDeadline, errs[14] = meter.Int64ObservableCounter("stagger.client.without_deadline", metric.WithUnit("{call}"),
		metric.WithDescription("Unary calls with a policy, and with neither a deadline nor a timeout."))
	m.calls, errs[15] = meter.Int64Counter("stagger.client.calls", metric.WithUnit("{call}"),
		metric.WithDescription("Calls that have ended, by the reason for their end."))
	m.runningCalls, errs[16] = meter.Int64ObservableUpDownCounter("stagger.client.running", metric.WithUnit("{call}"),
		metric.WithDescription("Calls that run, of methods that have some."))
	m.oldest, errs[17] = meter.Float64ObservableGauge("stagger.client.oldest", metric.WithUnit("s"),
		metric.WithDescription("Time since the start of the oldest call that runs."))
	if m.backends != nil {
		m.attempts, errs[18] = meter.Int64Counter("stagger.client.attempts", metric.WithUnit("{attempt}"),
			metric.WithDescription("Attempts that have ended, by their backends."))
	}
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	for _, result := range []string{followed, refused} { // alerts can't see the increase of a counter that begins at 1
		m.reloads.Add(context.Background(), 0, m.with(attribute.String("result", result)))
	}
	return meter.RegisterCallback(m.collect,
		m.runningCalls, m.oldest, m.waiting, m.withoutDeadline, m.balance, m.capacity, m.granted, m.refused, m.info, m.refusedFile)
}

// collect records balances, waiting calls and the current policies. Calls need only one of its locks, at the first call
// to a target.
func (m *metrics) collect(_ context.Context, o metric.Observer) error {
	r := m.retrier.Value()
	if r == nil {
		return nil
	}
	s := r.State()
	if s.Policies == nil { // the Retrier is being made
		return nil
	}
	m.collectRunning(o)
	o.ObserveInt64(m.waiting, int64(s.Waiting.Backoff), m.with(attribute.String("wait", "backoff")))
	o.ObserveInt64(m.waiting, int64(s.Waiting.Connection), m.with(attribute.String("wait", "connection")))
	o.ObserveInt64(m.waiting, int64(s.Waiting.Answer), m.with(attribute.String("wait", "answer")))
	o.ObserveInt64(m.withoutDeadline, int64Of(s.WithoutDeadline), m.with())
	m.collectBudgets(o, s.Budgets)
	o.ObserveInt64(m.info, 1, m.with(
		attribute.String("hash", s.Policies.Hash()), attribute.String("source", valid(s.Policies.Source())),
		attribute.String("mode", string(policy.StrictestMode(s.Policies.Mode(), s.Switches[0].Mode)))))
	refusing := int64(0)
	if s.Err != nil {
		refusing = 1
	}
	o.ObserveInt64(m.refusedFile, refusing, m.with())
	return nil
}

// collectRunning reads the calls that run.
func (m *metrics) collectRunning(o metric.Observer) {
	now := time.Now()
	for _, is := range m.running.Methods() { // the labels are converted already
		labels := m.with(attribute.String("grpc.method", is.Method), attribute.String("grpc.target", is.Target))
		o.ObserveInt64(m.runningCalls, int64(is.Calls), labels)
		o.ObserveFloat64(m.oldest, now.Sub(is.Since).Seconds(), labels)
	}
}

// begin counts a call that runs from now on.
func (m *metrics) begin(ctx context.Context, e interceptor.Event) context.Context {
	return m.running.Begin(ctx, m.methodOf(e.Method, e.StaticMethod), m.targets.of(e.Target), time.Now())
}

// attempt counts an attempt that has ended.
func (m *metrics) attempt(ctx context.Context, e interceptor.Event) {
	if e.Peer == nil { // it has reached none
		return
	}
	m.attempts.Add(ctx, 1, m.with(
		attribute.String("grpc.target", m.targets.of(e.Target)), attribute.String("stagger.backend", m.backends.of(e.Peer.String())),
		attribute.String("grpc.status", codeName(e.Code)), attribute.String("slow", strconv.FormatBool(e.SlowAttempt))))
}

// decision counts the decisions after which nothing is sent.
func (m *metrics) decision(ctx context.Context, e interceptor.Event) {
	if !e.WillRetry {
		m.count(ctx, e)
	}
}

// wait counts the waits for a connection.
func (m *metrics) wait(ctx context.Context, e interceptor.Event) {
	m.waits.Add(ctx, 1, m.with(
		attribute.String("grpc.method", m.methodOf(e.Method, e.StaticMethod)), attribute.String("grpc.target", m.targets.of(e.Target))))
}

// count counts an extra attempt, or the reason for none.
func (m *metrics) count(ctx context.Context, e interceptor.Event) {
	code := codeName(e.Code)
	if e.Slow() {
		code = "SLOW"
	}
	m.decisions.Add(ctx, 1, m.with(
		attribute.String("grpc.method", m.methodOf(e.Method, e.StaticMethod)), attribute.String("grpc.target", m.targets.of(e.Target)),
		attribute.String("grpc.status", code), attribute.String("reason", string(e.Reason)), attribute.String("mode", string(e.Mode))))
}

// call records the extra attempts of a call.
func (m *metrics) call(ctx context.Context, e interceptor.CallEnd) {
	m.running.End(ctx)
	m.countCall(ctx, e)
	if e.OuterRetry {
		m.outer.Add(ctx, 1, m.with(
			attribute.String("grpc.method", m.methodOf(e.Method, e.StaticMethod)), attribute.String("grpc.target", m.targets.of(e.Target))))
	}
	retries := max(e.Attempts-1-e.Hedges, 0)
	if retries == 0 && e.Hedges == 0 && e.Waited == 0 {
		return
	}
	labels := m.callLabels(e)
	if retries > 0 {
		m.retries.Record(ctx, int64(retries), labels)
	}
	if e.Hedges > 0 {
		m.hedges.Record(ctx, int64(e.Hedges), labels)
	}
	if e.Waited > 0 {
		m.delay.Record(ctx, e.Waited.Seconds(), labels)
	}
}

// countCall counts a call that has ended.
func (m *metrics) countCall(ctx context.Context, e interceptor.CallEnd) {
	m.calls.Add(ctx, 1, m.with(
		attribute.String("grpc.method", m.methodOf(e.Method, e.StaticMethod)), attribute.String("grpc.target", m.targets.of(e.Target)),
		attribute.String("grpc.status", codeName(e.Code)), attribute.String("reason", string(e.Reason)),
		attribute.String("slow", strconv.FormatBool(e.SlowAttempt))))
}

func (m *metrics) callLabels(e interceptor.CallEnd) metric.MeasurementOption {
	return m.with(
		attribute.String("grpc.method", m.methodOf(e.Method, e.StaticMethod)), attribute.String("grpc.target", m.targets.of(e.Target)),
		attribute.String("grpc.status", codeName(e.Code)))
}

// The results of a change of the policies.
const followed, refused = "followed", "refused"

func (m *metrics) reload(_ *policy.Set, _ []string, err error) {
	result := followed
	if err != nil {
		result = refused
	}
	m.reloads.Add(context.Background(), 1, m.with(attribute.String("result", result)))
}

func (m *metrics) with(attributes ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(append(attributes, m.attributes...)...))
}

// methodOf returns the method's label, as in gRPC's own metrics.
func (m *metrics) methodOf(method string, static bool) string {
	if static || m.named(method) {
		return valid(strings.TrimPrefix(method, "/"))
	}
	return "other"
}

// codeName returns the label of a code; it bounds the number of labels, since servers may send any number.
func codeName(c codes.Code) string {
	if c > codes.Unauthenticated {
		c = codes.Unknown
	}
	return code.Code(c).String()
}

// int64Of converts n to the type of metrics.
func int64Of(n uint64) int64 { return int64(min(n, math.MaxInt64)) }
