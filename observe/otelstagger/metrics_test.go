// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package otelstagger_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats/opentelemetry"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/observe/otelstagger"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

const (
	method = "/acme.orders.v1.OrderService/GetOrder"
	hedged = "/acme.orders.v1.OrderService/FindOrder"

	file = `
budgets: [{name: orders, scope: PROCESS, throttle: {maxTokens: 6, tokenRatio: 1}}]
methodConfig:
- name: [{service: acme.orders.v1.OrderService, method: GetOrder}]
  retryPolicy:
    maxAttempts: 4
    initialBackoff: 0.1s
    maxBackoff: 1s
    backoffMultiplier: 2
    retryableStatusCodes: [UNAVAILABLE]
    jitter: NONE
    budget: orders
- name: [{service: acme.orders.v1.OrderService, method: FindOrder}]
  hedgingPolicy: {maxAttempts: 3, hedgingDelay: 0.1s, nonFatalStatusCodes: [UNAVAILABLE]}
`
)

// scene is a client with metrics, and its server.
type scene struct {
	*testserver.Server

	retrier *interceptor.Retrier
	conn    *grpc.ClientConn
	reader  *sdk.ManualReader
}

func play(t *testing.T, test func(t *testing.T, s scene), options ...otelstagger.MetricsOption) {
	t.Helper()
	playFile(t, file, test, options...)
}

func playFile(t *testing.T, file string, test func(t *testing.T, s scene), options ...otelstagger.MetricsOption) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := scene{Server: testserver.Start(t), reader: sdk.NewManualReader()}
		provider := sdk.NewMeterProvider(sdk.WithReader(s.reader))
		s.retrier = retrierOf(t, file, otelstagger.WithMetrics(provider, options...))
		s.conn = s.Dial(t, s.retrier.DialOptions()...)
		test(t, s)
	})
}

func newRetrier(t *testing.T, options ...interceptor.Option) *interceptor.Retrier {
	t.Helper()
	return retrierOf(t, file, options...)
}

func retrierOf(t *testing.T, file string, options ...interceptor.Option) *interceptor.Retrier {
	t.Helper()
	set := testkit.Must(policy.Parse("etc/retry.yaml", []byte(file)))(t)
	return testkit.Must(interceptor.New(set, options...))(t)
}

// call makes a call as generated code does.
func (s scene) call(ctx context.Context, method string) {
	ctx, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	_ = s.conn.Invoke(ctx, method, &emptypb.Empty{}, &emptypb.Empty{}, grpc.StaticMethod())
}

// outer makes a call that fails, as go-grpc-middleware's second attempt.
func (s scene) outer(ctx context.Context) {
	s.On(method, down())
	s.call(metadata.AppendToOutgoingContext(ctx, "x-retry-attempty", "1"), method)
}

// Calls without a deadline are counted, whatever their end.
func TestMetrics_WithoutDeadline(t *testing.T) {
	play(t, func(t *testing.T, s scene) {
		s.On(method, testserver.OK())
		s.call(t.Context(), method)
		want(t, s.lines(t, "stagger.client.without_deadline"), "stagger.client.without_deadline{} 0")
		testkit.NoError(t, s.conn.Invoke(t.Context(), method, &emptypb.Empty{}, &emptypb.Empty{}))
		want(t, s.lines(t, "stagger.client.without_deadline"), "stagger.client.without_deadline{} 1")
	})
}

func TestMetrics_OuterRetries(t *testing.T) {
	play(t, func(t *testing.T, s scene) {
		s.outer(t.Context())
		want(t, s.lines(t, "stagger.client.outer_retries"), "stagger.client.outer_retries{grpc.method=GetOrder grpc.target=T} 1")
	})
}

// knows makes calls of the hedged method, so that its usual latency is known.
func (s scene) knows(t *testing.T) {
	t.Helper()
	s.On(hedged, testserver.OK())
	for range usual {
		s.call(t.Context(), hedged)
	}
}

const usual = 100 // calls, which also earn what two hedges cost

