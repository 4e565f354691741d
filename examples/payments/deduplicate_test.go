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

// recovery makes an error of a panic.
func recovery(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (_ any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = status.Errorf(codes.Internal, "%v", p)
		}
	}()
	return handle(ctx, req)
}

// send pays an amount with some keys, and returns the number of the payment, or the code, and whether it
// came from memory.
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
			if failures--; failures >= 0 {
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
