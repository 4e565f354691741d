// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"errors"
	"fmt"
	"net"
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

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/testserver"
)

// ear is a gate that lets everything pass, and notes what it is told.
type ear struct {
	mu    sync.Mutex // guards all
	asked int
	told  []string
}

func (e *ear) Open(context.Context, int) error { return nil }

func (e *ear) Allow(context.Context, int) (func(error), error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked++
	return func(err error) {
		e.mu.Lock()
		defer e.mu.Unlock()
		of := "the server's "
		if errors.Is(err, interceptor.ErrLocal) {
			of = "local "
		}
		e.told = append(e.told, of+status.Code(err).String())
	}, nil
}

func (e *ear) String() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return fmt.Sprint(e.told)
}

// failingToken are credentials that fail.
type failingToken struct{ err error }

func (f failingToken) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return nil, f.err
}

func (failingToken) RequireTransportSecurity() bool { return false }

// A breaker is told which errors of attempts are this client's, and which the server's.
func TestBreaker_LocalErrors(t *testing.T) {
	t.Parallel()
	const invalid = "\xff" // UTF-8
	type call struct {
		ctx  context.Context
		opts []grpc.CallOption
		text string // of the request
		dial []grpc.DialOption
	}
	token := func(err error) call {
		return call{opts: []grpc.CallOption{grpc.PerRPCCredentials(failingToken{err})}}
	}
	inner := func(err error) call {
		return call{dial: []grpc.DialOption{
			grpc.WithChainUnaryInterceptor(func(context.Context, string, any, any, *grpc.ClientConn, grpc.UnaryInvoker, ...grpc.CallOption) error {
				return err
			}),
			grpc.WithChainStreamInterceptor(func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, grpc.Streamer,
				...grpc.CallOption,
			) (grpc.ClientStream, error) {
				return nil, err
			}),
		}}
	}
	unavailable := status.Error(codes.Unavailable, "no token")
	for name, row := range map[string]struct {
		server testserver.Step
		limits []grpc.ServerOption
		call   call
		want   string // of each attempt
	}{
		"the request is too large":                {text("a"), nil, call{opts: []grpc.CallOption{grpc.MaxCallSendMsgSize(1)}}, "local ResourceExhausted"},
		"the response is too large":               {text(strings.Repeat("a", 100)), nil, call{opts: []grpc.CallOption{grpc.MaxCallRecvMsgSize(10)}}, "local ResourceExhausted"},
		"the request can't be encoded":            {text("a"), nil, call{text: invalid}, "local Internal"},
		"metadata that can't be sent":             {text("a"), nil, call{ctx: metadata.AppendToOutgoingContext(context.Background(), "a b", "c")}, "local Internal"},
		"no such codec":                           {text("a"), nil, call{opts: []grpc.CallOption{grpc.CallContentSubtype("nonesuch")}}, "local Internal"},
		"no such compressor":                      {text("a"), nil, call{opts: []grpc.CallOption{grpc.UseCompressor("nonesuch")}}, "local Internal"},
		"a token that is missing":                 {text("a"), nil, token(status.Error(codes.Unauthenticated, "no token")), "local Unauthenticated"},
		"a token that is missing, without status": {text("a"), nil, token(errors.New("no token")), "local Internal"},
		"a token server that is down":             {text("a"), nil, token(unavailable), "local Unavailable"},
		"an inner interceptor":                    {text("a"), nil, inner(status.Error(codes.PermissionDenied, "not here")), "local PermissionDenied"},
		"an inner interceptor, UNAVAILABLE":       {text("a"), nil, inner(unavailable), "local Unavailable"},
		"an inner interceptor, without status":    {text("a"), nil, inner(errors.New("not here")), "local Unknown"},

		"the server fails":              {down(), nil, call{}, "the server's Unavailable"},
		"a quota":                       {testserver.Fail(codes.ResourceExhausted, "quota"), nil, call{}, "the server's ResourceExhausted"},
		"a server's INTERNAL":           {testserver.Fail(codes.Internal, "a bug"), nil, call{}, "the server's Internal"},
		"the server can't encode":       {testserver.Fail(codes.Internal, "grpc: error while marshaling: string field contains invalid UTF-8"), nil, call{}, "the server's Internal"},
		"a size limit of the server":    {text("a"), []grpc.ServerOption{grpc.MaxRecvMsgSize(1)}, call{}, "the server's ResourceExhausted"},
		"the server can't send so much": {text("a longer text"), []grpc.ServerOption{grpc.MaxSendMsgSize(1)}, call{}, "the server's ResourceExhausted"},
		"a token that the server refuses": {
			testserver.Fail(codes.Unauthenticated, "expired"), nil, call{}, "the server's Unauthenticated",
		},
		"success": {text("a"), nil, call{}, "the server's OK"},
	} {
		for kind, desc := range callKinds {
			for policy, c := range map[string]spec.Config{"no policy": {}, "a policy": config(plain())} {
				t.Run(fmt.Sprintf("%s/%s/%s", name, kind, policy), func(t *testing.T) {
					e := new(ear)
					play(t, c, func(t *testing.T, s scene) {
						srv := testserver.Start(t, testserver.ServerOptions(row.limits...))
						srv.On(get, row.server)
						conn := srv.Dial(t, append(s.retrier.DialOptions(), row.call.dial...)...)
						ctx, cancel := context.WithCancel(t.Context())
						defer cancel()
						if row.call.ctx != nil {
							md, _ := metadata.FromOutgoingContext(row.call.ctx)
							ctx = metadata.NewOutgoingContext(ctx, md)
						}
						err := exchangeText(ctx, conn, desc, row.call.text, row.call.opts...)
						synctest.Wait()
						for _, told := range e.told {
							if told != row.want {
								t.Errorf("told %q; want %q", told, row.want)
							}
						}
						if len(e.told) == 0 || len(e.told) != e.asked || errors.Is(err, interceptor.ErrLocal) {
							t.Errorf("asked %d times, told %v; the caller gets %v", e.asked, e.told, err)
						}
					}, interceptor.WithBreaker(func(string, string) interceptor.Gate { return e }))
				})
			}
		}
	}
}

