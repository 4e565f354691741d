// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/retry"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/backoff"
	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/internal/testkit/policytest"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// fiftyMethods is a set with a policy and the default budget for each of fifty methods.
func fiftyMethods(tb testing.TB) *policy.Set {
	tb.Helper()
	config := spec.Config{}
	for i := range 50 {
		retry := policytest.UsualRetry()
		config.Methods = append(config.Methods, spec.MethodConfig{
			Names:  []string{fmt.Sprintf("/acme.orders.v1.OrderService/Method%02d", i)},
			Policy: spec.Policy{Retry: &retry},
		})
	}
	return testkit.Must(compiled.NewSet(config))(tb)
}

func mustNew(tb testing.TB, set *policy.Set, options ...interceptor.Option) *interceptor.Retrier {
	tb.Helper()
	r := testkit.Must(interceptor.New(set, options...))(tb)
	knowLatency(r, nil)
	tb.Cleanup(r.Close)
	return r
}

func answered(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
	return nil
}

// finished ends an attempt at once, as gRPC does.
func finished(_ context.Context, _ string, _, _ any, _ *grpc.ClientConn, opts ...grpc.CallOption) error {
	for _, o := range opts {
		if o, ok := o.(grpc.OnFinishCallOption); ok {
			o.OnFinish(nil)
		}
	}
	return nil
}

// contenders are the interceptors compared on the success path. go-grpc-middleware's retry
// has one policy for all methods and no budget.
func contenders(tb testing.TB) []struct {
	name  string
	unary grpc.UnaryClientInterceptor
} {
	return []struct {
		name  string
		unary grpc.UnaryClientInterceptor
	}{
		{"stagger", mustNew(tb, fiftyMethods(tb)).Unary()},
		{"go-grpc-middleware", retry.UnaryClientInterceptor(retry.WithMax(3), retry.WithCodes(codes.Unavailable))},
	}
}

// BenchmarkSuccess measures the cost of the interceptor for a call that succeeds at once, from a generated
// client: those pass grpc.StaticMethod with every call.
func BenchmarkSuccess(b *testing.B) {
	const method = "/acme.orders.v1.OrderService/Method25"
	for _, c := range contenders(b) {
		b.Run(c.name, func(b *testing.B) {
			ctx, opts := context.Background(), []grpc.CallOption{grpc.StaticMethod()}
			b.ReportAllocs()
			for b.Loop() {
				_ = c.unary(ctx, method, nil, nil, nil, answered, opts...)
			}
		})
	}
}

// afterFailure are the interceptors compared on the failure path: both wait for a nanosecond before a retry.
func afterFailure(tb testing.TB) map[string]grpc.UnaryClientInterceptor {
	tb.Helper()
	again := plain()
	again.Backoff, again.Budget = backoff.Config{Initial: 1, Max: 1, Multiplier: 1, Jitter: "NONE"}, "all"
	c := config(again)
	bucket := budget.Default()
	bucket.Size, bucket.PerSuccess = 1e6, 10
	c.Budgets = []spec.Budget{{Name: "all", Config: bucket}}
	return map[string]grpc.UnaryClientInterceptor{
		"stagger": mustNew(tb, mustSet(tb, c)).Unary(),
		"go-grpc-middleware": retry.UnaryClientInterceptor(retry.WithMax(4), retry.WithCodes(codes.Unavailable),
			retry.WithBackoff(retry.BackoffLinear(1))),
	}
}

// failOnce is a call whose first attempt fails.
func failOnce(unary grpc.UnaryClientInterceptor) func() {
	ctx, reply, opts := context.Background(), new(emptypb.Empty), []grpc.CallOption{grpc.StaticMethod()}
	n, down := 0, status.Error(codes.Unavailable, "down")
	invoke := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, opts ...grpc.CallOption) error {
		n++
		if n%2 == 1 {
			_ = finished(ctx, method, req, reply, cc, opts...)
			return down
		}
		return finished(ctx, method, req, reply, cc, opts...)
	}
	return func() { _ = unary(ctx, get, nil, reply, nil, invoke, opts...) }
}

// BenchmarkOneFailure measures the cost of the interceptor for a call whose first attempt fails.
func BenchmarkOneFailure(b *testing.B) {
	for name, unary := range afterFailure(b) {
		b.Run(name, func(b *testing.B) {
			call := failOnce(unary)
			b.ReportAllocs()
			for b.Loop() {
				call()
			}
		})
	}
}

// overBufconn is a client of a server in memory, with a function that makes one call.
func overBufconn(tb testing.TB, opts ...grpc.DialOption) func() {
	tb.Helper()
	srv := testserver.Start(tb, testserver.Keep(0))
	conn := srv.Dial(tb, opts...)
	req, reply, ctx := &emptypb.Empty{}, &emptypb.Empty{}, context.Background()
	return func() {
		if err := conn.Invoke(ctx, "/acme.orders.v1.OrderService/Method25", req, reply, grpc.StaticMethod()); err != nil {
			tb.Error(err)
		}
	}
}

// successAllocates is how often a call allocates whose first attempt succeeds: for the options of the attempt, and their OnFinish.
const successAllocates = 2

