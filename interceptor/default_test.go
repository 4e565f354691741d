// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/backoff"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// playDefault runs a test in virtual time, with a client of Default. Jitter draws the middle of its range.
func playDefault(t *testing.T, p interceptor.DefaultPolicy, test func(t *testing.T, s scene), options ...interceptor.Option) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := new(journal)
		options := append([]interceptor.Option{withJournal(j), interceptor.WithRandom(func() float64 { return 0.5 })}, options...)
		s := scene{Server: testserver.Start(t), journal: j, retrier: testkit.Must(interceptor.Default(p, options...))(t)}
		s.conn = s.Dial(t, s.retrier.DialOptions()...)
		test(t, s)
	})
}

func TestDefault_WhichCallsRetry(t *testing.T) {
	t.Parallel()
	named := interceptor.DefaultPolicy{Idempotent: []string{get, list}}
	for name, row := range map[string]struct {
		p       interceptor.DefaultPolicy
		options []interceptor.Option
		method  string
		code    codes.Code
		fails   int // times
		call    []grpc.CallOption

		waits  string
		reason policy.Reason // of a call that fails
	}{
		"named":                        {p: named, method: get, code: codes.Unavailable, fails: 2, waits: "[50ms 100ms]"},
		"another that is named":        {p: named, method: list, code: codes.Unavailable, fails: 1, waits: "[50ms]"},
		"three attempts":               {p: named, method: get, code: codes.Unavailable, fails: 9, waits: "[50ms 100ms]", reason: policy.ReasonAttemptsExhausted},
		"another code":                 {p: named, method: get, code: codes.Internal, fails: 1, waits: "[]", reason: policy.ReasonNonRetryable},
		"not named":                    {p: named, method: create, code: codes.Unavailable, fails: 1, waits: "[]", reason: policy.ReasonNotIdempotent},
		"nothing is named":             {method: get, code: codes.Unavailable, fails: 1, waits: "[]", reason: policy.ReasonNotIdempotent},
		"declared by its .proto":       {options: []interceptor.Option{interceptor.WithDescriptors(levels(t))}, method: create, code: codes.Unavailable, fails: 2, waits: "[50ms 100ms]"},
		"a .proto declares another":    {options: []interceptor.Option{interceptor.WithDescriptors(levels(t))}, method: "/acme.orders.v1.OrderService/DeleteOrder", code: codes.Unavailable, fails: 1, waits: "[]", reason: policy.ReasonNotIdempotent},
		"the caller declares the call": {method: get, code: codes.Unavailable, fails: 1, call: []grpc.CallOption{interceptor.Idempotent()}, waits: "[50ms]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for kind, desc := range map[string]*grpc.StreamDesc{"unary": nil, "server stream": serverStream} {
				t.Run(kind, func(t *testing.T) {
					playDefault(t, row.p, func(t *testing.T, s scene) {
						s.On(row.method, testserver.Fail(row.code).Times(row.fails), text("done"))
						err := exchange(t.Context(), s.conn, desc, row.method, row.call...)
						if got := s.waits(); got != row.waits || reasonOf(err) != row.reason || (err == nil) != (row.reason == "") {
							t.Errorf("%v (%s) after waits of %s; want %q after %s", err, reasonOf(err), got, row.reason, row.waits)
						}
					}, row.options...)
				})
			}
		})
	}
}

// A backoff grows to at most 1 s, and the default budget pays: an outage has three retries, and then one request for each call.
func TestDefault_Budget(t *testing.T) {
	playDefault(t, interceptor.DefaultPolicy{Idempotent: []string{get}}, func(t *testing.T, s scene) {
		s.On(get, down())
		for range 10 {
			_, _ = s.call(t.Context(), get)
		}
		budgets := s.retrier.State().Budgets
		if len(budgets) != 1 || budgets[0].Kind != "bucket" || s.Count(get) > 15 {
			t.Errorf("%d requests for 10 calls, budgets %+v; want the default bucket to bound them", s.Count(get), budgets)
		}
	})
}

