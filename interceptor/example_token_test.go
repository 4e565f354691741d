// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// tokenFile has one retry after UNAUTHENTICATED, at once.
const tokenFile = `
methodConfig:
  - name: [{service: acme.orders.v1.OrderService}, {service: acme.orders.v1.OrderService, method: GetOrder}]
    retryPolicy:
      maxAttempts: 4
      initialBackoff: 0.1s
      maxBackoff: 1s
      backoffMultiplier: 2
      retryableStatusCodes: [UNAVAILABLE, UNAUTHENTICATED]
      perCode:
        - {codes: [UNAUTHENTICATED], maxAttempts: 2, initialBackoff: 0.001s, maxBackoff: 0.001s}
`

// accessToken is one that is fetched when it is needed, and again when a server has refused it.
type accessToken struct {
	fetch func(context.Context) (string, error)

	mu    sync.Mutex
	value string // "" if there is none
}

// unary is an inner interceptor: it runs once an attempt.
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

// A token has expired: the server refuses the call, the client fetches another token, and the second attempt succeeds.
func ExampleAttemptFromContext_token() {
	set, err := policy.Parse("retry.yaml", []byte(tokenFile))
	if err != nil {
		fmt.Println(err)
		return
	}
	retrier, err := interceptor.New(set, quiet)
	if err != nil {
		fmt.Println(err)
		return
	}
	server, err := testserver.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	server.On("*", testserver.Func(func(ctx context.Context, _ testserver.Attempt) testserver.Step {
		if slices.Equal(metadata.ValueFromIncomingContext(ctx, "authorization"), []string{"Bearer token-2"}) {
			return testserver.OK(&emptypb.Empty{})
		}
		return testserver.Fail(codes.Unauthenticated, "the token has expired")
	}))

	fetched := 0
	tokens := &accessToken{fetch: func(context.Context) (string, error) {
		fetched++
		return "token-" + strconv.Itoa(fetched), nil
	}}
	options := slices.Concat(retrier.DialOptions(), server.DialOptions(), []grpc.DialOption{grpc.WithChainUnaryInterceptor(tokens.unary)})
	conn, err := grpc.NewClient(server.Target(), options...)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = conn.Close() }()
	for _, method := range []string{create, get, get} { // CreateOrder isn't declared idempotent
		err := conn.Invoke(context.Background(), method, &emptypb.Empty{}, &emptypb.Empty{})
		fmt.Println(status.Code(err), "with token", fetched)
	}
	// Output:
	// Unauthenticated with token 1
	// OK with token 2
	// OK with token 2
}
