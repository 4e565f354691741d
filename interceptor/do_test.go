// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
)

const (
	getStock  = "/acme.stock.v1.StockService/GetStock"
	takeStock = "/acme.stock.v1.StockService/Take"
)

// doer returns a Retrier with a policy for GetStock, which naming declares idempotent, and for the rest of its service. Its jitter waits for
// half of each backoff.
func doer(t *testing.T, retry policy.RetryPolicy, opts ...interceptor.Option) *interceptor.Retrier {
	t.Helper()
	set := testkit.Must(policy.New(policy.Config{MethodConfig: []policy.MethodConfig{
		{Name: []string{getStock, "/acme.stock.v1.StockService/"}, RetryPolicy: &retry},
	}}))(t)
	half := interceptor.WithRandom(func() float64 { return 0.5 })
	return testkit.Must(interceptor.New(set, append([]interceptor.Option{half}, opts...)...))(t)
}

// limited returns a context with a deadline in 10 s.
func limited(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// A function that fails is run again after the policy's backoff, and the last result is the call's.
func TestDo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := doer(t, policy.RetryPolicy{})
		began := time.Now()
		var runs []string
		err := r.Do(limited(t), getStock, func(ctx context.Context) error {
			n, _ := interceptor.AttemptFromContext(ctx)
			runs = append(runs, fmt.Sprint(n, " at ", time.Since(began)))
			if n < 3 {
				return status.Error(codes.Unavailable, "restarting")
			}
			return nil
		})
		if want := "[1 at 0s 2 at 50ms 3 at 150ms]"; err != nil || fmt.Sprint(runs) != want {
			t.Errorf("%v, %v; want %s", runs, err, want)
		}
	})
}

// httpError is an error without a gRPC status.
type httpError int

func (e httpError) Error() string { return fmt.Sprint("HTTP ", int(e)) }

// unavailable gives 503 the status of a server that asks for a delay of two seconds, and leaves other errors alone.
func unavailable(err error) *status.Status {
	if !errors.Is(err, httpError(503)) {
		return nil
	}
	st, _ := status.New(codes.Unavailable, "busy").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(2 * time.Second)})
	return st
}

// Which errors of a function are retried, how often, and what the caller gets.
func TestDo_Errors(t *testing.T) {
	for name, row := range map[string]struct {
		method string
		err    error
		opts   []grpc.CallOption
		runs   int
		reason policy.Reason
		code   codes.Code
	}{
		"a status":                         {method: getStock, err: status.Error(codes.Unavailable, ""), runs: 3, reason: "attempts_exhausted", code: codes.Unavailable},
		"another code":                     {method: getStock, err: status.Error(codes.NotFound, ""), runs: 1, reason: "non_retryable", code: codes.NotFound},
		"no status":                        {method: getStock, err: httpError(503), runs: 1, reason: "non_retryable", code: codes.Unknown},
		"a status by StatusOf":             {method: getStock, err: httpError(503), opts: []grpc.CallOption{interceptor.StatusOf(unavailable)}, runs: 3, reason: "attempts_exhausted", code: codes.Unavailable},
		"none by StatusOf":                 {method: getStock, err: httpError(400), opts: []grpc.CallOption{interceptor.StatusOf(unavailable)}, runs: 1, reason: "non_retryable", code: codes.Unknown},
		"a method that isn't idempotent":   {method: takeStock, err: status.Error(codes.Unavailable, ""), runs: 1, reason: "not_idempotent", code: codes.Unavailable},
		"a call that is":                   {method: takeStock, err: status.Error(codes.Unavailable, ""), opts: []grpc.CallOption{interceptor.Idempotent()}, runs: 3, reason: "attempts_exhausted", code: codes.Unavailable},
		"a method without a policy":        {method: "/acme.other.v1.Service/Get", err: status.Error(codes.Unavailable, ""), runs: 1, reason: "non_retryable", code: codes.Unavailable},
		"MaxAttempts":                      {method: getStock, err: status.Error(codes.Unavailable, ""), opts: []grpc.CallOption{interceptor.MaxAttempts(2)}, runs: 2, reason: "attempts_exhausted", code: codes.Unavailable},
		"a wrapped error of io, by status": {method: getStock, err: fmt.Errorf("%w: %w", io.ErrUnexpectedEOF, httpError(503)), opts: []grpc.CallOption{interceptor.StatusOf(unavailable)}, runs: 3, reason: "attempts_exhausted", code: codes.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				runs := 0
				err := doer(t, policy.RetryPolicy{}).Do(limited(t), row.method, func(context.Context) error {
					runs++
					return row.err
				}, row.opts...)
				e, ok := errors.AsType[*interceptor.Error](err)
				if !ok || runs != row.runs || e.Reason != row.reason || status.Code(err) != row.code || !errors.Is(err, row.err) || err.Error() != row.err.Error() {
					t.Errorf("%d runs, %#v; want %d, %s", runs, err, row.runs, row.reason)
				}
			})
		})
	}
}

