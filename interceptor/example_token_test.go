// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// accessToken is fetched when it is needed, and again when a server has refused it.
type accessToken struct {
	fetch func(context.Context) (string, error)

	mu    sync.Mutex
	value string // "" if there is none
}

// unary is an inner interceptor: it runs for each attempt.
func (t *accessToken) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	value, err := t.get(ctx)
	if err != nil {
		return err
	}
	err = invoke(metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+value), method, req, reply, cc, opts...)
	attempt, _ := interceptor.AttemptFromContext(ctx)
	if attempt == 1 && status.Code(err) == codes.Unauthenticated { // a token that is refused again hasn't expired
		t.drop(value)
	}
	return err
}

func (t *accessToken) get(ctx context.Context) (value string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.value == "" {
		t.value, err = t.fetch(ctx)
	}
	return t.value, err
}

// drop forgets a token, unless another call has fetched a new one.
func (t *accessToken) drop(value string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.value == value {
		t.value = ""
	}
}

// A token has expired. The server refuses the call, the client fetches another token, and the second attempt succeeds.
func ExampleAttemptFromContext_token() {
	const getOrder, createOrder = "/acme.orders.v1.OrderService/GetOrder", "/acme.orders.v1.OrderService/CreateOrder"
	retrier, err := interceptor.Default(interceptor.DefaultPolicy{
		Idempotent: []string{getOrder},
		RetryPolicy: policy.RetryPolicy{
			RetryableStatusCodes: []codes.Code{codes.Unavailable, codes.Unauthenticated},
			PerCode: []policy.PerCode{{ // one retry, at once
				Codes: []codes.Code{codes.Unauthenticated}, MaxAttempts: 2, InitialBackoff: time.Millisecond, MaxBackoff: time.Millisecond,
			}},
		},
	}, interceptor.WithDefaultTimeout(10*time.Second))
	if err != nil {
		panic(err)
	}
	server, err := testserver.New()
	if err != nil {
		panic(err)
	}
	defer server.Close()
	server.On("*", testserver.Func(func(ctx context.Context, _ testserver.Attempt) testserver.Step {
		if slices.Equal(metadata.ValueFromIncomingContext(ctx, "authorization"), []string{"Bearer token-2"}) {
			return testserver.OK()
		}
		return testserver.Fail(codes.Unauthenticated, "the token has expired")
	}))

	fetched := 0
	tokens := &accessToken{fetch: func(context.Context) (string, error) {
		fetched++
		return "token-" + strconv.Itoa(fetched), nil
	}}
	options := append(retrier.DialOptions(), grpc.WithChainUnaryInterceptor(tokens.unary))
	conn, err := grpc.NewClient(server.Target(), append(options, server.DialOptions()...)...)
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	for _, method := range []string{createOrder, getOrder, getOrder} { // CreateOrder isn't declared idempotent
		err := conn.Invoke(context.Background(), method, &emptypb.Empty{}, &emptypb.Empty{})
		fmt.Println(status.Code(err), "with token", fetched)
	}
	// Output:
	// Unauthenticated with token 1
	// OK with token 2
	// OK with token 2
}
