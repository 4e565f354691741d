// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package otelstagger_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"unicode/utf8"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	experimental "google.golang.org/grpc/experimental/opentelemetry"
	"google.golang.org/grpc/stats/opentelemetry"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/observe/otelstagger"
	"github.com/stagger-go/stagger/testserver"
)

// traced is a client with traces, and possibly other instrumentation, with its server.
type traced struct {
	scene

	spans *tracetest.InMemoryExporter
}

// playTraces runs a test with a client that dials with the options that dial makes of the Retrier's.
func playTraces(t *testing.T, dial func(own []grpc.DialOption, m *sdkmetric.MeterProvider, t trace.TracerProvider) []grpc.DialOption, test func(t *testing.T, s traced)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := traced{scene{Server: testserver.Start(t), reader: sdkmetric.NewManualReader()}, tracetest.NewInMemoryExporter()}
		meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(s.reader))
		tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(s.spans))
		s.retrier = newRetrier(t, otelstagger.WithTraces(tracers))
		s.conn = s.Dial(t, dial(s.retrier.DialOptions(), meters, tracers)...)
		test(t, s)
	})
}

func alone(own []grpc.DialOption, _ *sdkmetric.MeterProvider, _ trace.TracerProvider) []grpc.DialOption {
	return own
}

func ofGRPC(m *sdkmetric.MeterProvider, t trace.TracerProvider) grpc.DialOption {
	return opentelemetry.DialOption(opentelemetry.Options{
		MetricsOptions: opentelemetry.MetricsOptions{MeterProvider: m},
		TraceOptions:   experimental.TraceOptions{TracerProvider: t, TextMapPropagator: propagation.TraceContext{}},
	})
}

func ofOtelgrpc(m *sdkmetric.MeterProvider, t trace.TracerProvider) grpc.DialOption {
	return grpc.WithStatsHandler(otelgrpc.NewClientHandler(otelgrpc.WithMeterProvider(m), otelgrpc.WithTracerProvider(t)))
}

// tree formats the spans as a tree, with stagger's attributes and the events.
func (s traced) tree() string {
	synctest.Wait()
	stubs := s.spans.GetSpans()
	slices.SortStableFunc(stubs, func(a, b tracetest.SpanStub) int { return a.StartTime.Compare(b.StartTime) })
	var b strings.Builder
	var write func(parent trace.SpanID, indent string)
	write = func(parent trace.SpanID, indent string) {
		for _, span := range stubs {
			if span.Parent.SpanID() != parent {
				continue
			}
			fmt.Fprintf(&b, "%s%s %s%s\n", indent, span.SpanKind, span.Name, attributes(span.Attributes, "stagger.", "rpc.response.status_code", "network.peer."))
			for _, e := range span.Events {
				if strings.HasPrefix(attributes(e.Attributes, "stagger."), " stagger") {
					fmt.Fprintf(&b, "%s  - %s%s\n", indent, e.Name, attributes(e.Attributes, ""))
				}
			}
			write(span.SpanContext.SpanID(), indent+"  ")
		}
	}
	write(trace.SpanID{}, "")
	return strings.ReplaceAll(strings.ReplaceAll(b.String(), s.Target(), "T"), "acme.orders.v1.OrderService", "S")
}

// attributes writes those whose keys begin with one of the prefixes, in their order.
func attributes(list []attribute.KeyValue, prefixes ...string) string {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b attribute.KeyValue) int { return cmp.Compare(a.Key, b.Key) })
	var text strings.Builder
	for _, kv := range list {
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(string(kv.Key), p) }) {
			fmt.Fprintf(&text, " %s=%v", strings.TrimPrefix(string(kv.Key), "rpc.response."), kv.Value.AsInterface())
		}
	}
	return text.String()
}