// A delay in the details of StatusOf's status replaces the backoff.
func TestDo_ServerDelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var second time.Duration
		err := doer(t, policy.RetryPolicy{}).Do(limited(t), getStock, func(ctx context.Context) error {
			if n, _ := interceptor.AttemptFromContext(ctx); n == 1 {
				return httpError(503)
			}
			second = time.Since(began)
			return nil
		}, interceptor.StatusOf(unavailable))
		if err != nil || second < 2*time.Second || second > 2500*time.Millisecond {
			t.Errorf("the second attempt after %v, %v; want 2s and its jitter", second, err)
		}
	})
}

// inMemory calls its handler as the transport of an HTTP client.
type inMemory struct{ http.Handler }

func (h inMemory) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result(), r.Context().Err()
}

// The HTTP client of ExampleRetrier_Do waits as long as the Retry-After header says. The end of a context isn't a failure of the server: the
// call keeps its code, and after an attempt's own timeout the next attempt follows.
func TestDo_HTTP(t *testing.T) {
	const ms = time.Millisecond
	busy := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	for name, row := range map[string]struct {
		first  http.HandlerFunc
		cancel time.Duration // of the call, if not 0
		retry  policy.RetryPolicy
		runs   int
		took   time.Duration
		code   codes.Code
		reason policy.Reason
	}{
		"Retry-After":    {first: busy, runs: 2, took: 1500 * ms, code: codes.OK}, // the jitter is half a second
		"the deadline":   {first: hang, runs: 1, took: 10 * time.Second, code: codes.DeadlineExceeded, reason: policy.ReasonDeadlineExceeded},
		"the caller":     {first: hang, cancel: 300 * ms, runs: 1, took: 300 * ms, code: codes.Canceled, reason: policy.ReasonCancelled},
		"an own timeout": {first: hang, retry: policy.RetryPolicy{PerAttemptTimeout: 200 * ms, OnAttemptTimeout: "RETRY"}, runs: 2, took: 250 * ms, code: codes.OK},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				runs := 0
				client := &http.Client{Transport: inMemory{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					runs++
					if runs == 1 {
						row.first(w, r)
					}
				})}}
				ctx := limited(t)
				if row.cancel > 0 {
					var cancel func()
					ctx, cancel = context.WithCancel(ctx)
					time.AfterFunc(row.cancel, cancel)
				}
				began := time.Now()
				err := doer(t, row.retry).Do(ctx, getStock, func(ctx context.Context) error { return request(ctx, client, "http://stock") },
					interceptor.StatusOf(statusOfHTTP))
				var reason policy.Reason
				if e, ok := errors.AsType[*interceptor.Error](err); ok {
					reason = e.Reason
				}
				if status.Code(err) != row.code || reason != row.reason || runs != row.runs || time.Since(began) != row.took {
					t.Errorf("%v (%s) after %v and %d runs; want %v, %s, %v, %d", err, reason, time.Since(began), runs, row.code, row.reason, row.took, row.runs)
				}
			})
		})
	}
}

// proven makes quick calls, after which an attempt may follow a slow one.
func proven(t *testing.T, r *interceptor.Retrier) {
	t.Helper()
	for range 10 {
		testkit.NoError(t, r.Do(limited(t), getStock, func(context.Context) error { return nil }))
	}
}