// exchangeText is exchange with a text, "" for a usual one.
func exchangeText(ctx context.Context, conn *grpc.ClientConn, desc *grpc.StreamDesc, request string, opts ...grpc.CallOption) error {
	if request == "" {
		return exchange(ctx, conn, desc, get, opts...)
	}
	if desc == nil {
		return conn.Invoke(ctx, get, wrapperspb.String(request), new(wrapperspb.StringValue), opts...)
	}
	stream, err := conn.NewStream(ctx, desc, get, opts...)
	if err != nil {
		return err
	}
	if err := stream.SendMsg(wrapperspb.String(request)); err != nil {
		return err
	}
	_, err = receive(stream)
	return err
}

// A response that the client can't decode: it has asked for another type.
func TestBreaker_LocalDecoding(t *testing.T) {
	e := new(ear)
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, text("a"))
		_ = s.conn.Invoke(t.Context(), get, wrapperspb.String("a"), 7)
		if e.String() != "[local Internal]" {
			t.Errorf("told %v", e)
		}
	}, interceptor.WithBreaker(func(string, string) interceptor.Gate { return e }))
}

// A panic is this client's, too.
func TestBreaker_LocalPanic(t *testing.T) {
	e := new(ear)
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.conn = s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainUnaryInterceptor(
			func(context.Context, string, any, any, *grpc.ClientConn, grpc.UnaryInvoker, ...grpc.CallOption) error {
				panic("a bug")
			}))...)
		func() {
			defer func() { _ = recover() }()
			_, _ = s.call(t.Context(), get)
		}()
		if e.String() != "[local Unknown]" {
			t.Errorf("told %v", e)
		}
	}, interceptor.WithBreaker(func(string, string) interceptor.Gate { return e }))
}

