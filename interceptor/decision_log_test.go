// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// logged is the log of a Retrier without its times and targets.
func logged(r *interceptor.Retrier) (list []string) {
	for _, d := range r.Decisions() {
		list = append(list, fmt.Sprint(d.Attempt, " ", d.Code, " ", d.Reason, " ", d.Retry))
	}
	return list
}

// Decisions of the last minutes are counted, beyond those that are remembered one by one, and names from outside are bounded.
func TestDecisionCounts(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down())
		for range 100 { // 300 retries, 100 refusals, in 70 s
			_, _ = s.call(t.Context(), get)
		}
		want := []interceptor.DecisionCount{
			{Method: get, Reason: policy.ReasonAttemptsExhausted, Count: 100}, {Method: get, Reason: policy.ReasonRetry, Count: 300},
		}
		if got := s.retrier.DecisionCounts(); !slices.Equal(got, want) {
			t.Errorf("%+v; want %+v", got, want)
		}
		time.Sleep(interceptor.DecisionCountTime)
		if got := s.retrier.DecisionCounts(); len(got) != 0 {
			t.Errorf("minutes later: %+v", got)
		}
		s.Default(down())
		for i := range 300 {
			_, _ = s.call(t.Context(), fmt.Sprintf("/stranger/%d", i))
		}
		got, sum := s.retrier.DecisionCounts(), 0
		for _, c := range got {
			sum += c.Count
		}
		if len(got) != 101 || sum != 300 {
			t.Errorf("%d counts, %d in all; want 101, of 300 methods", len(got), sum)
		}
	}, interceptor.WithDecisionLog())
}

func TestDecisionLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := mustNew(t, mustSet(t, config(plain())), interceptor.WithDecisionLog())
		srv := testserver.Start(t)
		srv.Default(testserver.Fail(codes.Unavailable, "down").Times(1), testserver.Fail(codes.NotFound, strings.Repeat("ä", 400)))
		conn := srv.Dial(t, r.DialOptions()...)
		call := func(ctx context.Context) error { return conn.Invoke(ctx, get, &emptypb.Empty{}, &emptypb.Empty{}) }
		if status.Code(call(t.Context())) != codes.NotFound {
			t.Fatal("the call is not over")
		}
		if got, want := logged(r), []string{"1 Unavailable retry true", "2 NotFound non_retryable false"}; !slices.Equal(got, want) {
			t.Errorf("%q; want %q", got, want)
		}
		all := r.Decisions()
		if first := all[0]; first.Method != get || first.Target != conn.CanonicalTarget() || first.Time.IsZero() || !strings.Contains(first.Error, "desc = down") {
			t.Errorf("%+v", first)
		}
		if got := all[1].Error; len(got) > 256 || len(got) < 250 || strings.Count(got, "ä")*2 < 200 || strings.Contains(got, "�") {
			t.Errorf("%d bytes of text: %q", len(got), got)
		}
		if got := fmt.Sprint(all[1].Codes); got != "[Unavailable]" {
			t.Errorf("codes before: %s", got)
		}

		// Nobody decides on the end of a call whose caller has gone; it is logged all the same.
		srv.Default(testserver.Hang())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_ = call(ctx)
		if got := logged(r)[2:]; !slices.Equal(got, []string{"1 DeadlineExceeded deadline_exceeded false"}) {
			t.Errorf("%q", got)
		}
	})
}

func TestDecisionLog_Stream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := mustNew(t, mustSet(t, config(plain())))
		srv := testserver.Start(t)
		srv.Default(testserver.Fail(codes.Unavailable).Times(1), testserver.OK())
		conn := srv.Dial(t, r.DialOptions()...)
		watch := func() {
			s, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true}, get)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = s.SendMsg(&emptypb.Empty{}), s.CloseSend()
			for err == nil {
				err = s.RecvMsg(&emptypb.Empty{})
			}
		}
		watch()
		if got := logged(r); got != nil {
			t.Errorf("%q is logged, and nobody has asked for it", got)
		}
		r.LogDecisions()
		srv.Default(testserver.Fail(codes.Unavailable).Times(1), testserver.OK())
		watch()
		if got := logged(r); !slices.Equal(got, []string{"1 Unavailable retry true"}) {
			t.Errorf("%q", got)
		}
	})
}

func TestDecisionLog_Bounded(t *testing.T) {
	t.Parallel()
	r := mustNew(t, mustSet(t, config(plain())), interceptor.WithDecisionLog())
	unary := r.Unary()
	calls := 0
	invoke := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
		calls++
		return status.Error(codes.NotFound, fmt.Sprint("call ", calls))
	}
	for range 2*interceptor.DecisionLogSize + 10 {
		_ = unary(t.Context(), get, nil, nil, nil, invoke)
	}
	all := r.Decisions()
	if len(all) != interceptor.DecisionLogSize {
		t.Fatalf("%d decisions", len(all))
	}
	for i, d := range all {
		if want := fmt.Sprint("call ", calls-len(all)+1+i); !strings.HasSuffix(d.Error, want) {
			t.Fatalf("decision %d is %q; want %q", i, d.Error, want)
		}
	}
}

func TestDecisionLog_Concurrent(t *testing.T) {
	t.Parallel()
	r := mustNew(t, mustSet(t, config(plain())))
	unary := r.Unary()
	invoke := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
		return status.Error(codes.NotFound, "none")
	}
	var calls sync.WaitGroup
	for range 4 {
		calls.Go(func() {
			for range 200 {
				r.LogDecisions()
				_ = unary(t.Context(), get, nil, nil, nil, invoke)
				if all := r.Decisions(); len(all) == 0 || all[len(all)-1].Method != get {
					t.Errorf("%d decisions", len(all))
				}
			}
		})
	}
	calls.Wait()
}

func TestDecisionLog_SuccessAllocatesNothing(t *testing.T) {
	unary := mustNew(t, fiftyMethods(t), interceptor.WithDecisionLog()).Unary()
	ctx, opts := t.Context(), []grpc.CallOption{grpc.StaticMethod()}
	call := func() { _ = unary(ctx, "/acme.orders.v1.OrderService/Method25", nil, nil, nil, answered, opts...) }
	call()
	if n := testing.AllocsPerRun(1000, call); n != 0 {
		t.Errorf("a call that succeeds at once allocates %v times; want 0", n)
	}
}
