// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/backoff"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/policyfile/document"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

const (
	get    = "/acme.orders.v1.OrderService/GetOrder"    // its entry names it: idempotent
	create = "/acme.orders.v1.OrderService/CreateOrder" // not declared idempotent
	ms     = time.Millisecond
)

// plain is the policy of most tests: 4 attempts after UNAVAILABLE, with 100, 200 and 400 ms between
// them, and no budget.
func plain() spec.Retry {
	return spec.Retry{
		MaxAttempts:          4,
		Backoff:              backoff.Config{Initial: 100 * ms, Max: time.Minute, Multiplier: 2, Jitter: "NONE"},
		RetryableStatusCodes: []codes.Code{codes.Unavailable},
		Budget:               "NONE",
	}
}

// impatient is the policy of plain, for a server that is down: attempts fail at once, and do not wait for a connection.
func impatient() spec.Config { return hurried(config(plain())) }

// hurried makes no call of c wait for a connection.
func hurried(c spec.Config) spec.Config {
	for i := range c.Methods {
		c.Methods[i].WaitForReady = new(false)
	}
	return c
}

// config has the given retries for GetOrder by name, and for the rest of the service.
func config(retry spec.Retry) spec.Config {
	entry := func(name string) spec.MethodConfig {
		return spec.MethodConfig{Names: []string{name}, Policy: spec.Policy{Retry: &retry}}
	}
	return spec.Config{Methods: []spec.MethodConfig{
		entry("/acme.orders.v1.OrderService/GetOrder"),
		entry("/acme.orders.v1.OrderService/"),
	}}
}

func mustParse(tb testing.TB, text string) *policy.Set {
	tb.Helper()
	return testkit.Must(policy.Parse("retry.yaml", []byte(text)))(tb)
}

func mustSet(tb testing.TB, c spec.Config) *policy.Set {
	tb.Helper()
	return testkit.Must(compiled.NewSet(c))(tb)
}

func mustPolicy(tb testing.TB, s spec.Policy) *policy.Policy {
	tb.Helper()
	return testkit.Must(compiled.NewPolicy(s))(tb)
}

// journal is an observer that keeps events.
type journal struct {
	mu        sync.Mutex // guards all
	attempts  []interceptor.Event
	decisions []interceptor.Event
	calls     []interceptor.CallEnd
	warnings  []string
	notes     []string
}

func (j *journal) observer() interceptor.Observer {
	return interceptor.Observer{
		Attempt:  func(_ context.Context, e interceptor.Event) { add(j, &j.attempts, e) },
		Decision: func(_ context.Context, e interceptor.Event) { add(j, &j.decisions, e) },
		CallEnd:  func(_ context.Context, e interceptor.CallEnd) { add(j, &j.calls, e) },
		Diagnostic: func(p policy.Diagnostic) {
			if ofNoDeadline(p) { // as most calls of tests
				return
			}
			if p.Severity == document.SeverityNote {
				add(j, &j.notes, p.String())
			} else {
				add(j, &j.warnings, p.String())
			}
		},
	}
}

// ofNoDeadline reports whether a warning is about calls without a deadline.
func ofNoDeadline(d policy.Diagnostic) bool { return d.Field == "deadline" }

// waiting returns c with a limit of waiting calls.
func waiting(c spec.Config, n int) spec.Config {
	c.MaxWaiting = n
	return c
}

// inUse returns the balances of a Retrier that are not gone.
func inUse(r *interceptor.Retrier) []interceptor.BudgetState {
	return slices.DeleteFunc(r.State().Budgets, func(b interceptor.BudgetState) bool { return b.Dropped })
}

func withJournal(j *journal) interceptor.Option { return interceptor.WithObserver(j.observer()) }

func add[T any](j *journal, list *[]T, e T) {
	j.mu.Lock()
	defer j.mu.Unlock()
	*list = append(*list, e)
}

// scene is a client of one Retrier and its server.
type scene struct {
	*testserver.Server
	*journal

	retrier *interceptor.Retrier
	conn    *grpc.ClientConn
}

// play runs a test in virtual time, with a client that follows c.
func play(t *testing.T, c spec.Config, test func(t *testing.T, s scene), options ...interceptor.Option) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := new(journal)
		options := append([]interceptor.Option{
			withJournal(j),
			interceptor.WithRandom(func() float64 { return 0 }),
		}, options...)
		s := scene{Server: testserver.Start(t), journal: j, retrier: mustNew(t, mustSet(t, c), options...)}
		j.warnings = nil // those of the policy
		s.conn = s.Dial(t, s.retrier.DialOptions()...)
		knowLatency(s.retrier, s.conn)
		test(t, s)
	})
}

// forget lets so much time pass that nobody knows what is usual.
func (scene) forget() { time.Sleep(time.Hour) }

// connect has the connection made: until then, no attempt is slow.
func (s scene) connect() {
	s.conn.Connect()
	synctest.Wait()
}

