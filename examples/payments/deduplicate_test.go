// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package payments_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/examples/payments"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/observe/repeat"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// bank is a server that deduplicates, and a client without retries.
type bank struct {
	*service
	answers *payments.Answers
	conn    *grpc.ClientConn
}

// open runs a test in virtual time.
func open(t *testing.T, keep time.Duration, room int, test func(t *testing.T, b bank)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answers, err := payments.NewAnswers(keep, room)
		if err != nil {
			t.Fatal(err)
		}
		s := new(service)
		srv := testserver.Start(t, testserver.Register(s.register),
			testserver.ServerOptions(grpc.ChainUnaryInterceptor(recovery, payments.Deduplicate(answers))))
		test(t, bank{s, answers, srv.Dial(t)})
	})
}

// recovery turns a panic into an error.
func recovery(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (_ any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = status.Errorf(codes.Internal, "%v", p)
		}
	}()
	return handle(ctx, req)
}

// send pays an amount with some keys. It returns the number of the payment, or the code, and whether the answer was a stored
// one.
func (b bank) send(ctx context.Context, amount int64, keys ...string) string {
	for _, key := range keys {
		ctx = metadata.AppendToOutgoingContext(ctx, "idempotency-key", key)
	}
	var header metadata.MD
	number := new(wrapperspb.Int64Value)
	if err := b.conn.Invoke(ctx, payments.Pay, wrapperspb.Int64(amount), number, grpc.Header(&header)); err != nil {
		return status.Code(err).String()
	}
	return fmt.Sprintf("%d%s", number.GetValue(), header["idempotent-replayed"])
}

func want(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %s; want %s", what, got, want)
	}
}

// Each payment is asked for twice, and made once; without Deduplicate, that is found.
func TestRepeated(t *testing.T) {
	for _, deduplicates := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			answers := testkit.Must(payments.NewAnswers(time.Hour, 10))(t)
			s, options := new(service), []grpc.ServerOption{grpc.ChainUnaryInterceptor(recovery)}
			if deduplicates {
				options = append(options, grpc.ChainUnaryInterceptor(payments.Deduplicate(answers)))
			}
			reports := 0
			retrier := testkit.Must(interceptor.New(testkit.Must(policy.Parse(payments.File, payments.Policy))(t), repeat.ForTests(nil),
				interceptor.WithObserver(interceptor.Observer{Diagnostic: func(d policy.Diagnostic) {
					if d.Field == "repeat" {
						reports++
					}
				}})))(t)
			server := testserver.Start(t, testserver.Register(s.register), testserver.ServerOptions(options...))
			conn := server.Dial(t, retrier.DialOptions()...)
			for range 3 {
				testkit.NoError(t, conn.Invoke(t.Context(), payments.Pay, wrapperspb.Int64(250), new(wrapperspb.Int64Value)))
				synctest.Wait()
			}
			made, found := 6, 1
			if deduplicates {
				made, found = 3, 0
			}
			if len(s.made) != made || reports != found {
				t.Errorf("deduplicates %t: %d payments, %d reports; want %d and %d", deduplicates, len(s.made), reports, made, found)
			}
			retrier.Close()
		})
	}
}

func TestSameKeySameAnswer(t *testing.T) {
	open(t, time.Hour, 10, func(t *testing.T, b bank) {
		want(t, "first", b.send(t.Context(), 250, "a"), "1[]")
		want(t, "again", b.send(t.Context(), 250, "a"), "1[true]")
		want(t, "another key", b.send(t.Context(), 250, "b"), "2[]")
		want(t, "payments", fmt.Sprint(b.made), "[250 250]")
	})
}

func TestNoKeyPasses(t *testing.T) {
	open(t, time.Hour, 10, func(t *testing.T, b bank) {
		want(t, "first", b.send(t.Context(), 250), "1[]")
		want(t, "second", b.send(t.Context(), 250), "2[]")
	})
}

func TestConcurrentCallsWait(t *testing.T) {
	open(t, time.Hour, 10, func(t *testing.T, b bank) {
		b.pay = func(context.Context, int64) error { time.Sleep(time.Second); return nil }
		start := time.Now()
		var wg sync.WaitGroup
		answers := make([]string, 20)
		for i := range answers {
			wg.Go(func() { answers[i] = b.send(t.Context(), 250, "a") })
		}
		wg.Wait()
		replayed := strings.Count(fmt.Sprint(answers), "1[true]")
		if replayed != 19 || len(b.made) != 1 || time.Since(start) != time.Second {
			t.Errorf("%v after %v, payments %v; want one, told to 19 others as soon as it is made", answers, time.Since(start), b.made)
		}
	})
}

func TestWaitingCallHasItsOwnDeadline(t *testing.T) {
	open(t, time.Hour, 10, func(t *testing.T, b bank) {
		b.pay = func(context.Context, int64) error { time.Sleep(10 * time.Second); return nil }
		go b.send(t.Context(), 250, "a")
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		want(t, "second", b.send(ctx, 250, "a"), "DeadlineExceeded")
		time.Sleep(time.Minute)
		want(t, "third", b.send(t.Context(), 250, "a"), "1[true]")
	})
}