const (
	callSpan = "internal S/GetOrder status_code=OK stagger.attempts=3 stagger.hedges=0 stagger.mode=ENFORCE stagger.reason=succeeded stagger.retries=2 stagger.target=T\n" +
		"  - retry network.peer.address=bufconn status_code=UNAVAILABLE stagger.attempt=1 stagger.delay=0.1 stagger.reason=retry\n" +
		"  - retry network.peer.address=bufconn status_code=UNAVAILABLE stagger.attempt=2 stagger.delay=0.2 stagger.reason=retry\n"
	attemptSpans = "  client S/GetOrder network.peer.address=bufconn status_code=UNAVAILABLE stagger.attempt=1 stagger.hedge=false\n" +
		"  client S/GetOrder network.peer.address=bufconn status_code=UNAVAILABLE stagger.attempt=2 stagger.hedge=false\n" +
		"  client S/GetOrder network.peer.address=bufconn status_code=OK stagger.attempt=3 stagger.hedge=false\n"
)

func TestTraces(t *testing.T) {
	for name, row := range map[string]struct {
		method string
		script []testserver.Step
		want   string
	}{
		"three attempts": {method, []testserver.Step{down().Times(2), testserver.OK()}, callSpan + attemptSpans},
		"success at once": {method, []testserver.Step{testserver.OK()}, "" +
			"internal S/GetOrder status_code=OK stagger.attempts=1 stagger.hedges=0 stagger.mode=ENFORCE stagger.reason=succeeded stagger.retries=0 stagger.target=T\n" +
			"  client S/GetOrder network.peer.address=bufconn status_code=OK stagger.attempt=1 stagger.hedge=false\n"},
		"the budget is empty": {method, []testserver.Step{down()}, "" +
			"internal S/GetOrder status_code=UNAVAILABLE stagger.attempts=3 stagger.hedges=0 stagger.mode=ENFORCE stagger.reason=budget_exhausted stagger.retries=2 stagger.target=T\n" +
			"  - retry network.peer.address=bufconn status_code=UNAVAILABLE stagger.attempt=1 stagger.delay=0.1 stagger.reason=retry\n" +
			"  - retry network.peer.address=bufconn status_code=UNAVAILABLE stagger.attempt=2 stagger.delay=0.2 stagger.reason=retry\n" +
			"  - no retry network.peer.address=bufconn status_code=UNAVAILABLE stagger.attempt=3 stagger.budget=orders stagger.reason=budget_exhausted\n" +
			"  client S/GetOrder network.peer.address=bufconn status_code=UNAVAILABLE stagger.attempt=1 stagger.hedge=false\n" +
			"  client S/GetOrder network.peer.address=bufconn status_code=UNAVAILABLE stagger.attempt=2 stagger.hedge=false\n" +
			"  client S/GetOrder network.peer.address=bufconn status_code=UNAVAILABLE stagger.attempt=3 stagger.hedge=false\n"},
		"a hedge wins": {hedged, []testserver.Step{testserver.Hang().Times(1), testserver.OK()}, "" +
			"internal S/FindOrder status_code=OK stagger.attempts=2 stagger.hedges=1 stagger.mode=ENFORCE stagger.reason=succeeded stagger.retries=0 stagger.target=T\n" +
			"  - hedge stagger.attempt=1 stagger.delay=0 stagger.reason=hedge\n" +
			"  client S/FindOrder network.peer.address=bufconn status_code=CANCELLED stagger.attempt=1 stagger.hedge=false\n" +
			"  client S/FindOrder network.peer.address=bufconn status_code=OK stagger.attempt=2 stagger.hedge=true\n"},
	} {
		t.Run(name, func(t *testing.T) {
			playTraces(t, alone, func(t *testing.T, s traced) {
				s.knows(t)
				s.spans.Reset()
				s.On(row.method, row.script...)
				s.call(t.Context(), row.method)
				want(t, s.tree(), row.want)
				for _, span := range s.spans.GetSpans() {
					if failed := attributes(span.Attributes, "rpc.response") != " status_code=OK"; failed != (span.Status.Code.String() == "Error") {
						t.Errorf("%s: %v", attributes(span.Attributes, ""), span.Status)
					}
				}
			})
		})
	}
}

