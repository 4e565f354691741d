// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"flag"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/examples/payments"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/tools/moves"
	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// effects counts the effects of each call at a server. A call's request is its number from 0.
type effects struct {
	made     []atomic.Int32 // effects
	seen     []atomic.Int32 // requests that have arrived
	answered []bool         // the client got a success
}

func newEffects(calls int) *effects {
	return &effects{make([]atomic.Int32, calls), make([]atomic.Int32, calls), make([]bool, calls)}
}

// numberOf is the number of the call that a request belongs to.
func numberOf(request []byte) int {
	m := new(wrapperspb.StringValue)
	if err := proto.Unmarshal(request, m); err != nil {
		return -1
	}
	n, err := strconv.Atoi(m.GetValue())
	if err != nil {
		return -1
	}
	return n
}

// chance returns a number in [0, 1) that depends on the call and its number of requests.
func (e *effects) chance(call int) float64 {
	return rand.New(rand.NewPCG(uint64(call), uint64(e.seen[call].Add(1)))).Float64()
}

// fault is a kind of fault, with its frequency: 0 to 1 of all requests.
type fault struct {
	name   string
	often  float64
	before bool // it comes before the effect
	silent bool // no answer comes in the time of an attempt
	step   testserver.Step
}

// mishap is the fault with a chance, or nil.
func mishap(faults []fault, chance float64) *fault {
	for i := range faults {
		if chance -= faults[i].often; chance < 0 {
			return &faults[i]
		}
	}
	return nil
}

// serve is the script of a server with faults.
func (e *effects) serve(faults []fault) testserver.Step {
	return testserver.Func(func(_ context.Context, a testserver.Attempt) testserver.Step {
		n := numberOf(a.Requests[0])
		f := mishap(faults, e.chance(n))
		if f == nil || !f.before {
			e.made[n].Add(1)
		}
		if f == nil {
			return text("done")
		}
		return f.step
	})
}

// faults are all faults of a request: four of ten requests fail, half of them after the effect.
func faults() []fault {
	fail := testserver.Fail
	return []fault{
		{"refused", 0.10, true, false, fail(codes.Unavailable)},
		{"refused with a delay", 0.05, true, false, fail(codes.ResourceExhausted).RetryInfo(20 * ms)},
		{"refused for good", 0.02, true, false, fail(codes.Unavailable).Pushback("-1")},
		{"hangs before", 0.005, true, true, testserver.Hang()},
		{"fails after", 0.05, false, false, fail(codes.Unavailable)},
		{"aborted after", 0.03, false, false, fail(codes.Aborted)},
		{"unknown after", 0.02, false, false, fail(codes.Unknown)},
		{"fails after, and asks for a retry now", 0.03, false, false, fail(codes.Unavailable).Pushback("0")},
		{"fails after, and asks for a retry soon", 0.03, false, false, fail(codes.Internal).RetryInfo(10 * ms)},
		{"fails after, with headers", 0.02, false, false, fail(codes.Unavailable).Header(metadata.Pairs("from", "a"))},
		{"says DEADLINE_EXCEEDED after", 0.02, false, false, fail(codes.DeadlineExceeded)},
		{"answers late", 0.01, false, true, text("done").Delay(300 * ms)},
		{"never answers", 0.005, false, true, testserver.Hang()},
		{"drops the connection after", 0.0005, false, false, testserver.Drop()},
		{"cuts the answer in its middle", 0.0005, false, false, moves.Play(moves.Receive(1), moves.Cut())},
	}
}

// eager are policies that repeat whatever they may, each for a service of its own, which is to say that they
// declare no method safe.
func eager() policy.Config {
	var every []codes.Code
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		every = append(every, code)
	}
	retry := policy.RetrySpec{
		MaxAttempts: 5, Backoff: policy.Backoff{Initial: 50 * ms, Max: time.Second, Multiplier: 2},
		Codes: every, PerAttemptTimeout: 100 * ms, Budget: policy.NoBudget,
	}
	inPlace := retry
	inPlace.CancelOnTimeout, inPlace.WaitForReadyOnRetry = true, new(true)
	hedge := policy.HedgeSpec{MaxAttempts: 5, Delay: 20 * ms, NonFatal: every, Budget: policy.NoBudget}
	entry := func(service string, s policy.Spec) policy.MethodConfig {
		return policy.MethodConfig{Names: []string{"/acme.eager.v1." + service + "/"}, Spec: s}
	}
	return policy.Config{Methods: []policy.MethodConfig{
		entry("Beside", policy.Spec{Retry: &retry}),
		entry("InPlace", policy.Spec{Retry: &inPlace}),
		entry("Hedged", policy.Spec{Hedge: &hedge}),
	}}
}

