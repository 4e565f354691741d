// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/examples/payments"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// mishaps are what goes wrong with one of ten payments, most of them after they were made.
func mishaps() []fault {
	fail := testserver.Fail
	return []fault{
		{"refused", 0.03, true, false, fail(codes.Unavailable)},
		{"hangs before", 0.005, true, true, testserver.Hang()},
		{"fails after", 0.03, false, false, fail(codes.Unavailable)},
		{"fails after, and asks for a retry soon", 0.02, false, false, fail(codes.Unavailable).Pushback("10")},
		{"answers late", 0.007, false, true, text("late").Delay(3 * time.Second)},
		{"never answers", 0.007, false, true, testserver.Hang()},
		{"drops the connection after", 0.0005, false, false, testserver.Drop()},
		{"cuts the answer in its middle", 0.0005, false, false, testserver.Play(testserver.Receive(1), testserver.Cut())},
	}
}

// pay is the script of a server that knows by their keys which payments it has made. The network goes
// wrong around it, and the card network inside.
func (e *effects) pay(answers *payments.Answers, faults []fault) testserver.Step {
	deduplicate := payments.Deduplicate(answers)
	info := &grpc.UnaryServerInfo{FullMethod: payments.Pay}
	return testserver.Func(func(ctx context.Context, a testserver.Attempt) testserver.Step {
		n := numberOf(a.Request)
		f := mishap(faults, e.chance(n))
		if f != nil && f.before && !f.silent {
			return f.step
		}
		reply, err := deduplicate(ctx, wrapperspb.String(strconv.Itoa(n)), info, func(context.Context, any) (any, error) {
			if e.seen[n].Load() == 1 && n%50 == 0 {
				return nil, status.Error(codes.Unavailable, "the card network is down")
			}
			if f != nil && f.before {
				<-ctx.Done()
				return nil, status.FromContextError(ctx.Err()).Err()
			}
			e.made[n].Add(1)
			return wrapperspb.String("payment " + strconv.Itoa(n)), nil
		})
		switch {
		case f != nil:
			return f.step
		case err != nil:
			return testserver.FailStatus(status.Convert(err))
		default:
			return testserver.OK(reply.(*wrapperspb.StringValue))
		}
	})
}

// With a key, and a server that knows it, a payment is repeated, and made once: nearly every call
// succeeds though one of ten requests fails, most of them after the payment was made.
func TestPaymentsWithAKeyAreMadeOnceAndNearlyAllSucceed(t *testing.T) {
	t.Parallel()
	calls := enough(100_000)
	e := newEffects(calls)
	succeeded, replayed, requests := make([]bool, calls), make([]bool, calls), 0
	synctest.Test(t, func(t *testing.T) {
		answers, err := payments.NewAnswers(time.Hour, calls)
		if err != nil {
			t.Fatal(err)
		}
		srv := testserver.Start(t, testserver.NoRecord())
		srv.On(payments.Pay, e.pay(answers, mishaps()))
		set, err := policy.Parse(payments.File, payments.Policy)
		if err != nil {
			t.Fatal(err)
		}
		r := mustNew(t, set, quiet)
		var conns []*grpc.ClientConn
		for range 8 {
			conns = append(conns, srv.Dial(t, r.DialOptions()...))
		}
		crowd(calls, func(n int) {
			var header metadata.MD
			reply := new(wrapperspb.StringValue)
			err := conns[n%len(conns)].Invoke(t.Context(), payments.Pay, wrapperspb.String(strconv.Itoa(n)), reply, grpc.Header(&header))
			e.answered[n] = err == nil
			succeeded[n], replayed[n] = err == nil, header["idempotent-replayed"] != nil
			if err == nil && reply.GetValue() != "payment "+strconv.Itoa(n) && reply.GetValue() != "late" {
				t.Errorf("payment %d was answered with %q", n, reply.GetValue())
			}
		})
		requests = srv.Count(payments.Pay)
	})
	e.check(t, 0)
	count := func(list []bool) (n int) {
		for _, b := range list {
			if b {
				n++
			}
		}
		return n
	}
	if got := float64(count(succeeded)) / float64(calls); got <= 0.999 {
		t.Errorf("%.5f of the calls succeed; want more than .999", got)
	}
	if count(replayed) < calls/50 {
		t.Errorf("%d answers came from the server's memory; want more", count(replayed))
	}
	t.Logf("%d calls, %d requests, %d failed, %d answered from memory", calls, requests, calls-count(succeeded), count(replayed))
}
