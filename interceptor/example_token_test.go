// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"

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

// A token has expired: the server refuses the call before its handler, the client fetches another token, and the second attempt
// succeeds. The server says that it has not processed the call, so this holds for methods that aren't declared idempotent, too.
func ExampleAttemptFromContext_token() {
	authenticate := interceptor.Refuse(func(ctx context.Context, _ string) (release func(), err error) {
		if slices.Equal(metadata.ValueFromIncomingContext(ctx, "authorization"), []string{"Bearer token-2"}) {
			return nil, nil
		}
		return nil, status.Error(codes.Unauthenticated, "the token has expired")
	})
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
	server, err := testserver.New(testserver.ServerOptions(retrier.ServerOptions(authenticate)...))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	server.On("*", testserver.OK(&emptypb.Empty{}))

	fetched := 0
	tokens := &accessToken{fetch: func(context.Context) (string, error) {
		fetched++
		return "token-" + strconv.Itoa(fetched), nil
	}}
	options := slices.Concat(server.DialOptions(), retrier.DialOptions(), []grpc.DialOption{grpc.WithChainUnaryInterceptor(tokens.unary)})
	conn, err := grpc.NewClient(server.Target(), options...)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = conn.Close() }()
	for range 2 {
		err := conn.Invoke(context.Background(), create, &emptypb.Empty{}, &emptypb.Empty{})
		fmt.Println(status.Code(err), "with token", fetched)
	}
	// Output:
	// OK with token 2
	// OK with token 2
}

func TestToken(t *testing.T) {
	t.Parallel()
	expired := testserver.Fail(codes.Unauthenticated, "the token has expired")
	for name, row := range map[string]struct {
		method            string
		refuses           bool // before the handler, with the trailer
		good              string
		code              codes.Code
		requests, fetched int
	}{
		"declared, the handler refuses":              {get, false, "2", codes.OK, 2, 2},
		"declared, the server refuses before it":     {get, true, "2", codes.OK, 2, 2},
		"not declared, the handler refuses":          {create, false, "2", codes.Unauthenticated, 1, 1},
		"not declared, the server refuses before":    {create, true, "2", codes.OK, 2, 2},
		"no token is good: one retry, one new token": {get, true, "none", codes.Unauthenticated, 2, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set, err := policy.Parse("retry.yaml", []byte(tokenFile))
			if err != nil {
				t.Fatal(err)
			}
			fits := func(ctx context.Context) bool {
				return slices.Equal(metadata.ValueFromIncomingContext(ctx, "authorization"), []string{"Bearer " + row.good})
			}
			r, requests, fetched := mustNew(t, set, quiet), 0, 0
			count := interceptor.Refuse(func(ctx context.Context, _ string) (func(), error) {
				requests++
				if row.refuses && !fits(ctx) {
					return nil, status.Error(codes.Unauthenticated, "the token has expired")
				}
				return nil, nil
			})
			server := testserver.Start(t, testserver.ServerOptions(r.ServerOptions(count)...))
			server.On("*", testserver.Func(func(ctx context.Context, _ testserver.Attempt) testserver.Step {
				if !fits(ctx) {
					return expired
				}
				return testserver.OK(&emptypb.Empty{})
			}))
			tokens := &accessToken{fetch: func(context.Context) (string, error) {
				fetched++
				return strconv.Itoa(fetched), nil
			}}
			conn := server.Dial(t, append(r.DialOptions(), grpc.WithChainUnaryInterceptor(tokens.unary))...)
			err = conn.Invoke(t.Context(), row.method, &emptypb.Empty{}, &emptypb.Empty{})
			if status.Code(err) != row.code || requests != row.requests || fetched != row.fetched {
				t.Errorf("%v after %d requests with %d tokens; want %s, %d, %d", err, requests, fetched, row.code, row.requests, row.fetched)
			}
		})
	}
}
