// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package debugpage_test

import (
	"strings"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const getOrder = "/acme.orders.v1.OrderService/GetOrder"

// file has a budget of two extra attempts.
const file = `
budgets: [{name: orders, throttle: {maxTokens: 6, tokenRatio: 1}}]
methodConfig:
- name: [{service: acme.orders.v1.OrderService, method: GetOrder}]
  retryPolicy: {maxAttempts: 4, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE], jitter: NONE, budget: orders}
- name: [{service: acme.orders.v1.OrderService}]
  retryPolicy: {maxAttempts: 3, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE], budget: orders}
`

// scene is a client of a server; the page shows its Retrier.
type scene struct {
	*testserver.Server

	retrier *interceptor.Retrier
	conn    *grpc.ClientConn
}

func newScene(t *testing.T) scene {
	t.Helper()
	set := testkit.Must(policy.Parse("retry.yaml", []byte(file)))(t)
	retrier := testkit.Must(interceptor.New(set, interceptor.WithObserver(interceptor.Observer{Diagnostic: func(policy.Diagnostic) {}})))(t)
	server := testserver.Start(t)
	return scene{server, retrier, server.Dial(t, retrier.DialOptions()...)}
}

func (s scene) call(t *testing.T, method string) error {
	t.Helper()
	return s.conn.Invoke(t.Context(), method, &emptypb.Empty{}, &emptypb.Empty{})
}

func down() testserver.Step { return testserver.Fail(codes.Unavailable, "secret of a user") }

// wants fails the test if text lacks any of the parts.
func wants(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("there is no %q in\n%s", part, text)
		}
	}
}
