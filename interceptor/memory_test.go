// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// tunnel is a connection that does not know where it leads to.
type tunnel struct{ net.Conn }

func (tunnel) RemoteAddr() net.Addr { return nil }

func TestAnUnsafeCallOverAConnectionWithoutAnAddressIsSentOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lis := bufconn.Listen(1 << 16)
		srv := testserver.Start(t, testserver.Listener(lis))
		srv.On(create, down())
		retrier := mustNew(t, mustSet(t, config(plain())), quiet)
		conn, err := grpc.NewClient("passthrough:///tunnel", append(retrier.DialOptions(),
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
				c, err := lis.DialContext(ctx)
				return tunnel{c}, err
			}))...)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, err = (scene{conn: conn}).call(t.Context(), create)
		if reasonOf(err) != policy.ReasonNotIdempotent || srv.Count(create) != 1 {
			t.Errorf("%s, the server saw it %d times; want not_idempotent, once", reasonOf(err), srv.Count(create))
		}
	})
}

// A layer further in that answers by itself may fill options without telling of an end.
func TestWhatOneCallWasBroughtNeverReachesAnother(t *testing.T) {
	t.Parallel()
	unary := mustNew(t, mustSet(t, config(plain())), quiet).Unary()
	fill := func(_ context.Context, _ string, _, _ any, _ *grpc.ClientConn, opts ...grpc.CallOption) error {
		for _, o := range opts {
			if o, ok := o.(grpc.TrailerCallOption); ok {
				*o.TrailerAddr = metadata.Pairs("secret", "of the first caller")
			}
		}
		return nil
	}
	for range 100 {
		var first, second metadata.MD
		_ = unary(t.Context(), get, nil, nil, nil, fill, grpc.Trailer(&first))
		_ = unary(t.Context(), get, nil, nil, nil, answered, grpc.Trailer(&second))
		if first["secret"] == nil || second != nil {
			t.Fatalf("trailers %v and %v; want the first caller's alone", first, second)
		}
	}
}

// An interceptor further in may add options in several goroutines, as one that hedges does.
func TestTheOptionsOfAnAttemptMayBeAppendedTo(t *testing.T) {
	t.Parallel()
	unary := mustNew(t, mustSet(t, config(plain())), quiet).Unary()
	err := unary(t.Context(), get, nil, nil, nil, func(_ context.Context, _ string, _, _ any, _ *grpc.ClientConn, opts ...grpc.CallOption) error {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() { _ = append(opts, grpc.WaitForReady(true)) })
		}
		wg.Wait()
		return nil
	}, grpc.StaticMethod())
	if err != nil {
		t.Error(err)
	}
}

func TestEveryAttemptHasOptionsOfItsOwnAndEquallyMany(t *testing.T) {
	t.Parallel()
	unary := mustNew(t, mustSet(t, config(plain())), quiet).Unary()
	synctest.Test(t, func(t *testing.T) {
		var counts []int
		targets := map[*metadata.MD]bool{}
		_ = unary(t.Context(), get, nil, nil, nil, func(_ context.Context, _ string, _, _ any, _ *grpc.ClientConn, opts ...grpc.CallOption) error {
			counts = append(counts, len(opts))
			for _, o := range opts {
				if o, ok := o.(grpc.TrailerCallOption); ok {
					targets[o.TrailerAddr] = true
				}
			}
			return status.Error(codes.Unavailable, "")
		}, grpc.StaticMethod())
		// Four of ours and the caller's; from the second on, headers too.
		if fmt.Sprint(counts) != "[5 6 6 6]" || len(targets) != 4 {
			t.Errorf("options %v, %d trailers; want [5 6 6 6] and 4", counts, len(targets))
		}
	})
}

func TestACallInsideOfAnAttemptCarriesNoCountOfIt(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		token := s.Dial(t, s.retrier.DialOptions()...)
		inner := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			if _, err := (scene{conn: token}).call(ctx, other); err != nil {
				return err
			}
			return invoke(ctx, method, req, reply, cc, opts...)
		}
		s.conn = s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainUnaryInterceptor(inner))...)
		s.On(get, down(), text(""))
		if _, err := s.call(t.Context(), get); err != nil {
			t.Fatal(err)
		}
		for _, a := range s.Attempts() {
			if a.Method == other && len(a.Metadata["grpc-previous-rpc-attempts"]) > 0 {
				t.Errorf("the call for a token says %v attempts went before", a.Metadata["grpc-previous-rpc-attempts"])
			}
		}
	})
}
