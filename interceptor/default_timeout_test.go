// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// A server hangs. A unary call without a deadline ends after the default timeout, and says so; all other calls are as without it.
func TestDefaultTimeout(t *testing.T) {
	const minute = time.Minute
	within := func(timeout time.Duration) spec.Config {
		c := config(plain())
		c.DefaultTimeout = timeout
		return c
	}
	limited := within(minute)
	limited.Methods[0].Timeout = 5 * time.Second
	off := within(minute)
	off.Mode = "OFF"
	hedged := spec.Retry{
		MaxAttempts: 3, Backoff: plain().Backoff, RetryableStatusCodes: plain().RetryableStatusCodes, PerAttemptTimeout: time.Second, Budget: "NONE",
	}
	withHedge := config(hedged)
	withHedge.DefaultTimeout = minute
	option := interceptor.WithDefaultTimeout(2 * minute)
	for name, row := range map[string]struct {
		config   spec.Config
		options  []interceptor.Option
		call     []grpc.CallOption
		desc     *grpc.StreamDesc
		method   string
		deadline time.Duration // 0: none
		ends     time.Duration
		says     string // in the error's text; "": nothing of a default
	}{
		"a call without a deadline":     {config: within(minute), ends: minute, says: "defaultTimeout (interceptor.WithDefaultTimeout) is 1m0s"},
		"a method without an entry":     {config: within(minute), method: "/acme.stock.v1.StockService/Get", ends: minute, says: "defaultTimeout (interceptor.WithDefaultTimeout) is 1m0s"},
		"attempts that may be slow":     {config: withHedge, ends: minute, says: "defaultTimeout (interceptor.WithDefaultTimeout) is 1m0s"},
		"mode OFF":                      {config: off, ends: minute, says: "defaultTimeout (interceptor.WithDefaultTimeout) is 1m0s"},
		"an idempotency key":            {config: within(minute), call: []grpc.CallOption{interceptor.IdempotencyKey("k")}, ends: minute, says: "defaultTimeout (interceptor.WithDefaultTimeout) is 1m0s"},
		"a longer deadline":             {config: within(minute), deadline: 3 * minute, ends: 3 * minute},
		"a shorter deadline":            {config: within(minute), deadline: time.Second, ends: time.Second},
		"the entry's timeout":           {config: limited, ends: 5 * time.Second},
		"a call that bypasses":          {config: within(minute), call: []grpc.CallOption{interceptor.Disable()}, deadline: time.Hour, ends: time.Hour},
		"a server stream":               {config: within(minute), desc: serverStream, ends: time.Hour},
		"a client stream":               {config: within(minute), desc: clientStream, ends: time.Hour},
		"a bidirectional stream":        {config: within(minute), desc: bidiStream, ends: time.Hour},
		"the option":                    {config: within(0), options: []interceptor.Option{option}, ends: 2 * minute, says: "defaultTimeout (interceptor.WithDefaultTimeout) is 2m0s"},
		"the file's comes before it":    {config: within(minute), options: []interceptor.Option{option}, ends: minute, says: "defaultTimeout (interceptor.WithDefaultTimeout) is 1m0s"},
		"no default, the call waits on": {config: within(0), ends: time.Hour},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			play(t, row.config, func(t *testing.T, s scene) {
				s.On("*", testserver.Hang())
				method := get
				if row.method != "" {
					method = row.method
				}
				ctx, cancel := context.WithCancel(t.Context())
				if row.deadline > 0 {
					ctx, cancel = context.WithTimeout(t.Context(), row.deadline)
				}
				defer cancel()
				time.AfterFunc(time.Hour, cancel)
				began := time.Now()
				err := exchange(ctx, s.conn, row.desc, method, row.call...)
				if took := time.Since(began); took != row.ends {
					t.Errorf("%v after %v; want the end after %v", err, took, row.ends)
				}
				text, message := err.Error(), status.Convert(err).Message()
				if row.says == "" {
					if strings.Contains(text, "defaultTimeout") {
						t.Errorf("%s; want nothing of a default", text)
					}
					return
				}
				if status.Code(err) != codes.DeadlineExceeded || reasonOf(err) != policy.ReasonDeadlineExceeded ||
					!strings.Contains(text, row.says) || !strings.Contains(message, row.says) {
					t.Errorf("%v (%s), %q; want deadline_exceeded, and %q", text, reasonOf(err), message, row.says)
				}
			}, row.options...)
		})
	}
}

// With the default, retries have time to divide: a call whose first attempt fails, and whose second hangs, has a third in time.
func TestDefaultTimeout_Attempts(t *testing.T) {
	retry := plain()
	retry.PerAttemptTimeout = time.Second
	c := config(retry)
	c.DefaultTimeout = time.Minute
	play(t, c, func(t *testing.T, s scene) {
		s.connect()
		s.On("*", down().Times(1), testserver.Hang().Times(1), text("here"))
		if _, err := s.call(t.Context(), get); err != nil || s.Count(get) != 3 {
			t.Errorf("%v after %d attempts; want a third that succeeds", err, s.Count(get))
		}
	})
}