// lines returns the collected data of the instruments with a prefix: "name{label=value …} value". A histogram
// shows its sum and its buckets with the upper bounds of those that are not empty.
func (s scene) lines(t *testing.T, prefixes ...string) string {
	t.Helper()
	var list []string
	for _, m := range s.collect(t) {
		if !slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(m.Name, p) }) {
			continue
		}
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			for _, p := range data.DataPoints {
				list = append(list, fmt.Sprintf("%s%s %d", m.Name, s.labels(p.Attributes), p.Value))
			}
		case metricdata.Sum[float64]:
			for _, p := range data.DataPoints {
				list = append(list, fmt.Sprintf("%s%s %v", m.Name, s.labels(p.Attributes), p.Value))
			}
		case metricdata.Gauge[int64]:
			for _, p := range data.DataPoints {
				list = append(list, fmt.Sprintf("%s%s %d", m.Name, s.labels(p.Attributes), p.Value))
			}
		case metricdata.Gauge[float64]:
			for _, p := range data.DataPoints {
				list = append(list, fmt.Sprintf("%s%s %v", m.Name, s.labels(p.Attributes), p.Value))
			}
		case metricdata.Histogram[int64]:
			for _, p := range data.DataPoints {
				list = append(list, fmt.Sprintf("%s%s %d%s", m.Name, s.labels(p.Attributes), p.Sum, buckets(p.Bounds, p.BucketCounts)))
			}
		case metricdata.Histogram[float64]:
			for _, p := range data.DataPoints {
				list = append(list, fmt.Sprintf("%s%s %.3f%s", m.Name, s.labels(p.Attributes), p.Sum, buckets(p.Bounds, p.BucketCounts)))
			}
		default:
			t.Errorf("%s is a %T", m.Name, data)
		}
	}
	slices.Sort(list)
	return strings.Join(list, "\n")
}

func (s scene) collect(t *testing.T) []metricdata.Metrics {
	t.Helper()
	var all metricdata.ResourceMetrics
	testkit.NoError(t, s.reader.Collect(t.Context(), &all))
	var list []metricdata.Metrics
	for _, scope := range all.ScopeMetrics {
		list = append(list, scope.Metrics...)
	}
	return list
}

// labels writes T for the target of the test's server, and leaves the service's name out.
func (s scene) labels(set attribute.Set) string {
	var list []string
	for _, kv := range set.ToSlice() {
		list = append(list, string(kv.Key)+"="+kv.Value.AsString())
	}
	text := "{" + strings.Join(list, " ") + "}"
	return strings.NewReplacer(s.Target(), "T", "acme.orders.v1.OrderService/", "").Replace(text)
}

func buckets(bounds []float64, counts []uint64) string {
	var text strings.Builder
	for i, n := range counts {
		switch {
		case n == 0:
		case i == len(bounds):
			fmt.Fprintf(&text, " >%v:%d", bounds[i-1], n)
		default:
			fmt.Fprintf(&text, " ≤%v:%d", bounds[i], n)
		}
	}
	return text.String()
}

func down() testserver.Step { return testserver.Fail(codes.Unavailable, "down") }

func want(t *testing.T, got string, want ...string) {
	t.Helper()
	if want := strings.Join(want, "\n"); got != want {
		t.Errorf("collected\n%s\nwant\n%s", got, want)
	}
}