// knowLatency enables hedges after a fixed delay from the first call on. No answer of a test is slow compared to an
// hour.
func knowLatency(r *interceptor.Retrier, conn *grpc.ClientConn) {
	for _, method := range []string{get, create} {
		r.KnowLatency(conn, method, time.Hour)
	}
}

// call makes a unary call and returns the text that came back.
func (s scene) call(ctx context.Context, method string, opts ...grpc.CallOption) (string, error) {
	reply := new(wrapperspb.StringValue)
	err := s.conn.Invoke(ctx, method, wrapperspb.String("order 7"), reply, opts...)
	return reply.GetValue(), err
}

// callKinds are the kinds of calls; nil is a unary one.
var callKinds = map[string]*grpc.StreamDesc{"unary": nil, "server stream": serverStream, "client stream": clientStream, "bidi": bidiStream}

// exchange makes a call of one message, and returns how it has ended.
func exchange(ctx context.Context, conn *grpc.ClientConn, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) error {
	if desc == nil {
		return conn.Invoke(ctx, method, wrapperspb.String("order 7"), new(wrapperspb.StringValue), opts...)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := conn.NewStream(ctx, desc, method, opts...)
	if err != nil {
		return err
	}
	if err := stream.SendMsg(wrapperspb.String("order 7")); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	if _, err = receive(stream); errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// waits are the times between the attempts that the server saw.
func (s scene) waits() string {
	var list []time.Duration
	attempts := s.Attempts()
	for i := 1; i < len(attempts); i++ {
		list = append(list, attempts[i].Time.Sub(attempts[i-1].Time))
	}
	return fmt.Sprint(list)
}

func text(s string) testserver.Step { return testserver.OK(wrapperspb.String(s)) }

// reasonOf returns why a call ended.
func reasonOf(err error) policy.Reason {
	if e, ok := errors.AsType[*interceptor.Error](err); ok {
		return e.Reason
	}
	return ""
}

// speak is the server's side of a connection in bare HTTP/2, for what gRPC's own server never says: hear is
// given every frame but the settings.
func speak(conn net.Conn, hear func(*http2.Framer, http2.Frame)) {
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(conn, preface); err != nil {
		return
	}
	framer := http2.NewFramer(conn, conn)
	_ = framer.WriteSettings()
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return
		}
		settings, ok := frame.(*http2.SettingsFrame)
		if !ok {
			hear(framer, frame)
		} else if !settings.IsAck() {
			_ = framer.WriteSettingsAck()
		}
	}
}

// speaking dials, with the options of a Retrier, a server that speaks, and that ends with the test.
func speaking(t *testing.T, r *interceptor.Retrier, hear func(*http2.Framer, http2.Frame)) *grpc.ClientConn {
	t.Helper()
	lis := bufconn.Listen(1 << 16)
	var served sync.WaitGroup
	served.Go(func() {
		for {
			conn, err := lis.Accept()
			if err != nil {
				return
			}
			served.Go(func() {
				defer conn.Close()
				speak(conn, hear)
			})
		}
	})
	conn := over(t, r, lis)
	t.Cleanup(func() {
		_ = conn.Close()
		_ = lis.Close()
		served.Wait()
	})
	return conn
}

// over dials over a listener in memory, with the options of a Retrier and those after them.
func over(t *testing.T, r *interceptor.Retrier, lis *bufconn.Listener, opts ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	all := append(r.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }))
	conn := testkit.Must(grpc.NewClient("passthrough:///memory", append(all, opts...)...))(t)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func writeHeaders(framer *http2.Framer, stream uint32, end bool, pairs ...string) {
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for i := 0; i < len(pairs); i += 2 {
		_ = encoder.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]})
	}
	_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: end})
}

// respond begins an answer, and complete is a whole one, with an empty message, once the request is there: gRPC's unary calls return io.EOF
// if the answer comes while they send.
func respond(f *http2.Framer, id uint32) {
	writeHeaders(f, id, false, ":status", "200", "content-type", "application/grpc")
}

func complete(f *http2.Framer, id uint32) {
	for ended := false; !ended; {
		frame, err := f.ReadFrame()
		if err != nil {
			return
		}
		data, ok := frame.(*http2.DataFrame)
		ended = ok && data.StreamEnded()
	}
	respond(f, id)
	_ = f.WriteData(id, false, make([]byte, 5))
	writeHeaders(f, id, true, "grpc-status", "0")
}

// leave has the server go away, and the connection know that: gRPC fails calls a moment before it shows its state, and a call
// that sees no reason to wait asks again after its backoff.
func (s scene) leave() {
	s.Down()
	synctest.Wait()
	s.conn.Connect()
	synctest.Wait()
}

func TestMain(m *testing.M) {
	debug.SetGCPercent(400)                        // a quarter of the time of these tests was the garbage collector's
	slog.SetDefault(slog.New(slog.DiscardHandler)) // warnings would hide which test has failed
	goleak.VerifyTestMain(m)
}

// quiet receives the warnings of a policy, so that they don't go to the default logger.
var quiet = interceptor.WithObserver(interceptor.Observer{Diagnostic: func(policy.Diagnostic) {}})