// check checks that each call took effect at most once, and did if its client got a success; and that many answers
// were lost, or the test would prove nothing.
func (e *effects) check(t *testing.T, lost int) {
	t.Helper()
	for n := range e.made {
		made := e.made[n].Load()
		if made > 1 {
			t.Fatalf("call %d took effect %d times, in %d requests", n, made, e.seen[n].Load())
		}
		if made == 0 && e.answered[n] {
			t.Fatalf("call %d was answered, and took no effect", n)
		}
		if made == 1 && !e.answered[n] {
			lost--
		}
	}
	if lost > 0 {
		t.Errorf("%d more lost answers are needed for this test to mean something", lost)
	}
}

var many = flag.Int("many", 1, "how many `times` as many calls to make in tests that repeat themselves")

// enough returns the number of calls to make, at least the given number.
func enough(least int) int { return least * *many }

// crowd makes calls, each with its number, from a hundred goroutines that pause between them: else all would
// happen in the same moment of virtual time.
func crowd(calls int, call func(n int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			for {
				n := int(next.Add(1)) - 1
				if n >= calls {
					return
				}
				call(n)
				time.Sleep(time.Duration(n%20) * ms)
			}
		})
	}
	wg.Wait()
}

// outages takes a server down for a tenth of a second, again and again.
func outages(ctx context.Context, s *testserver.Server) {
	for {
		for _, change := range []func(){s.Down, s.Up} {
			select {
			case <-time.After(100 * ms):
				change()
			case <-ctx.Done():
				s.Up()
				return
			}
		}
	}
}

// Law 3, over real gRPC: calls that may have taken effect are not retried. The methods are not declared
// idempotent, all kinds of faults happen, and the policies retry as much as they may.
func TestEffect_Network(t *testing.T) {
	t.Parallel()
	calls := enough(1_250)
	e := newEffects(calls)
	var again atomic.Int64 // calls that succeeded after attempts that never left the client
	synctest.Test(t, func(t *testing.T) {
		srv := testserver.Start(t, testserver.Keep(0))
		srv.On("*", e.serve(faults()))
		r := mustNew(t, mustSet(t, eager()), interceptor.WithObserver(interceptor.Observer{
			Diagnostic: func(policy.Diagnostic) {},
			Call: func(_ context.Context, e interceptor.Event) {
				if e.Attempt > 1 && e.Err == nil {
					again.Add(1)
				}
			},
		}))
		fast := grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: 50 * ms, Multiplier: 1, MaxDelay: 50 * ms}})
		var conns []*grpc.ClientConn
		for range 8 {
			conns = append(conns, srv.Dial(t, append(r.DialOptions(), fast)...))
		}
		ctx, stop := context.WithCancel(t.Context())
		go outages(ctx, srv)
		crowd(calls, func(n int) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			e.answered[n] = act(ctx, conns[n%len(conns)], n) == nil
		})
		stop()
	})
	e.check(t, calls/10)
	if again.Load() < int64(calls/1000) {
		t.Errorf("%d calls succeeded after attempts that never left the client; want more", again.Load())
	}
	t.Logf("%d calls, %d repeated and answered", calls, again.Load())
}

// act makes a call with its number: of each policy, as unary calls and as streams.
func act(ctx context.Context, conn *grpc.ClientConn, n int) error {
	method := "/acme.eager.v1." + []string{"Beside", "InPlace", "Hedged"}[n%3] + "/Create"
	req, reply := wrapperspb.String(strconv.Itoa(n)), new(wrapperspb.StringValue)
	if n%2 == 0 {
		return conn.Invoke(ctx, method, req, reply)
	}
	stream, err := conn.NewStream(ctx, []*grpc.StreamDesc{clientStream, serverStream, bidiStream}[n/2%3], method)
	if err != nil {
		return err
	}
	if err := stream.SendMsg(req); err == nil {
		_ = stream.CloseSend()
	}
	err = stream.RecvMsg(reply)
	for range 2 { // to the end
		_ = stream.RecvMsg(new(wrapperspb.StringValue))
	}
	return err
}