// A call that hangs without a deadline ends by the default, even if a slow attempt of it wanted another one. Why none came stands beside it.
func TestDefaultTimeout_Refusal(t *testing.T) {
	const note = "; the call had no deadline, and defaultTimeout (interceptor.WithDefaultTimeout) is 1m0s"
	for name, row := range map[string]struct {
		entry  string // of the service
		caller time.Duration
		reason policy.Reason
		says   string // the end of the text; "": nothing of the default
	}{
		"perAttemptTimeout": {
			"retryPolicy: {maxAttempts: 3, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE], perAttemptTimeout: 1s}", 0,
			policy.ReasonDeadlineExceeded, note + "; no other attempt was sent when this one was slow: not_idempotent",
		},
		"hedges": {
			"hedgingPolicy: {maxAttempts: 3, hedgingDelay: 1s}", 0,
			policy.ReasonDeadlineExceeded, note + "; no other attempt was sent when this one was slow: not_idempotent",
		},
		"too little is known": {
			"idempotency: ASSUME, hedgingPolicy: {maxAttempts: 3, hedgingDelay: 1s}", 0,
			policy.ReasonDeadlineExceeded, note + "; no other attempt was sent when this one was slow: not_proven_fast",
		},
		"nothing was asked": {
			"retryPolicy: {maxAttempts: 3, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE]}", 0,
			policy.ReasonDeadlineExceeded, note,
		},
		"the caller's own deadline": {
			"hedgingPolicy: {maxAttempts: 3, hedgingDelay: 1s}", 30 * time.Second,
			policy.ReasonNotIdempotent, "",
		},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				file := "defaultTimeout: 60s\nmethodConfig: [{name: [{service: acme.orders.v1.OrderService}], " + row.entry + "}]"
				var told []policy.Reason
				r := mustNew(t, mustParse(t, file), quiet, interceptor.WithObserver(interceptor.Observer{
					Decision: func(_ context.Context, e interceptor.Event) { told = append(told, e.Reason) },
					CallEnd:  func(_ context.Context, e interceptor.CallEnd) { told = append(told, e.Reason) },
				}))
				server := testserver.Start(t)
				server.On("*", testserver.Hang())
				conn := server.Dial(t, r.DialOptions()...)
				ctx := t.Context()
				if row.caller > 0 {
					limited, cancel := context.WithTimeout(ctx, row.caller)
					defer cancel()
					ctx = limited
				}
				err := exchange(ctx, conn, nil, get)
				if reasonOf(err) != row.reason || !strings.HasSuffix(err.Error(), row.says) || status.Code(err) != codes.DeadlineExceeded ||
					row.says == "" && strings.Contains(err.Error(), note) {
					t.Errorf("%v (%s); want %s, %s", err, reasonOf(err), row.reason, row.says)
				}
				synctest.Wait()
				if len(told) == 0 || told[len(told)-1] != row.reason {
					t.Errorf("observers were told %v; want %s at the end", told, row.reason)
				}
			})
		})
	}
}

func TestDefaultTimeout_Option(t *testing.T) {
	t.Parallel()
	for _, d := range []time.Duration{0, -1} {
		if _, err := interceptor.New(mustSet(t, spec.Config{}), interceptor.WithDefaultTimeout(d)); err == nil ||
			!strings.Contains(err.Error(), "WithDefaultTimeout("+d.String()+")") {
			t.Errorf("%v: %v; want an error that names it", d, err)
		}
	}
}

// Without a default, calls with a policy and no deadline are counted, and each of their methods has one warning.
func TestNoDeadline(t *testing.T) {
	var warned []string
	observer := interceptor.WithObserver(interceptor.Observer{Diagnostic: func(d policy.Diagnostic) {
		if ofNoDeadline(d) {
			warned = append(warned, d.Value)
		}
	}})
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On("*", text("here"))
		count := func(want uint64, methods ...string) {
			t.Helper()
			if is := s.retrier.State(); is.WithoutDeadline != want || is.DefaultTimeout != 0 || !slices.Equal(warned, methods) {
				t.Errorf("%d calls, warnings of %q; want %d, %q", is.WithoutDeadline, warned, want, methods)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for _, desc := range callKinds {
			testkit.NoError(t, exchange(ctx, s.conn, desc, get))
			if desc != nil {
				testkit.NoError(t, exchange(t.Context(), s.conn, desc, get))
			}
		}
		testkit.NoError(t, exchange(t.Context(), s.conn, nil, get, interceptor.Disable()))
		testkit.NoError(t, exchange(t.Context(), s.conn, nil, "/acme.stock.v1.StockService/Get")) // has no policy
		count(0)
		for range 3 {
			testkit.NoError(t, exchange(t.Context(), s.conn, nil, get))
		}
		count(3, get)
		testkit.NoError(t, s.retrier.Reload(mustSet(t, config(plain()))))
		testkit.NoError(t, exchange(t.Context(), s.conn, nil, create))
		testkit.NoError(t, exchange(t.Context(), s.conn, nil, get))
		count(5, get, create)
		c := config(plain())
		c.DefaultTimeout = time.Second
		testkit.NoError(t, s.retrier.Reload(mustSet(t, c)))
		testkit.NoError(t, exchange(t.Context(), s.conn, nil, get))
		if is := s.retrier.State(); is.WithoutDeadline != 5 || is.DefaultTimeout != time.Second {
			t.Errorf("%d calls, and a default of %v; want 5, 1s", is.WithoutDeadline, is.DefaultTimeout)
		}
	}, observer)
}