// A slow function is told by its context to return, and the next attempt begins when it has. Two attempts never run at a time.
func TestDo_SlowAttempt(t *testing.T) {
	for _, then := range []string{"RETRY", "HEDGE"} {
		t.Run(then, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := doer(t, policy.RetryPolicy{PerAttemptTimeout: 200 * time.Millisecond, OnAttemptTimeout: then})
				proven(t, r)
				began := time.Now()
				var running atomic.Int32
				runs := []string{}
				err := r.Do(limited(t), getStock, func(ctx context.Context) error {
					if running.Add(1) > 1 {
						t.Error("two attempts at a time")
					}
					defer running.Add(-1)
					n, _ := interceptor.AttemptFromContext(ctx)
					runs = append(runs, fmt.Sprint(n, " at ", time.Since(began)))
					if n == 1 {
						<-ctx.Done()
						time.Sleep(time.Second) // it cleans up
						return ctx.Err()
					}
					return nil
				})
				if want := "[1 at 0s 2 at 1.25s]"; err != nil || fmt.Sprint(runs) != want {
					t.Errorf("%v, %v; want %s", runs, err, want)
				}
			})
		})
	}
}

// A classifier may have an error without a status retried. It isn't asked about an attempt that the deadline has ended.
func TestDo_Classifier(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		r := doer(t, policy.RetryPolicy{}, says(interceptor.VerdictRetry, &asked))
		runs := 0
		err := r.Do(limited(t), getStock, func(context.Context) error {
			runs++
			return httpError(503)
		})
		if e, _ := errors.AsType[*interceptor.Error](err); e == nil || e.Reason != policy.ReasonAttemptsExhausted || runs != 3 || asked != 3 {
			t.Errorf("%#v after %d runs, asked %d times; want 3, each judged", err, runs, asked)
		}
		err = r.Do(limited(t), getStock, func(ctx context.Context) error {
			<-ctx.Done()
			return status.FromContextError(ctx.Err()).Err()
		})
		if status.Code(err) != codes.DeadlineExceeded || asked != 3 {
			t.Errorf("%v, asked %d times; want no question about a deadline", err, asked)
		}
	})
}

// A hedging policy sends no attempt beside a running one: the next follows a failure.
func TestDo_Hedging(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		set := testkit.Must(policy.New(policy.Config{MethodConfig: []policy.MethodConfig{{
			Name: []string{getStock}, HedgingPolicy: &policy.HedgingPolicy{
				MaxAttempts: 3, HedgingDelay: 10 * time.Millisecond, NonFatalStatusCodes: []codes.Code{codes.Unavailable},
			},
		}}}))(t)
		r := testkit.Must(interceptor.New(set))(t)
		proven(t, r)
		began := time.Now()
		var runs []time.Duration
		err := r.Do(limited(t), getStock, func(context.Context) error {
			runs = append(runs, time.Since(began))
			time.Sleep(time.Second)
			if len(runs) == 1 {
				return status.Error(codes.Unavailable, "")
			}
			return nil
		})
		if err != nil || len(runs) != 2 || runs[1] != time.Second {
			t.Errorf("runs at %v, %v", runs, err)
		}
	})
}

// The deadline ends the wait for a retry, and the caller gets the function's error.
func TestDo_Deadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		began := time.Now()
		err := doer(t, policy.RetryPolicy{}).Do(ctx, getStock, func(context.Context) error { return status.Error(codes.Unavailable, "down") })
		e, _ := errors.AsType[*interceptor.Error](err)
		if e == nil || e.Reason != policy.ReasonDeadlineTooClose || time.Since(began) != 0 {
			t.Errorf("%#v after %v", err, time.Since(began))
		}
	})
}