// OpenTelemetry's protocol has only valid UTF-8: a collector refuses the whole batch for one text. Long texts are cut.
func TestTracesValidUTF8(t *testing.T) {
	bad := strings.Repeat("disk full \xff", 1<<18)
	fails := func(context.Context, string, any, any, *grpc.ClientConn, grpc.UnaryInvoker, ...grpc.CallOption) error {
		return status.Error(codes.Internal, bad)
	}
	dial := func(own []grpc.DialOption, _ *sdkmetric.MeterProvider, _ trace.TracerProvider) []grpc.DialOption {
		return append(own, grpc.WithChainUnaryInterceptor(fails))
	}
	playTraces(t, dial, func(t *testing.T, s traced) {
		s.call(t.Context(), "/acme\xff/Get\xff")
		spans := s.spans.GetSpans()
		if len(spans) != 1 || !strings.HasPrefix(spans[0].Status.Description, "disk full \uFFFDdisk full") {
			t.Fatalf("%d spans: %v", len(spans), spans)
		}
		if text := spans[0].Status.Description; len(text) > 1024 || !utf8.ValidString(text) ||
			!strings.HasSuffix(text, "… (2883584 bytes)") {
			t.Errorf("a status of %d bytes: %q", len(text), text)
		}
		if name := spans[0].Name; name != "acme\uFFFD/Get\uFFFD" {
			t.Errorf("name %q", name)
		}
		for _, kv := range spans[0].Attributes {
			if !utf8.ValidString(kv.Value.String()) {
				t.Errorf("%s=%q", kv.Key, kv.Value.String())
			}
		}
	})
}

// The span of a call is a child of its caller's; a disabled call has none.
func TestTracesOfCallers(t *testing.T) {
	playTraces(t, alone, func(t *testing.T, s traced) {
		s.On("*", testserver.OK())
		provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(s.spans))
		ctx, span := provider.Tracer("application").Start(t.Context(), "checkout")
		s.call(ctx, method)
		_ = s.conn.Invoke(ctx, method, &emptypb.Empty{}, &emptypb.Empty{}, interceptor.Disable())
		span.End()
		want(t, s.tree(), "internal checkout\n"+
			"  internal S/GetOrder status_code=OK stagger.attempts=1 stagger.hedges=0 stagger.mode=ENFORCE stagger.reason=succeeded stagger.retries=0 stagger.target=T\n"+
			"    client S/GetOrder network.peer.address=bufconn status_code=OK stagger.attempt=1 stagger.hedge=false\n")
	})
}

func TestTracesUnsampled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		spans, server := tracetest.NewInMemoryExporter(), testserver.Start(t)
		tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans), sdktrace.WithSampler(sdktrace.NeverSample()))
		conn := server.Dial(t, newRetrier(t, otelstagger.WithTraces(tracers)).DialOptions()...)
		server.On(method, down().Times(2), testserver.OK())
		if err := conn.Invoke(t.Context(), method, &emptypb.Empty{}, &emptypb.Empty{}); err != nil || len(spans.GetSpans()) != 0 {
			t.Errorf("%v, %d spans", err, len(spans.GetSpans()))
		}
	})
}

// counted is how often the metrics of gRPC or otelgrpc have counted.
func (s traced) counted(t *testing.T, name string) (n uint64) {
	t.Helper()
	for line := range strings.SplitSeq(s.lines(t, name), "\n") {
		for _, bucket := range strings.Split(line, ":")[1:] {
			var count uint64
			if _, err := fmt.Sscan(bucket, &count); err != nil {
				t.Fatal(line)
			}
			n += count
		}
	}
	return n
}

