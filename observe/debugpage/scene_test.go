// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package debugpage

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/emptypb"

	_ "github.com/stagger-go/stagger/admission"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

const (
	getOrder = "/acme.orders.v1.OrderService/GetOrder"
	create   = "/acme.orders.v1.OrderService/CreateOrder"

	// file has a budget of two extra attempts.
	file = `
budgets: [{name: orders, throttle: {maxTokens: 6, tokenRatio: 6}}]
methodConfig:
- name: [{service: acme.orders.v1.OrderService, method: GetOrder}]
  retryPolicy: {maxAttempts: 4, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE], jitter: NONE, budget: orders}
- name: [{service: acme.orders.v1.OrderService, method: FindOrder}]
  admission: REFUSE
- name: [{service: acme.orders.v1.OrderService}]
  retryPolicy: {maxAttempts: 3, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE], budget: orders}
`
)

// scene is a client of a server, whose Retrier is shown.
type scene struct {
	*testserver.Server

	retrier *interceptor.Retrier
	conn    *grpc.ClientConn
}

func newScene(t *testing.T, options ...testserver.Option) scene {
	t.Helper()
	retrier := newRetrier(t)
	server := testserver.Start(t, options...)
	return scene{server, retrier, server.Dial(t, retrier.DialOptions()...)}
}

// newSceneOfHangs has an attempt timeout.
func newSceneOfHangs(t *testing.T) scene {
	t.Helper()
	s := newScene(t)
	s.retrier = testkit.Must(interceptor.New(testkit.Must(policy.Parse("retry.yaml", []byte(hanging)))(t)))(t)
	s.conn = s.Dial(t, s.retrier.DialOptions()...)
	return s
}

func newRetrier(t *testing.T, options ...interceptor.Option) *interceptor.Retrier {
	t.Helper()
	set := testkit.Must(policy.Parse("retry.yaml", []byte(file)))(t)
	silent := interceptor.WithObserver(interceptor.Observer{Diagnostic: func(policy.Diagnostic) {}})
	return testkit.Must(interceptor.New(set, append(options, silent)...))(t)
}

func (s scene) call(t *testing.T, method string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	return s.conn.Invoke(ctx, method, &emptypb.Empty{}, &emptypb.Empty{})
}

// use makes a call with another Retrier that succeeds: it has its budget then.
func (s scene) use(t *testing.T, r *interceptor.Retrier) {
	t.Helper()
	s.On("*", testserver.OK())
	testkit.NoError(t, s.Dial(t, r.DialOptions()...).Invoke(t.Context(), getOrder, &emptypb.Empty{}, &emptypb.Empty{}))
}

func down() testserver.Step { return testserver.Fail(codes.Unavailable, "secret of a user") }

// get asks a handler from this machine.
func get(h http.Handler, address string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "http://localhost:6060/debug/stagger/"+address, nil)
	r.RemoteAddr = "127.0.0.1:4242"
	r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, tcp("127.0.0.1:6060")))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// wants has the test fail if text lacks any of the parts.
func wants(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("there is no %q in\n%s", part, text)
		}
	}
}
