// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package cases_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/grpclog"
	"google.golang.org/grpc/interop"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// failed is the value with which a case panics; gRPC's cases would end the process.
type failed string

// caseLogger turns the fatal log lines of gRPC's cases into panics, which a test can name and recover from.
type caseLogger struct{ grpclog.LoggerV2 }

func (caseLogger) Fatalln(args ...any) { panic(failed(fmt.Sprintln(args...))) }

func init() {
	grpclog.SetLoggerV2(caseLogger{grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard)})
}

// interopCase is a case, and its number of calls.
type interopCase struct {
	calls int
	run   func(context.Context, *grpc.ClientConn, ...grpc.CallOption)
}

// client runs a case that needs only the test service.
func client(calls int, run func(context.Context, testgrpc.TestServiceClient, ...grpc.CallOption)) interopCase {
	return interopCase{calls, func(ctx context.Context, conn *grpc.ClientConn, opts ...grpc.CallOption) {
		run(ctx, testgrpc.NewTestServiceClient(settled{conn}), opts...)
	}}
}

// settled returns a stream after all its initial attempts have started: a case that cancels a new stream expects that, and
// would otherwise race with parallel attempts.
type settled struct{ *grpc.ClientConn }

func (c settled) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := c.ClientConn.NewStream(ctx, desc, method, opts...)
	synctest.Wait()
	return s, err
}

// interopCases are the cases that need neither Google's credentials nor ORCA's balancer, by their names in gRPC's documents.
var interopCases = map[string]interopCase{
	"empty_unary":                 client(1, interop.DoEmptyUnaryCall),
	"large_unary":                 client(1, interop.DoLargeUnaryCall),
	"client_streaming":            client(1, interop.DoClientStreaming),
	"server_streaming":            client(1, interop.DoServerStreaming),
	"ping_pong":                   client(1, interop.DoPingPong),
	"empty_stream":                client(1, interop.DoEmptyStream),
	"timeout_on_sleeping_server":  client(1, interop.DoTimeoutOnSleepingServer),
	"cancel_after_begin":          client(1, interop.DoCancelAfterBegin),
	"cancel_after_first_response": client(1, interop.DoCancelAfterFirstResponse),
	"custom_metadata":             client(2, interop.DoCustomMetadata),
	"status_code_and_message":     client(2, interop.DoStatusCodeAndMessage),
	"special_status_message":      client(1, interop.DoSpecialStatusMessage),
	"unimplemented_method": {1, func(ctx context.Context, conn *grpc.ClientConn, _ ...grpc.CallOption) {
		interop.DoUnimplementedMethod(ctx, conn)
	}},
	"unimplemented_service": {1, func(ctx context.Context, conn *grpc.ClientConn, _ ...grpc.CallOption) {
		interop.DoUnimplementedService(ctx, testgrpc.NewUnimplementedServiceClient(conn))
	}},
}

// backend is gRPC's interop server, which may refuse the first attempt of each call.
type backend struct {
	failFirst bool
	attempts  atomic.Int64
	refused   atomic.Int64
}

// arrive counts an attempt, and refuses it if it is the first of its call.
func (b *backend) arrive(ctx context.Context) error {
	b.attempts.Add(1)
	if md, _ := metadata.FromIncomingContext(ctx); b.failFirst && len(md["grpc-previous-rpc-attempts"]) == 0 {
		b.refused.Add(1)
		return status.Error(codes.Unavailable, "the first attempt is refused")
	}
	return nil
}

func (b *backend) unary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if err := b.arrive(ctx); err != nil {
		return nil, err
	}
	return handler(ctx, req)
}

func (b *backend) stream(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	if err := b.arrive(stream.Context()); err != nil {
		return err
	}
	return handler(srv, stream)
}

// unknown handles methods that the server does not have.
func (b *backend) unknown(any, grpc.ServerStream) error {
	return status.Error(codes.Unimplemented, "no such method") // the stream interceptor has counted it
}

