// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/backoff"
	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit"
)

func TestRequest_WaitForReady(t *testing.T) {
	c := config(plain())
	c.Methods[0].WaitForReady = new(true)
	play(t, c, func(t *testing.T, s scene) {
		s.Down()
		time.AfterFunc(3*time.Second, s.Up)
		if _, err := s.call(t.Context(), get); err != nil || len(s.attempts) != 1 {
			t.Errorf("%v after %d attempts; want one that waited", err, len(s.attempts))
		}
		s.Down()
		if _, err := s.call(t.Context(), get, grpc.WaitForReady(false)); status.Code(err) != codes.Unavailable {
			t.Errorf("%v; want the call's own option to win", err)
		}
	})
}

func TestRequest_MessageLimits(t *testing.T) {
	t.Parallel()
	c := config(plain())
	c.Methods[0].MaxRequestMessageBytes, c.Methods[0].MaxResponseMessageBytes = new(9), new(9)
	for _, row := range []struct {
		reply string
		opts  []grpc.CallOption
		want  codes.Code
	}{
		{"short", nil, codes.OK}, // "order 7" and "short" are 9 and 7 bytes
		{"too long", nil, codes.ResourceExhausted},
		{"too long", []grpc.CallOption{grpc.MaxCallRecvMsgSize(1000)}, codes.ResourceExhausted},
		{"short", []grpc.CallOption{grpc.MaxCallSendMsgSize(8)}, codes.ResourceExhausted},
		{"short", []grpc.CallOption{grpc.MaxCallRecvMsgSize(6)}, codes.ResourceExhausted},
	} {
		t.Run(fmt.Sprint(row), func(t *testing.T) {
			play(t, c, func(t *testing.T, s scene) {
				s.On(get, text(row.reply))
				if _, err := s.call(t.Context(), get, row.opts...); status.Code(err) != row.want {
					t.Errorf("%v; want %v", err, row.want)
				}
			})
		})
	}
}

// Names over 256 bytes, which a proxy passes on, are kept nowhere; their calls have a policy.
func TestLongNames(t *testing.T) {
	testkit.Long(t)
	retry := plain()
	retry.MaxAttempts, retry.Backoff, retry.Budget, retry.PerAttemptTimeout = 2, backoff.Config{Initial: 1, Max: 1, Multiplier: 1}, "services", time.Second
	j := new(journal)
	r := mustNew(t, mustSet(t, spec.Config{
		Budgets: []spec.Budget{{Name: "services", Scope: "SERVICE", Config: budget.Default()}},
		Methods: []spec.MethodConfig{{Names: []string{"/"}, Policy: spec.Policy{
			Retry: &retry, Idempotency: "ASSUME", Timeout: time.Minute, MaxConnectionWait: new(time.Duration), // no call waits for an answer
		}}},
	}), withJournal(j), interceptor.WithRandom(func() float64 { return 0 }))
	requests := 0
	invoke := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
		requests++
		return status.Error(codes.Unavailable, "")
	}
	open := func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, ...grpc.CallOption) (grpc.ClientStream, error) {
		return nil, status.Error(codes.Unavailable, "")
	}
	reply := struct{ full bool }{true} // no second one can be made: a warning for each method
	before, calls := heap(), 100
	for i := range calls {
		for _, name := range []string{fmt.Sprintf("/%d/%0*d", i, 1<<19, 0), fmt.Sprintf("/%0*d/%d", 1<<19, 0, i)} {
			_ = r.Unary()(t.Context(), name, nil, &reply, nil, invoke, grpc.StaticMethod())
			_, _ = r.Stream()(t.Context(), serverStream, nil, name, open)
		}
	}
	if grown := heap() - before; grown > 10<<20 {
		t.Errorf("%d MiB are kept", grown>>20)
	}
	j.mu.Lock() // a stream's observers may be late
	defer j.mu.Unlock()
	if requests <= 2*calls || !slices.ContainsFunc(j.warnings, func(w string) bool { return strings.Contains(w, "(a name over 256 bytes)") }) {
		t.Errorf("%d requests, warnings %q; want retries", requests, j.warnings)
	}
	for _, e := range j.calls {
		if e.Method != "(a name over 256 bytes)" {
			t.Fatalf("an event has a name of %d bytes", len(e.Method))
		}
	}
	runtime.KeepAlive(r)
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
