// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package storm

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// paymentPolicy names a service and none of its methods, so it does not say that they are idempotent.
const paymentPolicy = `defaultTimeout: 5s
methodConfig:
  - name: [{service: acme.payments.v1.PaymentService}]
    retryPolicy: {maxAttempts: 4, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE]}
`

const (
	pay            = "/acme.payments.v1.PaymentService/Pay"
	payments       = 1000
	failedPayments = payments / 4
)

// bookedTwice makes payments, of which each fourth is booked and then fails, and returns how many are booked more than once, and how many succeed.
func bookedTwice(t *testing.T, c client, opts ...grpc.CallOption) (twice, paid int) {
	t.Helper()
	on(t, c, 0, func(t *testing.T, b bench) {
		booked, keys := make([]int, payments), map[string]bool{}
		b.On(pay, testserver.Func(func(_ context.Context, a testserver.Attempt) testserver.Step {
			if key := a.Metadata.Get("idempotency-key"); len(key) > 0 {
				if keys[key[0]] {
					return testserver.OK() // it recognizes the payment
				}
				keys[key[0]] = true
			}
			number := testkit.Must(strconv.Atoi(a.Metadata.Get("payment")[0]))(t)
			booked[number]++
			if number%4 == 0 && booked[number] == 1 {
				return testserver.Fail(codes.Unavailable, "the server stops after it has booked the payment")
			}
			return testserver.OK()
		}))
		for i := range payments {
			ctx := metadata.AppendToOutgoingContext(t.Context(), "payment", strconv.Itoa(i))
			if b.conn.Invoke(ctx, pay, &emptypb.Empty{}, &emptypb.Empty{}, opts...) == nil {
				paid++
			}
			synctest.Wait()
		}
		for _, n := range booked {
			if n > 1 {
				twice++
			}
		}
	})
	return twice, paid
}

// A payment server that fails after it has booked a payment: the peers' retries book it again, under the policy by which stagger doesn't.
// The README has the figures.
func TestPaymentsBesideItsPeers(t *testing.T) {
	t.Parallel()
	set := testkit.Must(policy.Parse("retry.yaml", []byte(paymentPolicy)))(t)
	for _, c := range planClients(t, set, pay) {
		want := failedPayments // of the peers
		if c.ours || c.plain() {
			want = 0
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if twice, paid := bookedTwice(t, c); twice != want || paid != payments-failedPayments+want {
				t.Errorf("%d of %d payments are booked twice, and %d succeed; want %d, and %d", twice, payments, paid, want, payments-failedPayments+want)
			}
			if c.ours {
				if twice, paid := bookedTwice(t, c, interceptor.IdempotencyKey("")); twice != 0 || paid != payments {
					t.Errorf("with idempotency keys, %d of %d payments are booked twice, and %d succeed; want none, and all", twice, payments, paid)
				}
			}
		})
	}
	for _, c := range peersOf() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			twice, _ := bookedTwice(t, c)
			if limited := c.name == "gRPC, throttling"; twice == 0 || limited == (twice == failedPayments) {
				t.Errorf("%d payments are booked twice; want all %d that failed, or fewer with a low throttle", twice, failedPayments)
			}
		})
	}
	page := strings.Join(strings.Fields(string(testkit.Must(os.ReadFile(readme))(t))), " ")
	for _, want := range []string{
		fmt.Sprintf("books %d payments, and responds to %d of them with `UNAVAILABLE`", payments, failedPayments),
		fmt.Sprintf("gRPC's own retries, go-grpc-middleware and failsafe-go book those %d twice. With a low `retryThrottling`, gRPC books some of them twice. "+
			"stagger books none twice.", failedPayments),
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the README does not say %q", want)
		}
	}
}