// The budget of one target doesn't pay for another's retries: by default, a target is the method's service.
func TestDo_Target(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		set := testkit.Must(policy.New(policy.Config{MethodConfig: []policy.MethodConfig{{
			Name: []string{"/a.A/M", "/b.B/M"}, RetryPolicy: &policy.RetryPolicy{MaxAttempts: 2},
		}}}))(t)
		var seen []string
		r := testkit.Must(interceptor.New(set, interceptor.WithObserver(interceptor.Observer{
			CallEnd: func(_ context.Context, e interceptor.CallEnd) { seen = append(seen, e.Target) },
		})))(t)
		retries := func(method string, opts ...grpc.CallOption) (n int) {
			for range 20 {
				_ = r.Do(limited(t), method, func(ctx context.Context) error {
					if k, _ := interceptor.AttemptFromContext(ctx); k > 1 {
						n++
					}
					return status.Error(codes.Unavailable, "")
				}, opts...)
			}
			return n
		}
		first := retries("/a.A/M")
		if again, other, named := retries("/a.A/M"), retries("/b.B/M"), retries("/a.A/M", interceptor.Target("inventory")); again != 0 || other != first || named != first || first == 0 {
			t.Errorf("retries: %d, then %d; of another service %d, of another target %d", first, again, other, named)
		}
		if seen[0] != "a.A" || seen[len(seen)-1] != "inventory" {
			t.Errorf("targets from %q to %q", seen[0], seen[len(seen)-1])
		}
	})
}

// The idempotency key of all attempts is in the outgoing metadata of their contexts.
func TestDo_Key(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var keys []string
		_ = doer(t, policy.RetryPolicy{}).Do(limited(t), takeStock, func(ctx context.Context) error {
			md, _ := metadata.FromOutgoingContext(ctx)
			keys = append(keys, md.Get("idempotency-key")...)
			return status.Error(codes.Unavailable, "")
		}, interceptor.IdempotencyKey("order 7"))
		if fmt.Sprint(keys) != "[order 7 order 7 order 7]" {
			t.Errorf("keys %q", keys)
		}
	})
}

// Modes, Disable, the breaker and a panic hold for a function as for a gRPC call.
func TestDo_AsACall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		count := func(r *interceptor.Retrier, opts ...grpc.CallOption) (runs int) {
			_ = r.Do(limited(t), getStock, func(context.Context) error {
				runs++
				return status.Error(codes.Unavailable, "")
			}, opts...)
			return runs
		}
		r := doer(t, policy.RetryPolicy{})
		if n := count(r, interceptor.Disable()); n != 1 {
			t.Errorf("%d runs with Disable", n)
		}
		if n := count(doer(t, policy.RetryPolicy{}, withFuse(&fuse{}))); n != 0 {
			t.Errorf("%d runs behind an open breaker", n)
		}
		func() {
			defer func() {
				if recover() != "oh" {
					t.Error("the panic is gone")
				}
			}()
			_ = r.Do(limited(t), getStock, func(context.Context) error { panic("oh") })
		}()
		testkit.NoError(t, r.SetMode(interceptor.ModeSwitch{Mode: policy.ModeOff}))
		if n := count(r); n != 1 {
			t.Errorf("%d runs in mode OFF", n)
		}
	})
}

// What Do can't carry out is an error, and the function isn't run.
func TestDo_Mistakes(t *testing.T) {
	t.Parallel()
	r := doer(t, policy.RetryPolicy{})
	run := func(context.Context) error {
		t.Error("it runs")
		return nil
	}
	resume := interceptor.Resume(func(proto.Message) (proto.Message, bool) { return nil, false })
	for _, row := range []struct {
		method string
		f      func(context.Context) error
		opt    grpc.CallOption
		want   string
	}{
		{getStock, nil, grpc.EmptyCallOption{}, "interceptor: Do: the function is nil"},
		{"GetStock", run, grpc.EmptyCallOption{}, `interceptor: Do: method "GetStock": must be a full name`},
		{getStock, run, grpc.Header(new(metadata.MD)), "option grpc.HeaderCallOption: only a gRPC call can have it"},
		{getStock, run, grpc.Trailer(new(metadata.MD)), "option grpc.TrailerCallOption: only"},
		{getStock, run, grpc.Peer(new(peer.Peer)), "option grpc.PeerCallOption: only"},
		{getStock, run, grpc.OnFinish(func(error) {}), "option grpc.OnFinishCallOption: only"},
		{getStock, run, resume, "option interceptor.resumeOption: only"},
	} {
		if err := r.Do(t.Context(), row.method, row.f, row.opt); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%v; want %q", err, row.want)
		}
	}
}