func TestMetricsOfCalls(t *testing.T) {
	const client = "stagger.client."
	for name, row := range map[string]struct {
		method string
		script []testserver.Step
		want   []string
	}{
		"success at once": {method, []testserver.Step{testserver.OK()}, nil},
		"final failure": {method, []testserver.Step{testserver.Fail(codes.NotFound)}, []string{
			"stagger.client.decisions{grpc.method=GetOrder grpc.status=NOT_FOUND grpc.target=T mode=ENFORCE reason=non_retryable} 1",
		}},
		"a code that a server has invented": {method, []testserver.Step{testserver.Fail(4711)}, []string{
			"stagger.client.decisions{grpc.method=GetOrder grpc.status=UNKNOWN grpc.target=T mode=ENFORCE reason=non_retryable} 1",
		}},
		"two retries": {method, []testserver.Step{down().Times(2), testserver.OK()}, []string{
			"grpc.client.call.retries{grpc.method=GetOrder grpc.status=OK grpc.target=T} 2 ≤2:1",
			"grpc.client.call.retry_delay{grpc.method=GetOrder grpc.status=OK grpc.target=T} 0.300 ≤0.3:1",
			"stagger.client.decisions{grpc.method=GetOrder grpc.status=UNAVAILABLE grpc.target=T mode=ENFORCE reason=retry} 2",
		}},
		"an empty budget": {method, []testserver.Step{down()}, []string{
			"grpc.client.call.retries{grpc.method=GetOrder grpc.status=UNAVAILABLE grpc.target=T} 2 ≤2:1",
			"grpc.client.call.retry_delay{grpc.method=GetOrder grpc.status=UNAVAILABLE grpc.target=T} 0.300 ≤0.3:1",
			"stagger.client.decisions{grpc.method=GetOrder grpc.status=UNAVAILABLE grpc.target=T mode=ENFORCE reason=budget_exhausted} 1",
			"stagger.client.decisions{grpc.method=GetOrder grpc.status=UNAVAILABLE grpc.target=T mode=ENFORCE reason=retry} 2",
		}},
		"two hedges": {hedged, []testserver.Step{testserver.Hang().Times(2), testserver.OK()}, []string{
			"grpc.client.call.hedges{grpc.method=FindOrder grpc.status=OK grpc.target=T} 2 ≤2:1",
			"stagger.client.decisions{grpc.method=FindOrder grpc.status=SLOW grpc.target=T mode=ENFORCE reason=hedge} 2",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s scene) {
				s.knows(t)
				s.On(row.method, row.script...)
				s.call(t.Context(), row.method)
				want(t, s.lines(t, client+"decisions", "grpc.client.call."), row.want...)
			})
		})
	}
}

func TestMetricsWhileACallWaits(t *testing.T) {
	play(t, func(t *testing.T, s scene) {
		s.On(method, down())
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, func() {
			want(t, s.lines(t, "stagger.client."),
				"stagger.client.oldest{grpc.method=GetOrder grpc.target=T} 0.05",
				"stagger.client.running{grpc.method=GetOrder grpc.target=T} 1",
				"stagger.client.waiting{wait=answer} 0",
				"stagger.client.waiting{wait=backoff} 1",
				"stagger.client.waiting{wait=connection} 0",
				"stagger.client.without_deadline{} 0")
			cancel()
		})
		s.call(ctx, method)
		want(t, s.lines(t, "stagger.client.", "grpc.client.call."),
			"grpc.client.call.retry_delay{grpc.method=GetOrder grpc.status=CANCELLED grpc.target=T} 0.050 ≤0.05:1",
			"stagger.client.calls{grpc.method=GetOrder grpc.status=CANCELLED grpc.target=T reason=cancelled slow=false} 1",
			"stagger.client.decisions{grpc.method=GetOrder grpc.status=CANCELLED grpc.target=T mode=ENFORCE reason=cancelled} 1",
			"stagger.client.waiting{wait=answer} 0",
			"stagger.client.waiting{wait=backoff} 0",
			"stagger.client.waiting{wait=connection} 0",
			"stagger.client.without_deadline{} 0")
	})
}