func TestDefault_PerAttemptTimeout(t *testing.T) {
	for name, row := range map[string]struct {
		limit    time.Duration
		attempts int
		code     codes.Code
	}{
		"none":   {0, 1, codes.DeadlineExceeded},
		"200 ms": {200 * ms, 2, codes.OK},
	} {
		t.Run(name, func(t *testing.T) {
			playDefault(t, interceptor.DefaultPolicy{Idempotent: []string{get}, RetryPolicy: policy.RetryPolicy{PerAttemptTimeout: row.limit}}, func(t *testing.T, s scene) {
				knowLatency(s.retrier, s.conn)
				s.connect()
				s.On(get, testserver.Hang().Times(1), text("done"))
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				_, err := s.call(ctx, get)
				if status.Code(err) != row.code || s.Count(get) != row.attempts {
					t.Errorf("%v after %d attempts; want %v after %d", err, s.Count(get), row.code, row.attempts)
				}
			})
		})
	}
}

// Its policy is one like any other: it has a source, a hash and entries, and another one may replace it.
func TestDefault_State(t *testing.T) {
	t.Parallel()
	j := new(journal)
	r := testkit.Must(interceptor.Default(interceptor.DefaultPolicy{Idempotent: []string{get}, RetryPolicy: policy.RetryPolicy{PerAttemptTimeout: 1234567 * time.Nanosecond}}, withJournal(j)))(t)
	is := r.State().Policies
	if is.Source() != "policy.New" || is.Hash() == "" {
		t.Errorf("source %q, hash %q; want that of a file", is.Source(), is.Hash())
	}
	for method, safe := range map[string]bool{get: true, create: false} {
		p := is.Lookup(method)
		want := spec.Retry{
			MaxAttempts: 3, RetryableStatusCodes: []codes.Code{codes.Unavailable},
			Backoff:           backoff.Config{Initial: 100 * ms, Max: time.Second, Multiplier: 2, Growth: "EXPONENTIAL", Jitter: "FULL"},
			PerAttemptTimeout: 1234567 * time.Nanosecond, OnAttemptTimeout: "HEDGE", FirstRetry: "BACKOFF", Chain: "ALLOW",
		}
		if got := *compiled.Of(p).Retry; !reflect.DeepEqual(got, want) || (compiled.Of(p).Idempotency == "ASSUME") != safe {
			t.Errorf("%s has %+v, idempotency %s; want %+v, safe: %v", method, got, compiled.Of(p).Idempotency, want, safe)
		}
	}
	if len(j.warnings) > 0 {
		t.Errorf("warnings %q", j.warnings)
	}
	testkit.NoError(t, r.Reload(mustSet(t, config(plain()))))
	if is := r.State().Policies; compiled.Of(is.Lookup(get)).Retry.MaxAttempts != 4 {
		t.Error("a reload has not replaced it")
	}
}