// dial starts the backend and connects to it in memory; both stop when the test ends.
func (b *backend) dial(t *testing.T, opts []grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	lis := bufconn.Listen(1 << 20)
	srv := grpc.NewServer(grpc.UnaryInterceptor(b.unary), grpc.StreamInterceptor(b.stream), grpc.UnknownServiceHandler(b.unknown))
	testgrpc.RegisterTestServiceServer(srv, interop.NewTestServer())
	served := make(chan error, 1)
	go func() { served <- srv.Serve(lis) }()
	conn := testkit.Must(grpc.NewClient("passthrough:interop", append(opts,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }))...))(t)
	t.Cleanup(func() {
		conn.Close()
		srv.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return conn
}

// backoff is short enough for the case whose deadline is a millisecond.
const backoff = `initialBackoff: 0.0001s, maxBackoff: 0.0002s, backoffMultiplier: 1, retryableStatusCodes: [UNAVAILABLE]`

// policies are the kinds of policies. Each file declares all methods idempotent at its top, as gRPC's own retries assume.
// Each has the budget in its name, or none.
var policies = map[string]string{
	"retries":                  `retryPolicy: {maxAttempts: 4, budget: NONE, ` + backoff + `}`,
	"retries, default budget":  `retryPolicy: {maxAttempts: 4, ` + backoff + `}`,
	"retries, throttle":        `retryPolicy: {maxAttempts: 4, budget: throttle, ` + backoff + `}`,
	"retries, bucket":          `retryPolicy: {maxAttempts: 4, budget: bucket, ` + backoff + `}`,
	"retries after a timeout":  `retryPolicy: {maxAttempts: 4, budget: NONE, perAttemptTimeout: 1s, onAttemptTimeout: RETRY, ` + backoff + `}`,
	"hedge after a timeout":    `retryPolicy: {maxAttempts: 4, budget: NONE, perAttemptTimeout: 1s, onAttemptTimeout: HEDGE, ` + backoff + `}`,
	"retries by code":          `retryPolicy: {maxAttempts: 4, budget: NONE, perCode: [{codes: [UNAVAILABLE], maxAttempts: 3, growth: FIXED, jitter: EQUAL}], ` + backoff + `}`,
	"retries, idempotency key": `retryPolicy: {maxAttempts: 4, budget: NONE, ` + backoff + `}, idempotencyKey: {header: x-request-key}`,
	"hedges at once":           `hedgingPolicy: {maxAttempts: 3, hedgingDelay: 0s, nonFatalStatusCodes: [UNAVAILABLE], budget: NONE}`,
	"hedges after a delay":     `hedgingPolicy: {maxAttempts: 3, hedgingDelay: 0.01s, nonFatalStatusCodes: [UNAVAILABLE], budget: NONE}`,
	"hedges after a quantile":  `hedgingPolicy: {maxAttempts: 3, hedgingDelay: 0.01s, nonFatalStatusCodes: [UNAVAILABLE], hedgingQuantile: {quantile: 0.9, min: 0.005s, max: 1s}, budget: NONE}`,
	"retries that wait":        `waitForReady: true, retryPolicy: {maxAttempts: 4, budget: NONE, ` + backoff + `}`,
}

// budgets are the kinds of budgets that policies name.
var budgets = map[string]string{
	"throttle": "throttle: {maxTokens: 1000, tokenRatio: 0.1}",
	"bucket":   "bucket: {size: 10, slowCost: 2}",
}

// file returns a whole policy file with one of the policies, and the budget that it names.
func file(entry string) string {
	var text strings.Builder
	text.WriteString("idempotency: ASSUME\n")
	for name, settings := range budgets {
		if strings.Contains(entry, "budget: "+name+",") {
			fmt.Fprintf(&text, "budgets: [{name: %s, %s}]\n", name, settings)
		}
	}
	return text.String() + "methodConfig:\n  - {name: [{}], " + entry + "}\n"
}

const serviceConfig = `{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 4, "initialBackoff": "0.0001s", "maxBackoff": "0.0002s",
  "backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE"]}}]}`

// differs returns the cases that a client does not pass, and their errors. gRPC does not retry a request above 256 KiB; stagger
// retries unary ones of any size. After a failure and a backoff, a deadline of 1 ms is too close for another attempt of stagger, which
// then returns the server's error at once; gRPC waits for DEADLINE_EXCEEDED.
func differs(name string, failFirst, compressed bool) map[string]string {
	switch {
	case name == "gRPC alone" && failFirst && !compressed:
		return map[string]string{"large_unary": "the first attempt is refused"}
	case failFirst && strings.Contains(policies[name], "retryPolicy"):
		return map[string]string{"timeout_on_sleeping_server": "the first attempt is refused, want error code 4"}
	default:
		return nil
	}
}

// TestInteropCases runs gRPC's cases with each policy, plain and compressed, against a healthy server and against one that
// refuses the first attempt of each call. gRPC alone, with its own retries, shows that the cases can be passed.
func TestInteropCases(t *testing.T) {
	t.Parallel()
	clients := map[string]func(*testing.T) []grpc.DialOption{
		"gRPC alone": func(*testing.T) []grpc.DialOption {
			return []grpc.DialOption{grpc.WithDefaultServiceConfig(serviceConfig)}
		},
	}
	for name, entry := range policies {
		clients[name] = func(t *testing.T) []grpc.DialOption {
			set := testkit.Must(policy.Parse("retry.yaml", []byte(file(entry))))(t)
			return retrier(t, set).DialOptions()
		}
	}
	for _, name := range slices.Sorted(maps.Keys(clients)) {
		for _, failFirst := range []bool{false, true} {
			for _, compressed := range []bool{false, true} {
				run := fmt.Sprintf("%s/first attempt fails=%t/gzip=%t", name, failFirst, compressed)
				t.Run(run, func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						runAll(t, clients[name], differs(name, failFirst, compressed), name == "hedges at once", failFirst, compressed)
					})
				})
			}
		}
	}
}