// Each call is counted when it ends, by its reason: a success, a deadline, and users who leave a slow service or a fast one.
func TestMetricsOfCalls_Ended(t *testing.T) {
	play(t, func(t *testing.T, s scene) {
		in := func(d, leaves time.Duration) {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			defer cancel()
			time.AfterFunc(leaves, cancel)
			_ = s.conn.Invoke(ctx, method, &emptypb.Empty{}, &emptypb.Empty{}, grpc.StaticMethod())
		}
		s.On(method, testserver.OK())
		in(time.Second, time.Hour)
		s.On(method, testserver.Hang())
		in(time.Second, time.Hour)
		in(time.Second, 997*time.Millisecond) // of a chain: CANCELLED, at its deadline
		in(time.Second, 500*time.Millisecond)
		in(time.Second, 100*time.Millisecond)
		want(t, s.lines(t, "stagger.client.calls", "stagger.client.attempts"),
			"stagger.client.calls{grpc.method=GetOrder grpc.status=CANCELLED grpc.target=T reason=cancelled slow=false} 1",
			"stagger.client.calls{grpc.method=GetOrder grpc.status=CANCELLED grpc.target=T reason=cancelled slow=true} 1",
			"stagger.client.calls{grpc.method=GetOrder grpc.status=CANCELLED grpc.target=T reason=deadline_exceeded slow=true} 1",
			"stagger.client.calls{grpc.method=GetOrder grpc.status=DEADLINE_EXCEEDED grpc.target=T reason=deadline_exceeded slow=true} 1",
			"stagger.client.calls{grpc.method=GetOrder grpc.status=OK grpc.target=T reason=succeeded slow=false} 1")
	})
}

// With Backends, attempts are counted by their backends, also those that lost.
func TestMetricsBackends(t *testing.T) {
	play(t, func(t *testing.T, s scene) {
		s.knows(t)
		s.On(hedged, testserver.Hang().Times(1), testserver.OK())
		s.call(t.Context(), hedged)
		want(t, s.lines(t, "stagger.client.attempts"),
			"stagger.client.attempts{grpc.status=CANCELLED grpc.target=T slow=true stagger.backend=bufconn} 1",
			"stagger.client.attempts{grpc.status=OK grpc.target=T slow=false stagger.backend=bufconn} 101")
	}, otelstagger.Backends())
}

// Labels distinguish decisions in mode OBSERVE, for which no budget pays.
func TestMetricsOfModes(t *testing.T) {
	play(t, func(t *testing.T, s scene) {
		set := func(m policy.Mode) {
			testkit.NoError(t, s.retrier.SetMode(interceptor.ModeSwitch{Mode: m}))
		}
		s.On(method, down())
		set(policy.ModeObserve)
		for range 3 {
			s.call(t.Context(), method)
		}
		set(policy.ModeOff)
		s.call(t.Context(), method)
		want(t, s.lines(t, "stagger.client.decisions", "grpc.client.call.", "stagger.budget.refused", "stagger.budget.granted"),
			"stagger.client.decisions{grpc.method=GetOrder grpc.status=UNAVAILABLE grpc.target=T mode=OBSERVE reason=retry} 3",
			"stagger.client.decisions{grpc.method=GetOrder grpc.status=UNAVAILABLE grpc.target=T mode=OFF reason=mode_off} 1")
		p := s.retrier.State()
		want(t, s.lines(t, "stagger.policy.info"), "stagger.policy.info{hash="+p.Policies.Hash()+" mode=OFF source="+p.Policies.Source()+"} 1")
	})
}

func TestMetricsOfPolicies(t *testing.T) {
	play(t, func(t *testing.T, s scene) {
		line := func(p interceptor.State) string {
			return "stagger.policy.info{hash=" + p.Policies.Hash() + " mode=ENFORCE source=" + p.Policies.Source() + "} 1"
		}
		first := s.retrier.State()
		// Zeros are there from the start, so that the first change is an increase.
		want(t, s.lines(t, "stagger.policy"), line(first), "stagger.policy.refused{} 0", "stagger.policy.reloads{result=followed} 0", "stagger.policy.reloads{result=refused} 0")
		next := testkit.Must(policy.Parse("etc/retry.yaml", []byte("# less\n{}")))(t)
		testkit.NoError(t, s.retrier.Reload(next))
		if now := s.retrier.State(); now.Policies == first.Policies {
			t.Fatalf("%+v", now)
		}
		want(t, s.lines(t, "stagger.policy"), line(s.retrier.State()), "stagger.policy.refused{} 0", "stagger.policy.reloads{result=followed} 1", "stagger.policy.reloads{result=refused} 0")
	})
}