func TestDefault_Refused(t *testing.T) {
	t.Parallel()
	const form = `: must be the full name of a method, such as "/acme.orders.v1.OrderService/GetOrder"`
	names := func(list ...string) interceptor.DefaultPolicy { return interceptor.DefaultPolicy{Idempotent: list} }
	for _, row := range []struct {
		p      interceptor.DefaultPolicy
		option interceptor.Option
		want   string
	}{
		{names("GetOrder"), quiet, `interceptor: DefaultPolicy.Idempotent[0]: "GetOrder"` + form},
		{names(get, "acme.orders.v1.OrderService/ListOrders"), quiet, `interceptor: DefaultPolicy.Idempotent[1]: "acme.orders.v1.OrderService/ListOrders"` + form},
		{names("acme.orders.v1.OrderService.GetOrder"), quiet, `interceptor: DefaultPolicy.Idempotent[0]: "acme.orders.v1.OrderService.GetOrder"` + form},
		{names("/acme.orders.v1.OrderService/"), quiet, `interceptor: DefaultPolicy.Idempotent[0]: "/acme.orders.v1.OrderService/"` + form},
		{names("/"), quiet, `interceptor: DefaultPolicy.Idempotent[0]: "/"` + form},
		{names(""), quiet, `interceptor: DefaultPolicy.Idempotent[0]: ""` + form},
		{names("//GetOrder"), quiet, `interceptor: DefaultPolicy.Idempotent[0]: "//GetOrder"` + form},
		{names("/a.B/C/D"), quiet, `interceptor: DefaultPolicy.Idempotent[0]: "/a.B/C/D"` + form},
		{names(get, list, get), quiet, `interceptor: policy.New: methodConfig[1].name[2]: "` + get + `": is named by methodConfig[1].name[0] too; only one entry may have it`},
		{
			interceptor.DefaultPolicy{RetryPolicy: policy.RetryPolicy{PerAttemptTimeout: -time.Second}},
			quiet,
			`interceptor: policy.New: methodConfig[0].retryPolicy.perAttemptTimeout: "-1s": must be more than 0s`,
		},
		{
			interceptor.DefaultPolicy{RetryPolicy: policy.RetryPolicy{MaxAttempts: 1}},
			quiet,
			"interceptor: policy.New: methodConfig[0].retryPolicy.maxAttempts: 1: must be at least 2, since it counts the first attempt; for one attempt leave the policy out",
		},
		{interceptor.DefaultPolicy{}, nil, "interceptor: New: option 0 is nil"},
	} {
		if _, err := interceptor.Default(row.p, row.option); err == nil || err.Error() != row.want {
			t.Errorf("%+v: %v; want %s", row.p, err, row.want)
		}
	}
}

// Users of Default may have no file. Messages about calls name the option that they have, next to the key of a file.
func TestDefault_Messages(t *testing.T) {
	playDefault(t, interceptor.DefaultPolicy{}, func(t *testing.T, s scene) {
		s.On("*", testserver.Hang())
		const want = "; the call had no deadline, and defaultTimeout (interceptor.WithDefaultTimeout) is 1m0s"
		if _, err := s.call(t.Context(), get); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
	}, interceptor.WithDefaultTimeout(time.Minute))
	for name, row := range map[string]struct {
		p    interceptor.DefaultPolicy
		want string
	}{
		"no deadline":    {interceptor.DefaultPolicy{Idempotent: []string{get}}, "interceptor.WithDefaultTimeout"},
		"not idempotent": {interceptor.DefaultPolicy{}, "DefaultPolicy.Idempotent"},
		"matches none":   {interceptor.DefaultPolicy{Idempotent: []string{"/a.B/Get*"}}, `"Get*": matches nothing`},
	} {
		t.Run(name, func(t *testing.T) {
			var said []string
			observer := interceptor.WithObserver(interceptor.Observer{Diagnostic: func(d policy.Diagnostic) { said = append(said, d.String()) }})
			r := testkit.Must(interceptor.Default(row.p, observer))(t)
			testkit.NoError(t, r.Unary()(t.Context(), get, nil, nil, nil, answered))
			if !strings.Contains(strings.Join(said, "\n"), row.want) {
				t.Errorf("%q; want %s", said, row.want)
			}
		})
	}
}

// list is a method without a policy of its own in the other tests.
const list = "/acme.orders.v1.OrderService/ListOrders"

// A command makes one call, whose first attempt hangs: in place, the second one is sent, and beside it none, since nothing is known yet.
func TestDefault_FirstCallHangs(t *testing.T) {
	for onTimeout, want := range map[string]int{"": 1, "HEDGE": 1, "RETRY": 2} {
		t.Run(onTimeout, func(t *testing.T) {
			p := interceptor.DefaultPolicy{Idempotent: []string{get}, RetryPolicy: policy.RetryPolicy{PerAttemptTimeout: 300 * ms, OnAttemptTimeout: onTimeout}}
			playDefault(t, p, func(t *testing.T, s scene) {
				s.On(get, testserver.Hang().Times(1), text("second"))
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				got, err := s.call(ctx, get)
				if s.Count(get) != want || (err == nil) != (want == 2) || (got == "second") != (want == 2) {
					t.Errorf("%q, %v after %d attempts; want %d", got, err, s.Count(get), want)
				}
			})
		})
	}
}