func TestFailuresAreForgotten(t *testing.T) {
	open(t, time.Hour, 10, func(t *testing.T, b bank) {
		failures := 2
		b.pay = func(context.Context, int64) error {
			time.Sleep(time.Second)
			failures--
			if failures >= 0 {
				return status.Error(codes.Unavailable, "the card network is down")
			}
			return nil
		}
		var wg sync.WaitGroup
		answers := make([]string, 4)
		for i := range answers {
			wg.Go(func() { answers[i] = b.send(t.Context(), 250, "a") })
		}
		wg.Wait()
		text := fmt.Sprint(answers)
		if strings.Count(text, "Unavailable") != 2 || strings.Count(text, "1[true]") != 1 || len(b.made) != 1 {
			t.Errorf("%s, payments %v; want two failures, then one payment, and one told of it", text, b.made)
		}
	})
}

func TestPanicIsNotRepeated(t *testing.T) {
	open(t, time.Hour, 10, func(t *testing.T, b bank) {
		b.pay = func(context.Context, int64) error { panic("nil map") }
		want(t, "first", b.send(t.Context(), 250, "a"), "Internal")
		b.pay = nil
		want(t, "again", b.send(t.Context(), 250, "a"), "Aborted")
		want(t, "payments", fmt.Sprint(b.made), "[]")
	})
}

func TestDeduplicateErrors(t *testing.T) {
	open(t, time.Hour, 10, func(t *testing.T, b bank) {
		want(t, "first", b.send(t.Context(), 250, "a"), "1[]")
		want(t, "another request", b.send(t.Context(), 251, "a"), "InvalidArgument")
		want(t, "two keys", b.send(t.Context(), 250, "a", "b"), "InvalidArgument")
		want(t, "an empty key", b.send(t.Context(), 250, ""), "InvalidArgument")
		want(t, "a long key", b.send(t.Context(), 250, strings.Repeat("k", 256)), "InvalidArgument")
		want(t, "a key just short enough", b.send(t.Context(), 250, strings.Repeat("k", 255)), "2[]")
	})
}

func TestAnswersExpire(t *testing.T) {
	open(t, time.Minute, 2, func(t *testing.T, b bank) {
		want(t, "a", b.send(t.Context(), 1, "a"), "1[]")
		time.Sleep(30 * time.Second)
		want(t, "b", b.send(t.Context(), 2, "b"), "2[]")
		time.Sleep(30*time.Second - time.Nanosecond)
		want(t, "no room", b.send(t.Context(), 3, "c"), "ResourceExhausted")
		want(t, "a is kept", b.send(t.Context(), 1, "a"), "1[true]")
		time.Sleep(time.Nanosecond)
		want(t, "a has expired, and makes room", b.send(t.Context(), 3, "c"), "3[]")
		want(t, "b is kept", b.send(t.Context(), 2, "b"), "2[true]")
		want(t, "kept", fmt.Sprint(b.answers.Len()), "2")
		time.Sleep(time.Minute)
		want(t, "kept after all have expired", fmt.Sprint(b.answers.Len()), "0")
	})
}

func TestNewAnswersErrors(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		keep time.Duration
		room int
	}{{0, 1}, {-1, 1}, {1, 0}, {1, -1}} {
		if a, err := payments.NewAnswers(row.keep, row.room); err == nil || a != nil {
			t.Errorf("NewAnswers(%v, %d) = %v, %v", row.keep, row.room, a, err)
		}
	}
}

// service is acme.payments.v1.PaymentService, like generated code: Pay takes an amount and returns the number of the
// payment.
type service struct {
	pay func(ctx context.Context, amount int64) error // may fail or panic; nil: no failure

	mu   sync.Mutex
	made []int64
}

func (s *service) Pay(ctx context.Context, amount *wrapperspb.Int64Value) (*wrapperspb.Int64Value, error) {
	if s.pay != nil {
		if err := s.pay(ctx, amount.GetValue()); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made = append(s.made, amount.GetValue())
	return wrapperspb.Int64(int64(len(s.made))), nil
}

// register registers the service like generated code.
func (s *service) register(r grpc.ServiceRegistrar) {
	r.RegisterService(&grpc.ServiceDesc{
		ServiceName: "acme.payments.v1.PaymentService",
		HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{
			MethodName: "Pay",
			Handler: func(_ any, ctx context.Context, dec func(any) error, icpt grpc.UnaryServerInterceptor) (any, error) {
				amount := new(wrapperspb.Int64Value)
				if err := dec(amount); err != nil {
					return nil, err
				}
				return icpt(ctx, amount, &grpc.UnaryServerInfo{Server: s, FullMethod: payments.Pay},
					func(ctx context.Context, req any) (any, error) { return s.Pay(ctx, req.(*wrapperspb.Int64Value)) })
			},
		}},
	}, s)
}
