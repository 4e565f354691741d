// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/testserver"
)

// numbers are credentials that note for which attempts they were asked: "2h" is a hedge.
type numbers struct {
	mu   sync.Mutex
	list []string
}

func (n *numbers) GetRequestMetadata(ctx context.Context, _ ...string) (map[string]string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	number, hedge := interceptor.AttemptFromContext(ctx)
	text := strconv.Itoa(number)
	if hedge {
		text += "h"
	}
	n.list = append(n.list, text)
	return map[string]string{}, nil
}

func (*numbers) RequireTransportSecurity() bool { return false }

// take returns the numbers, in their order, and forgets them.
func (n *numbers) take() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	slices.Sort(n.list)
	defer func() { n.list = nil }()
	return fmt.Sprint(n.list)
}

func TestAttemptFromContext(t *testing.T) {
	for name, row := range map[string]struct {
		config spec.Config
		step   testserver.Step
		want   string
	}{
		"retries": {config(plain()), down(), "[1 2 3]"},
		"hedges":  {hedged(), testserver.Hang(), "[1 2h 3h]"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, row.config, func(t *testing.T, s scene) {
				s.On(get, row.step, row.step, text("3"))
				asked := new(numbers)
				if _, err := s.call(t.Context(), get, grpc.PerRPCCredentials(asked)); err != nil {
					t.Error(err)
				}
				if got := asked.take(); got != row.want {
					t.Errorf("unary: %s", got)
				}
				of := kinds()
				if row.config.Methods[0].Hedge != nil {
					of = hedgedKinds()
				}
				for kind, desc := range of {
					s.On(get, row.step, row.step, takes(0, "3"))
					if _, _, err := s.whole(t, desc, grpc.PerRPCCredentials(asked)); err != io.EOF {
						t.Error(err)
					}
					if got := asked.take(); got != row.want {
						t.Errorf("%s stream: %s", kind, got)
					}
				}
			})
		})
	}
	t.Run("an inner interceptor's own calls count anew", func(t *testing.T) {
		play(t, config(plain()), func(t *testing.T, s scene) {
			const token = "/acme.auth.v1.TokenService/GetToken"
			s.On(get, down(), text("2"))
			s.On("*", text("token"))
			asked := new(numbers)
			var inner []int
			conn := s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string,
				req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
			) error {
				if method == get {
					number, _ := interceptor.AttemptFromContext(ctx)
					inner = append(inner, number)
					if err := s.conn.Invoke(ctx, token, &emptypb.Empty{}, &emptypb.Empty{}, grpc.PerRPCCredentials(asked)); err != nil {
						t.Error(err)
					}
				}
				return invoke(ctx, method, req, reply, cc, opts...)
			}))...)
			if err := conn.Invoke(t.Context(), get, &emptypb.Empty{}, &emptypb.Empty{}); err != nil {
				t.Error(err)
			}
			if got := asked.take(); got != "[1 1]" || fmt.Sprint(inner) != "[1 2]" {
				t.Errorf("its calls are attempts %s of their own, inside of attempts %v", got, inner)
			}
		})
	})
	t.Run("outside of calls", func(t *testing.T) {
		t.Parallel()
		if got, hedge := interceptor.AttemptFromContext(t.Context()); got != 1 || hedge {
			t.Errorf("%d; want 1, and no hedge", got)
		}
	})
}

func TestPreviousAttempts(t *testing.T) {
	for name, row := range map[string]struct {
		config spec.Config
		step   testserver.Step
	}{"retries": {config(plain()), down()}, "hedges": {hedged(), testserver.Hang()}} {
		for kind, desc := range callKinds {
			if name == "hedges" && desc != nil && desc.ClientStreams {
				continue // these are not hedged
			}
			t.Run(name+"/"+kind, func(t *testing.T) {
				play(t, row.config, func(t *testing.T, s scene) {
					s.On(get, row.step, row.step, text("third"))
					testkit.NoError(t, exchange(metadata.AppendToOutgoingContext(t.Context(), "tenant", "acme"), s.conn, desc, get))
					synctest.Wait()
					var seen []string
					for _, a := range s.Attempts() {
						seen = append(seen, fmt.Sprint(a.Metadata["grpc-previous-rpc-attempts"], a.Metadata["tenant"]))
					}
					if got := strings.Join(seen, " "); got != "[] [acme] [1] [acme] [2] [acme]" {
						t.Errorf("the server saw %s", got)
					}
				})
			})
		}
	}
}

func TestPreviousAttempts_Proxy(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down().Times(1), text(""))
		incoming := metadata.Pairs("grpc-previous-rpc-attempts", "3", "tenant", "acme")
		ctx := metadata.NewOutgoingContext(metadata.NewIncomingContext(t.Context(), incoming), incoming.Copy())
		testkit.Must(s.call(ctx, get))(t)
		first, second := s.Attempts()[0].Metadata, s.Attempts()[1].Metadata
		if got := fmt.Sprint(first["grpc-previous-rpc-attempts"], second["grpc-previous-rpc-attempts"], first["tenant"]); got != "[] [1] [acme]" {
			t.Errorf("the server saw %s", got)
		}
	})
}