// With the options that generated code allocates for each call.
func TestUnaryAllocations(t *testing.T) {
	for name, row := range map[string]struct {
		config spec.Config
		fails  bool // the first attempt
		most   float64
	}{
		"success":         {config(plain()), false, 3},
		"failure":         {config(plain()), true, 8},
		"unfired timeout": {config(besides()), false, 9},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range row.config.Methods {
				if retry := row.config.Methods[i].Retry; retry != nil {
					retry.Backoff = backoff.Config{Initial: 1, Max: 1, Multiplier: 1, Jitter: "NONE"}
				}
			}
			unary := mustNew(t, mustSet(t, row.config), quiet, interceptor.WithBudget("", forAll(budget.Unlimited))).Unary()
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			reply, n, down := new(emptypb.Empty), 0, status.Error(codes.Unavailable, "down")
			invoke := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, opts ...grpc.CallOption) error {
				n++
				_ = finished(ctx, method, req, reply, cc, opts...)
				if row.fails && n%2 == 1 {
					return down
				}
				return nil
			}
			got := testing.AllocsPerRun(1000, func() {
				_ = unary(ctx, get, nil, reply, nil, invoke, []grpc.CallOption{grpc.StaticMethod()}...)
			})
			if got > row.most+slack {
				t.Errorf("%v allocations; want at most %v", got, row.most)
			}
		})
	}
}

func TestUnaryAllocations_Connection(t *testing.T) {
	with := testing.AllocsPerRun(500, overBufconn(t, mustNew(t, fiftyMethods(t)).DialOptions()...))
	without := testing.AllocsPerRun(500, overBufconn(t, grpc.WithDisableRetry()))
	if most := without + successAllocates + 2; with > most+slack {
		t.Errorf("%v allocations a call with the interceptor, %v without; want at most %v", with, without, most)
	}
}

// BenchmarkRequestCopy measures what a copy of a unary call's request would add to a call over a connection in memory: encode is the copy,
// which only attempts in parallel have.
func BenchmarkRequestCopy(b *testing.B) {
	nested := func(n int) proto.Message {
		fields := map[string]any{}
		for i := range n {
			fields[fmt.Sprint("key ", i)] = map[string]any{"name": "the name of a thing", "price": 12.5, "tags": []any{"a", "b", "c"}}
		}
		return testkit.Must(structpb.NewStruct(fields))(b)
	}
	for name, m := range map[string]proto.Message{
		"10 bytes": wrapperspb.String("0123456789"), "100 kB": wrapperspb.String(strings.Repeat("x", 100_000)),
		"nested 1": nested(1), "nested 10": nested(10), "nested 100": nested(100),
	} {
		b.Run(name+"/encode", func(b *testing.B) {
			var data []byte
			for b.Loop() {
				data = testkit.Must(proto.MarshalOptions{}.MarshalAppend(data[:0], m))(b)
			}
		})
		b.Run(name+"/call", func(b *testing.B) {
			conn := testserver.Start(b, testserver.Keep(0)).Dial(b, grpc.WithDisableRetry())
			for b.Loop() {
				testkit.NoError(b, conn.Invoke(b.Context(), get, m, new(emptypb.Empty), grpc.StaticMethod()))
			}
		})
	}
}

// still is a codec that allocates nothing.
type still struct{}

func (still) Name() string { return "still" }

func (still) Unmarshal(mem.BufferSlice, any) error { return nil }

var stillBytes = mem.BufferSlice{mem.SliceBuffer("x")}

func (still) Marshal(any) (mem.BufferSlice, error) { return stillBytes, nil }

// loop is a stream without a connection: it encodes sent messages, and returns messages until it is
// told to end.
type loop struct {
	grpc.ClientStream

	codec grpc.ForceCodecV2CallOption
	over  bool
}

func (l *loop) SendMsg(m any) error {
	_, err := l.codec.CodecV2.Marshal(m)
	return err
}

func (*loop) CloseSend() error { return nil }

func (*loop) Header() (metadata.MD, error) { return metadata.MD{}, nil }

func (l *loop) RecvMsg(any) error {
	if l.over {
		return io.EOF
	}
	return nil
}

// looped opens a stream over a loop.
func looped(tb testing.TB, through grpc.StreamClientInterceptor, desc *grpc.StreamDesc, codec grpc.CallOption) (grpc.ClientStream, *loop) {
	tb.Helper()
	l := new(loop)
	stream := testkit.Must(through(tb.Context(), desc, nil, get, func(_ context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		for _, o := range opts {
			if o, ok := o.(grpc.ForceCodecV2CallOption); ok {
				l.codec = o
			}
		}
		return l, nil
	}, codec, grpc.MaxRetryRPCBufferSize(1<<20)))(tb)
	return stream, l
}

// bare is no interceptor.
func bare(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	return open(ctx, desc, cc, method, opts...)
}

func TestStreamAllocations_Message(t *testing.T) {
	r := mustNew(t, mustSet(t, config(plain())), quiet)
	stream, l := looped(t, r.Stream(), bidiStream, grpc.ForceCodecV2(still{}))
	m := wrapperspb.String("x")
	send := func() {
		if err := stream.SendMsg(m); err != nil {
			t.Error(err)
		}
	}
	if n := testing.AllocsPerRun(5000, send); n > 0 {
		t.Errorf("a message that is kept allocates %v times", n)
	}
	if got := r.Replayed(); got < 5000*6 {
		t.Fatalf("%d bytes are kept; want those of 5000 messages", got)
	}
	if n := testing.AllocsPerRun(100, func() { _ = stream.RecvMsg(m) }); n > 0 {
		t.Errorf("a message that is received allocates %v times", n)
	}
	if n := testing.AllocsPerRun(100, send); n > 0 || r.Replayed() != 0 {
		t.Errorf("a message that is sent after commitment allocates %v times; %d bytes are kept", n, r.Replayed())
	}
	l.over = true
	if err := stream.RecvMsg(m); err != io.EOF {
		t.Error(err)
	}
}

const messages = 1000