// mishaps are the faults of one in ten payments, most of them after the payment was made.
func mishaps() []fault {
	fail := testserver.Fail
	return []fault{
		{"refused", 0.03, true, false, fail(codes.Unavailable)},
		{"hangs before", 0.005, true, true, testserver.Hang()},
		{"fails after", 0.03, false, false, fail(codes.Unavailable)},
		{"fails after, and asks for a retry soon", 0.02, false, false, fail(codes.Unavailable).Pushback("10")},
		{"answers late", 0.007, false, true, text("late").Delay(3 * time.Second)},
		{"never answers", 0.007, false, true, testserver.Hang()},
		{"drops the connection after", 0.0005, false, false, testserver.Drop()},
		{"cuts the answer in its middle", 0.0005, false, false, moves.Play(moves.Receive(1), moves.Cut())},
	}
}

// pay is the script of a server that recognizes its payments by their keys. The network around it fails,
// and so does the card network behind it.
func (e *effects) pay(answers *payments.Answers, faults []fault) testserver.Step {
	deduplicate := payments.Deduplicate(answers)
	info := &grpc.UnaryServerInfo{FullMethod: payments.Pay}
	return testserver.Func(func(ctx context.Context, a testserver.Attempt) testserver.Step {
		n := numberOf(a.Requests[0])
		f := mishap(faults, e.chance(n))
		if f != nil && f.before && !f.silent {
			return f.step
		}
		reply, err := deduplicate(ctx, wrapperspb.String(strconv.Itoa(n)), info, func(context.Context, any) (any, error) {
			if e.seen[n].Load() == 1 && n%50 == 0 {
				return nil, status.Error(codes.Unavailable, "the card network is down")
			}
			if f != nil && f.before {
				<-ctx.Done()
				return nil, status.FromContextError(ctx.Err()).Err()
			}
			e.made[n].Add(1)
			return wrapperspb.String("payment " + strconv.Itoa(n)), nil
		})
		switch {
		case f != nil:
			return f.step
		case err != nil:
			return testserver.FailStatus(status.Convert(err))
		default:
			return testserver.OK(reply.(*wrapperspb.StringValue))
		}
	})
}

// With a key that the server recognizes, a payment is retried, but made once: nearly every call
// succeeds although one in ten requests fails, most of them after the payment was made.
func TestEffect_Keys(t *testing.T) {
	t.Parallel()
	calls := enough(1_250)
	e := newEffects(calls)
	succeeded, replayed, requests := make([]bool, calls), make([]bool, calls), 0
	synctest.Test(t, func(t *testing.T) {
		answers := must.Get(payments.NewAnswers(time.Hour, calls))(t)
		srv := testserver.Start(t, testserver.Keep(0))
		srv.On(payments.Pay, e.pay(answers, mishaps()))
		set := must.Get(policy.Parse(payments.File, payments.Policy))(t)
		r := mustNew(t, set, quiet)
		var conns []*grpc.ClientConn
		for range 8 {
			conns = append(conns, srv.Dial(t, r.DialOptions()...))
		}
		crowd(calls, func(n int) {
			var header metadata.MD
			reply := new(wrapperspb.StringValue)
			err := conns[n%len(conns)].Invoke(t.Context(), payments.Pay, wrapperspb.String(strconv.Itoa(n)), reply, grpc.Header(&header))
			e.answered[n] = err == nil
			succeeded[n], replayed[n] = err == nil, header["idempotent-replayed"] != nil
			if err == nil && reply.GetValue() != "payment "+strconv.Itoa(n) && reply.GetValue() != "late" {
				t.Errorf("payment %d was answered with %q", n, reply.GetValue())
			}
		})
		requests = srv.Count(payments.Pay)
	})
	e.check(t, 0)
	count := func(list []bool) (n int) {
		for _, b := range list {
			if b {
				n++
			}
		}
		return n
	}
	if failed := calls - count(succeeded); failed > calls/1000+10 { // the first calls have earned nothing yet
		t.Errorf("%d calls fail, want at most %d", failed, calls/1000+10)
	}
	if count(replayed) < calls/50 {
		t.Errorf("%d answers came from the server's memory; want more", count(replayed))
	}
	t.Logf("%d calls, %d requests, %d failed, %d answered from memory", calls, requests, calls-count(succeeded), count(replayed))
}