func retrier(t *testing.T, set *policy.Set) *interceptor.Retrier {
	t.Helper()
	return testkit.Must(interceptor.New(set))(t)
}

// runAll runs every case over its own connection, with a full bucket of the default budget, and counts the requests at
// the server.
func runAll(t *testing.T, client func(*testing.T) []grpc.DialOption, want map[string]string, hedged, failFirst, compressed bool) {
	var opts []grpc.CallOption
	if compressed {
		opts = append(opts, grpc.UseCompressor(gzip.Name))
	}
	b := &backend{failFirst: failFirst}
	for _, name := range slices.Sorted(maps.Keys(interopCases)) {
		if (failFirst || hedged) && name == "cancel_after_begin" {
			continue // it would race with the failure, or with the answer of a hedge that gRPC opens meanwhile
		}
		c := interopCases[name]
		conn := b.dial(t, append(client(t), grpc.WithDefaultCallOptions(opts...)))
		attempts, refused := b.attempts.Load(), b.refused.Load()
		if text := passes(t, c, conn, opts); (text == "") != (want[name] == "") || !strings.Contains(text, want[name]) {
			t.Errorf("%s: %q; the table says %q", name, text, want[name])
		}
		synctest.Wait()
		attempts, refused = b.attempts.Load()-attempts, b.refused.Load()-refused
		t.Logf("%s: %d attempts, %d refused", name, attempts, refused)
		// A call that is cancelled or past its deadline may end before the server notices, like a losing hedge.
		early := want[name] != "" || name == "timeout_on_sleeping_server"
		if failFirst && !hedged && !early && (refused != int64(c.calls) || attempts < 2*refused) {
			t.Errorf("%s: the server refused %d of %d attempts; it must refuse the first of %d calls, and see another for each", name, refused, attempts, c.calls)
		}
	}
}

// passes runs a case, and returns its error.
func passes(t *testing.T, c interopCase, conn *grpc.ClientConn, opts []grpc.CallOption) (text string) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			f, ok := p.(failed)
			if !ok {
				panic(p)
			}
			text = string(f)
		}
	}()
	c.run(t.Context(), conn, opts...)
	return ""
}