// A method from outside is not shown, unless Methods accepts it.
func TestMetricsOptions(t *testing.T) {
	t.Run("methods, target and attributes", func(t *testing.T) {
		play(t, func(t *testing.T, s scene) {
			s.On("*", down())
			for _, method := range []string{method, "/acme.orders.v1.OrderService/Any"} {
				_ = s.conn.Invoke(t.Context(), method, &emptypb.Empty{}, &emptypb.Empty{})
			}
			want(t, s.lines(t, "stagger.client.decisions", "grpc.client.call.retries", "stagger.client.waiting", "stagger.budget.refused"),
				"grpc.client.call.retries{grpc.method=other grpc.status=UNAVAILABLE grpc.target=somewhere retrier=a} 2 ≤2:1",
				"stagger.budget.refused{budget=orders grpc.target= kind=throttle retrier=a service=} 1",
				"stagger.client.decisions{grpc.method=Any grpc.status=UNAVAILABLE grpc.target=somewhere mode=ENFORCE reason=non_retryable retrier=a} 1",
				"stagger.client.decisions{grpc.method=other grpc.status=UNAVAILABLE grpc.target=somewhere mode=ENFORCE reason=budget_exhausted retrier=a} 1",
				"stagger.client.decisions{grpc.method=other grpc.status=UNAVAILABLE grpc.target=somewhere mode=ENFORCE reason=retry retrier=a} 2",
				"stagger.client.waiting{retrier=a wait=answer} 0",
				"stagger.client.waiting{retrier=a wait=backoff} 0",
				"stagger.client.waiting{retrier=a wait=connection} 0")
		}, otelstagger.Methods(func(m string) bool { return m == "/acme.orders.v1.OrderService/Any" }),
			otelstagger.Target(func(string) string { return "somewhere" }),
			otelstagger.Attributes(attribute.String("retrier", "a")))
	})
}

// gRPC's own metrics have the same names for method, target and status, so that a panel joins both, and none of them is recorded twice.
func TestMetrics_BesideGRPC(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := scene{Server: testserver.Start(t), reader: sdk.NewManualReader()}
		provider := sdk.NewMeterProvider(sdk.WithReader(s.reader))
		s.retrier = newRetrier(t, otelstagger.WithMetrics(provider, otelstagger.Backends()))
		own := opentelemetry.DialOption(opentelemetry.Options{MetricsOptions: opentelemetry.MetricsOptions{MeterProvider: provider}})
		s.conn = s.Dial(t, append([]grpc.DialOption{own}, s.retrier.DialOptions()...)...)
		s.On(method, down().Times(2), testserver.OK())
		s.call(t.Context(), method)
		labels := map[string][]string{}
		for _, m := range s.collect(t) {
			if labels[m.Name] != nil {
				t.Errorf("%s is recorded twice", m.Name)
			}
			_, keys := shape(t, m)
			labels[m.Name] = strings.Split(keys, ", ")
		}
		for _, name := range []string{"stagger.client.calls", "stagger.client.decisions", "grpc.client.call.retries"} {
			for _, label := range labels["grpc.client.call.duration"] {
				if !slices.Contains(labels[name], label) {
					t.Errorf("%s has the labels %q; want gRPC's %s", name, labels[name], label)
				}
			}
		}
		if len(labels["grpc.client.call.duration"]) != 3 {
			t.Errorf("gRPC's own have %q", labels["grpc.client.call.duration"])
		}
	})
}