// Until the deadline, an attempt waits for a token, a server or a connection.
func TestBreaker_LocalDeadline(t *testing.T) {
	t.Parallel()
	dead := grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	refused := grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return nil, errors.New("refused") })
	for name, row := range map[string]struct {
		dial []grpc.DialOption
		opts []grpc.CallOption
		want string
	}{
		"the server":                {nil, nil, "the server's DeadlineExceeded"},
		"a token":                   {nil, []grpc.CallOption{grpc.PerRPCCredentials(lateToken{})}, "local Internal"},
		"a token, in between":       {waitsForToken(func(err error) error { return status.FromContextError(err).Err() }), nil, "local DeadlineExceeded"},
		"a connection":              {[]grpc.DialOption{dead}, nil, "the server's DeadlineExceeded"},
		"one that is refused":       {[]grpc.DialOption{refused}, nil, "the server's Unavailable"},
		"one that is, and it waits": {[]grpc.DialOption{refused}, []grpc.CallOption{grpc.WaitForReady(true)}, "the server's DeadlineExceeded"},
	} {
		for kind, desc := range callKinds {
			for policy, c := range map[string]spec.Config{
				"no policy": {}, "a policy": config(plain()), "beside": watchful(false), "in place": watchful(true), "hedges": hedged(),
			} {
				t.Run(fmt.Sprintf("%s/%s/%s", name, kind, policy), func(t *testing.T) {
					e := new(ear)
					play(t, c, func(t *testing.T, s scene) {
						s.On(get, testserver.Hang())
						conn := s.Dial(t, append(s.retrier.DialOptions(), row.dial...)...)
						ctx, cancel := context.WithTimeout(t.Context(), time.Second)
						defer cancel()
						_ = exchange(ctx, conn, desc, get, row.opts...)
						synctest.Wait()
						for i, told := range e.told {
							replaced := policy == "in place" && i < len(e.told)-1 && told == "local DeadlineExceeded"
							if told != row.want && !replaced && (row.want != "local DeadlineExceeded" || told != "local Canceled") {
								t.Errorf("told %q; want %q", told, row.want)
							}
						}
						if len(e.told) == 0 || len(e.told) != e.asked {
							t.Errorf("asked %d times, told %v", e.asked, e.told)
						}
					}, interceptor.WithBreaker(func(string, string) interceptor.Gate { return e }))
				})
			}
		}
	}
}

// A call that is over before it begins asks no gate: no server will see it.
func TestBreaker_ExpiredCall(t *testing.T) {
	t.Parallel()
	for name, over := range map[string]func(t *testing.T, s scene) (context.Context, context.CancelFunc){
		"its deadline has passed": func(t *testing.T, _ scene) (context.Context, context.CancelFunc) {
			t.Helper()
			return context.WithTimeout(t.Context(), -time.Second)
		},
		"its deadline is now": func(t *testing.T, _ scene) (context.Context, context.CancelFunc) {
			t.Helper()
			return context.WithDeadline(t.Context(), time.Now())
		},
		"it is cancelled": func(t *testing.T, _ scene) (context.Context, context.CancelFunc) {
			t.Helper()
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			return ctx, cancel
		},
		"its connection is closed": func(t *testing.T, s scene) (context.Context, context.CancelFunc) {
			t.Helper()
			_ = s.conn.Close()
			return context.WithCancel(t.Context())
		},
	} {
		for kind, desc := range callKinds {
			for policy, c := range map[string]spec.Config{
				"no policy": {}, "a policy": config(plain()), "beside": watchful(false), "hedges": hedged(),
			} {
				t.Run(fmt.Sprintf("%s/%s/%s", name, kind, policy), func(t *testing.T) {
					e := new(ear)
					play(t, c, func(t *testing.T, s scene) {
						s.On(get, text("a"))
						ctx, cancel := over(t, s)
						defer cancel()
						err := exchange(ctx, s.conn, desc, get)
						synctest.Wait()
						if code := status.Code(err); e.asked != 0 || s.Count(get) != 0 || code != codes.DeadlineExceeded && code != codes.Canceled {
							t.Errorf("%v; asked %d times, %d requests; want neither", err, e.asked, s.Count(get))
						}
					}, interceptor.WithBreaker(func(string, string) interceptor.Gate { return e }))
				})
			}
		}
	}
}