// The same for many more calls, to a server that is a function.
func TestEffect_ManyCalls(t *testing.T) {
	t.Parallel()
	calls := enough(12_500)
	e := newEffects(calls)
	unary := mustNew(t, mustSet(t, eager()), quiet).Unary()
	list := faults()
	synctest.Test(t, func(t *testing.T) {
		invoke := func(ctx context.Context, _ string, req, _ any, _ *grpc.ClientConn, opts ...grpc.CallOption) error {
			n := req.(int)
			if chance := e.chance(n); chance < 0.9 {
				tell(opts, &net.IPAddr{}, nil)
				f := mishap(list, chance)
				if f == nil || !f.before {
					e.made[n].Add(1)
				}
				return f.fail(ctx)
			}
			err := status.Error(codes.Unavailable, "no connection")
			tell(opts, nil, err)
			return err
		}
		crowd(calls, func(n int) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			method := "/acme.eager.v1." + []string{"Beside", "InPlace", "Hedged"}[n%3] + "/Create"
			e.answered[n] = unary(ctx, method, n, nil, nil, invoke) == nil
		})
	})
	e.check(t, calls/10)
}

// tell does what gRPC does with the options of a call: it names the peer if there was a stream, and says
// that the call has ended.
func tell(opts []grpc.CallOption, peer net.Addr, err error) {
	for _, o := range opts {
		if o, ok := o.(grpc.PeerCallOption); ok && peer != nil {
			o.PeerAddr.Addr = peer
		}
	}
	for _, o := range opts {
		if o, ok := o.(grpc.OnFinishCallOption); ok {
			o.OnFinish(err)
		}
	}
}

// fail returns the fault's error at a client, which gives up silent requests.
func (f *fault) fail(ctx context.Context) error {
	switch {
	case f == nil:
		return nil
	case f.silent:
		<-ctx.Done()
		return status.FromContextError(ctx.Err()).Err()
	default:
		return status.Error(codes.Unavailable, f.name)
	}
}

// resets are the ways in which the resetter ends streams, each as often as the others. Only the first may
// be said of what has not been looked at (RFC 9113, 8.7).
var resets = []http2.ErrCode{
	http2.ErrCodeRefusedStream, http2.ErrCodeCancel, http2.ErrCodeInternal, http2.ErrCodeEnhanceYourCalm, http2.ErrCodeNo,
	http2.ErrCodeProtocol, http2.ErrCodeFlowControl, http2.ErrCodeInadequateSecurity,
}

// answer runs a request, unless it is refused, and resets its stream or answers it.
func (e *effects) answer(framer *http2.Framer, f *http2.DataFrame) {
	n := numberOf(f.Data()[5:])
	way := int(e.chance(n) * float64(len(resets)+2))
	if way > 0 {
		e.made[n].Add(1)
	}
	if way < len(resets) {
		_ = framer.WriteRSTStream(f.StreamID, resets[way])
		return
	}
	complete(framer, f.StreamID)
}

// A reset says nothing of what was done before, except one that refuses: gRPC itself repeats that, once.
func TestEffect_Resets(t *testing.T) {
	t.Parallel()
	calls := enough(5_000)
	e := newEffects(calls)
	synctest.Test(t, func(t *testing.T) {
		conn := speaking(t, mustNew(t, mustSet(t, eager()), quiet), func(framer *http2.Framer, frame http2.Frame) {
			if f, ok := frame.(*http2.DataFrame); ok && len(f.Data()) > 5 {
				_ = framer.WriteWindowUpdate(0, uint32(len(f.Data())))
				e.answer(framer, f)
			}
		})
		crowd(calls, func(n int) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			e.answered[n] = act(ctx, conn, n) == nil
		})
	})
	e.check(t, calls/2)
}