// Buckets and units are those of gRFC A96, and for latencies of A66.
func TestMetricsBucketsAndUnits(t *testing.T) {
	play(t, func(t *testing.T, s scene) {
		s.On(method, down().Times(1), testserver.OK())
		s.knows(t)
		s.On(hedged, testserver.Hang().Times(1), testserver.OK())
		s.call(t.Context(), method)
		s.call(t.Context(), hedged)
		seen := 0
		for _, m := range s.collect(t) {
			switch data := m.Data.(type) {
			case metricdata.Histogram[int64]:
				seen++
				if got := data.DataPoints[0].Bounds; !slices.Equal(got, []float64{1, 2, 3, 4, 5}) {
					t.Errorf("%s: %v", m.Name, got)
				}
			case metricdata.Histogram[float64]:
				seen++
				if got := data.DataPoints[0].Bounds; !slices.Equal(got, opentelemetry.DefaultLatencyBounds) || m.Unit != "s" {
					t.Errorf("%s: %v in %q", m.Name, got, m.Unit)
				}
			}
		}
		if seen != 3 {
			t.Errorf("%d histograms; want 3", seen)
		}
	})
}

func TestMetricsBadOptions(t *testing.T) {
	t.Parallel()
	provider := sdk.NewMeterProvider()
	set := testkit.Must(compiled.NewSet(spec.Config{}))(t)
	for text, option := range map[string]interceptor.Option{
		"otelstagger: WithMetrics(nil): must be a MeterProvider": otelstagger.WithMetrics(nil),
		"otelstagger: WithMetrics: option 1 is empty":            otelstagger.WithMetrics(provider, otelstagger.Backends(), otelstagger.MetricsOption{}),
		"otelstagger: Methods(nil): must be a function":          otelstagger.WithMetrics(provider, otelstagger.Methods(nil)),
		"otelstagger: Target(nil): must be a function":           otelstagger.WithMetrics(provider, otelstagger.Target(nil)),
	} {
		if _, err := interceptor.New(set, option); err == nil || !strings.HasPrefix(err.Error(), text) {
			t.Errorf("%v; want %s", err, text)
		}
	}
}

// Refused changes are counted, and attributes distinguish two Retriers.
func TestMetricsOfAFileThatIsRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "retry.yaml")
	synctest.Test(t, func(t *testing.T) {
		testkit.NoError(t, os.WriteFile(path, []byte(file), 0o600))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s := scene{Server: testserver.Start(t), reader: sdk.NewManualReader()}
		provider := sdk.NewMeterProvider(sdk.WithReader(s.reader))
		named := func(name string) interceptor.Option {
			return otelstagger.WithMetrics(provider, otelstagger.Attributes(attribute.String("retrier", name)))
		}
		refused := make(chan string, 1)
		testkit.Must(interceptor.Watch(ctx, path, named("a"), interceptor.WithObserver(interceptor.Observer{
			Diagnostic: func(d policy.Diagnostic) { refused <- d.String() },
		})))(t)
		defer runtime.KeepAlive(newRetrier(t, named("b")))
		testkit.NoError(t, os.WriteFile(path, []byte("maxWaiting: many"), 0o600))
		<-refused
		want(t, s.lines(t, "stagger.policy.reloads", "stagger.policy.refused"),
			"stagger.policy.refused{retrier=a} 1", "stagger.policy.refused{retrier=b} 0",
			"stagger.policy.reloads{result=followed retrier=a} 0", "stagger.policy.reloads{result=followed retrier=b} 0",
			"stagger.policy.reloads{result=refused retrier=a} 1", "stagger.policy.reloads{result=refused retrier=b} 0")
		testkit.NoError(t, os.WriteFile(path, []byte(file), 0o600))
		time.Sleep(5 * time.Second)
		want(t, s.lines(t, "stagger.policy.refused"), "stagger.policy.refused{retrier=a} 0", "stagger.policy.refused{retrier=b} 0")
	})
}

func TestMetricsAreCollectedWhileCallsRun(t *testing.T) {
	play(t, func(t *testing.T, s scene) {
		s.On("*", testserver.Random(1, 0.5, down()), testserver.OK())
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 50 {
					s.call(t.Context(), method)
				}
			})
		}
		for range 100 {
			s.collect(t)
		}
		wg.Wait()
	})
}