// gRPC's option belongs before the Retrier's: it counts calls in an interceptor, and attempts in a stats handler.
func TestTracesBesideGRPC(t *testing.T) {
	sent := func(indent string) string { return indent + "client Sent.S.GetOrder\n" }
	attempt := func(indent string, n int) string {
		return fmt.Sprintf("%sinternal Attempt.S.GetOrder network.peer.address=bufconn stagger.attempt=%d stagger.hedge=false\n", indent, n)
	}
	for name, row := range map[string]struct {
		dial  func([]grpc.DialOption, *sdkmetric.MeterProvider, trace.TracerProvider) []grpc.DialOption
		calls uint64
		want  string
	}{
		"before the Retrier's": {
			func(own []grpc.DialOption, m *sdkmetric.MeterProvider, t trace.TracerProvider) []grpc.DialOption {
				return append([]grpc.DialOption{ofGRPC(m, t)}, own...)
			}, 1,
			sent("") + indent(callSpan) + attempt("    ", 1) + attempt("    ", 2) + attempt("    ", 3),
		},
		"after it, which is wrong: each attempt is a call": {
			func(own []grpc.DialOption, m *sdkmetric.MeterProvider, t trace.TracerProvider) []grpc.DialOption {
				return append(own, ofGRPC(m, t))
			}, 3,
			callSpan + sent("  ") + attempt("    ", 1) + sent("  ") + attempt("    ", 2) + sent("  ") + attempt("    ", 3),
		},
	} {
		t.Run(name, func(t *testing.T) {
			playTraces(t, row.dial, func(t *testing.T, s traced) {
				s.On(method, down().Times(2), testserver.OK())
				s.call(t.Context(), method)
				want(t, s.tree(), row.want)
				if calls, attempts := s.counted(t, "grpc.client.call.duration"), s.counted(t, "grpc.client.attempt.duration"); calls != row.calls || attempts != 3 {
					t.Errorf("%d calls, %d attempts; want %d and 3", calls, attempts, row.calls)
				}
			})
		})
	}
}

// otelgrpc is a stats handler: it sees attempts only, wherever its option stands.
func TestTracesBesideOtelgrpc(t *testing.T) {
	for name, dial := range map[string]func([]grpc.DialOption, *sdkmetric.MeterProvider, trace.TracerProvider) []grpc.DialOption{
		"before the Retrier's": func(own []grpc.DialOption, m *sdkmetric.MeterProvider, t trace.TracerProvider) []grpc.DialOption {
			return append([]grpc.DialOption{ofOtelgrpc(m, t)}, own...)
		},
		"after it": func(own []grpc.DialOption, m *sdkmetric.MeterProvider, t trace.TracerProvider) []grpc.DialOption {
			return append(own, ofOtelgrpc(m, t))
		},
	} {
		t.Run(name, func(t *testing.T) {
			playTraces(t, dial, func(t *testing.T, s traced) {
				s.On(method, down().Times(2), testserver.OK())
				s.call(t.Context(), method)
				want(t, s.tree(), callSpan+attemptSpans)
				if n := s.counted(t, "rpc.client"); n != 3 {
					t.Errorf("its metrics count %d; want 3", n)
				}
			})
		})
	}
}

func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n  ") + "\n"
}

func TestTracesWithoutAProvider(t *testing.T) {
	t.Parallel()
	if _, err := interceptor.New(nil, otelstagger.WithTraces(nil)); err == nil || !strings.Contains(err.Error(), "otelstagger: WithTraces(nil): must be") {
		t.Error(err)
	}
}

// A wait for a connection is an event of its own, and no retry.
func TestTracesOfWaits(t *testing.T) {
	playTraces(t, alone, func(t *testing.T, s traced) {
		s.Down()
		s.conn.Connect()
		synctest.Wait()
		s.call(t.Context(), method)
		want(t, s.tree(), "internal S/GetOrder status_code=UNAVAILABLE stagger.attempts=1 stagger.hedges=0 stagger.mode=ENFORCE stagger.reason=not_connected stagger.retries=0 stagger.target=T\n"+
			"  - wait for a connection status_code=UNAVAILABLE stagger.attempt=1\n"+
			"  - no retry status_code=UNAVAILABLE stagger.attempt=1 stagger.reason=not_connected\n"+
			"  client S/GetOrder status_code=UNAVAILABLE stagger.attempt=1 stagger.hedge=false\n")
	})
}
