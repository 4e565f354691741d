// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/faults"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// waitingCrowd is a service that has become slow, with its waiting calls.
type waitingCrowd struct {
	scene

	wg     sync.WaitGroup
	cancel context.CancelFunc
}

// gather makes the service answer calls for 4 s, the last ones in 700 ms, and refuse one for overload. Then it starts n
// more calls that the service does not answer. A call with a second left has room for one of them.
func (s scene) gather(t *testing.T, n int) *waitingCrowd {
	t.Helper()
	for i := range 6 {
		took := 700 * ms
		if i < 2 {
			took = 20 * ms
		}
		s.On(get, text("slow").Delay(took))
		testkit.Must(s.call(t.Context()))(t)
		time.Sleep(750*ms - took)
	}
	s.On(get, testserver.Fail(codes.ResourceExhausted, "full"))
	if _, err := s.call(t.Context()); status.Code(err) != codes.ResourceExhausted {
		t.Fatal(err)
	}
	s.On(get, testserver.Hang())
	ctx, cancel := context.WithCancel(t.Context())
	c := &waitingCrowd{scene: s, cancel: cancel}
	for range n {
		c.wg.Go(func() { _, _ = s.call(ctx) })
	}
	synctest.Wait()
	return c
}

// leave ends the calls that run.
func (c *waitingCrowd) leave() {
	c.cancel()
	c.wg.Wait()
}

// refused makes a call with the given time.
func (s scene) refused(t *testing.T, left time.Duration, opts ...grpc.CallOption) (refused bool, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), left)
	defer cancel()
	before, began := s.Count(get), time.Now()
	_, err = s.call(ctx, opts...)
	if reasonOf(err) != policy.ReasonOverloaded {
		return false, err
	}
	if n, took := s.Count(get)-before, time.Since(began); n != 0 || took != 0 {
		t.Errorf("%d requests in %v of a call that is refused; want none, at once", n, took)
	}
	return true, err
}

// Without an observer of attempts, a success needs no more than the start of the engine.
func TestAdmission_Unobserved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := scene{Server: testserver.Start(t), retrier: testkit.Must(interceptor.New(parse(t, admitting(retries)), quiet))(t)}
		s.conn = s.Dial(t, s.retrier.DialOptions()...)
		c := s.gather(t, 3)
		defer c.leave()
		if refused, err := s.refused(t, time.Second); !refused {
			t.Errorf("%v; want that the call is refused", err)
		}
		if refused, err := s.refused(t, 5*time.Second); refused || status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("%v; a call with more time is made", err)
		}
	})
}

// A call that has expired is not asked about: it ends as it does without admission.
func TestAdmission_ExpiredCall(t *testing.T) {
	play(t, admitting(retries), func(t *testing.T, s scene) {
		c := s.gather(t, 3)
		defer c.leave()
		if refused, err := s.refused(t, -time.Second); refused || status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("%v; want DEADLINE_EXCEEDED", err)
		}
		if refused, err := s.refused(t, time.Second); !refused {
			t.Errorf("%v; want that a call with a second left is refused", err)
		}
	})
}

// closedCircuit is a breaker that lets all attempts pass.
type closedCircuit struct{}

func (closedCircuit) Open(context.Context, int) error { return nil }

func (closedCircuit) Allow(context.Context, int) (func(error), error) { return nil, nil }

func TestAdmission(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		settings string
		options  []interceptor.Option
	}{
		"retries":           {retries, nil},
		"without retries":   {once, nil},
		"attempts timeouts": {timeouts, nil},
		"hedging":           {hedges, nil},
		"a breaker":         {retries, []interceptor.Option{interceptor.WithBreaker(func(string, string) interceptor.Gate { return closedCircuit{} })}},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, admitting(row.settings), func(t *testing.T, s scene) {
				c := s.gather(t, 3)
				defer c.leave()
				s.calls = nil
				finished := 0
				refused, err := s.refused(t, time.Second, grpc.OnFinish(func(error) { finished++ }))
				e, _ := errors.AsType[*interceptor.Error](err)
				if !refused || status.Code(err) != codes.ResourceExhausted || e == nil || e.Attempts != 0 || finished != 1 {
					t.Errorf("%+v (finished %d times); want RESOURCE_EXHAUSTED, overloaded, 0 attempts, finished once", err, finished)
				}
				if len(s.calls) != 1 || s.calls[0].Reason != policy.ReasonOverloaded || s.calls[0].Attempts != 0 || s.calls[0].Code != codes.ResourceExhausted {
					t.Errorf("observers are told of %+v; want one call, overloaded, 0 attempts", s.calls)
				}
				if got := s.retrier.State().Admission[0]; got.Running != 3 || got.Refused != 1 {
					t.Errorf("%+v; want 3 attempts that run, and 1 call refused", got)
				}
				if refused, _ := s.refused(t, 2*time.Second); refused {
					t.Error("a call is refused that has time enough")
				}
			}, row.options...)
		})
	}
}

func TestAdmission_NoDeadline(t *testing.T) {
	play(t, admitting(retries), func(t *testing.T, s scene) {
		c := s.gather(t, 30)
		defer c.leave()
		s.On(get, text("in the end"))
		if got, err := s.call(t.Context()); got != "in the end" || err != nil {
			t.Errorf("%q, %v; want a call without a deadline to be made", got, err)
		}
	})
}

func TestAdmission_PolicyTimeout(t *testing.T) {
	play(t, admitting("timeout: 1s, "+retries), func(t *testing.T, s scene) {
		c := s.gather(t, 3)
		defer c.leave()
		if _, err := s.call(t.Context()); reasonOf(err) != policy.ReasonOverloaded {
			t.Errorf("%v; want the policy's timeout to count as the call's", err)
		}
	})
}

func TestAdmission_ExtraAttempts(t *testing.T) {
	play(t, admitting(retries), func(t *testing.T, s scene) {
		c := s.gather(t, 0)
		defer c.leave()
		s.On(get, down())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := s.call(ctx) // nothing runs, so it is made
		if e, _ := errors.AsType[*interceptor.Error](err); e == nil || e.Reason != policy.ReasonOverloaded || e.Attempts != 1 || status.Code(err) != codes.Unavailable {
			t.Errorf("%+v; want the server's error after 1 attempt, overloaded", err)
		}
	})
}

func TestAdmission_Mode(t *testing.T) {
	t.Parallel()
	for _, mode := range []policy.Mode{policy.ModeObserve, policy.ModeOff} {
		t.Run(string(mode), func(t *testing.T) {
			play(t, admitting(retries), func(t *testing.T, s scene) {
				c := s.gather(t, 3)
				defer c.leave()
				testkit.NoError(t, s.retrier.SetMode(interceptor.ModeSwitch{Mode: mode}))
				if refused, err := s.refused(t, time.Second); refused || s.running(t) != 3 {
					t.Errorf("%v; want the call to be made, and counted to its end", err)
				}
				if state := s.retrier.State().Admission[0]; state.Refused != 0 || state.WouldRefuse != 1 {
					t.Errorf("%+v; want that one call would be refused", state)
				}
				told := 0
				for _, d := range s.decisions {
					if d.Attempt == 0 && d.Reason == policy.ReasonOverloaded && d.Mode == mode && d.Code == codes.ResourceExhausted {
						told++
					}
				}
				if told != 1 == (mode == policy.ModeObserve) {
					t.Errorf("%+v; want one decision in mode OBSERVE, that the call would be refused", s.decisions)
				}
				testkit.NoError(t, s.retrier.SetMode(interceptor.ModeSwitch{Mode: policy.ModeEnforce}))
				if refused, err := s.refused(t, 1100*ms); !refused {
					t.Errorf("%v; want it to be refused again", err)
				}
			})
		})
	}
}

// A reload keeps the measurements of a service's load, and counts calls that began before it to their end.
func TestAdmission_Reload(t *testing.T) {
	play(t, admitting(retries), func(t *testing.T, s scene) {
		c := s.gather(t, 3)
		reload := func(settings string) {
			testkit.NoError(t, s.retrier.Reload(parse(t, settings)))
		}
		reload(admitting(timeouts))
		if refused, err := s.refused(t, time.Second); !refused {
			t.Errorf("%v; want refused after a reload, too", err)
		}
		reload(retries)
		if refused, _ := s.refused(t, time.Second); refused {
			t.Error("refused without admission")
		}
		if n := s.running(t); n != 3 {
			t.Errorf("%d attempts run; want the 3 from before", n)
		}
		c.leave()
		if n := s.running(t); n != 0 {
			t.Errorf("%d attempts run; want none", n)
		}
	})
}

func TestAdmission_Streams(t *testing.T) {
	t.Parallel()
	server := &grpc.StreamDesc{ServerStreams: true}
	open := func(t *testing.T, s scene) grpc.ClientStream {
		t.Helper()
		stream := testkit.Must(s.conn.NewStream(t.Context(), server, get))(t)
		testkit.NoError(t, stream.SendMsg(wrapperspb.String("")))
		testkit.NoError(t, stream.CloseSend())
		return stream
	}
	for name, row := range map[string]struct {
		settings string
		before   func(grpc.ClientStream) // the first message
	}{
		"received":            {retries, func(grpc.ClientStream) {}},
		"committed by header": {retries, func(s grpc.ClientStream) { s.Context() }},
		"one attempt":         {once, func(grpc.ClientStream) {}},
		"hedging":             {hedges, func(grpc.ClientStream) {}},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, admitting(row.settings), func(t *testing.T, s scene) {
				s.On(get, faults.Play(faults.Pause(100*ms), say("one"), faults.Pause(time.Second), say("two"), faults.Pause(time.Second)))
				stream := open(t, s)
				row.before(stream)
				for i, want := range []int{1, 0, 0, 0} { // that run, before each message, and after the end
					synctest.Wait()
					if got := s.running(t); got != want {
						t.Errorf("%d attempts run after %d messages; want %d", got, i, want)
					}
					if err := stream.RecvMsg(new(wrapperspb.StringValue)); i == 2 && !errors.Is(err, io.EOF) || i < 2 && err != nil {
						t.Errorf("message %d: %v", i, err)
					}
				}
			})
		})
	}
	t.Run("refused", func(t *testing.T) {
		play(t, admitting(retries), func(t *testing.T, s scene) {
			c := s.gather(t, 3)
			defer c.leave()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := s.conn.NewStream(ctx, server, get); reasonOf(err) != policy.ReasonOverloaded || s.retrier.State().Admission[0].Refused != 1 {
				t.Errorf("%v; want it to be refused", err)
			}
		})
	})
}

func TestAdmission_BoundedMemory(t *testing.T) {
	t.Parallel()
	set := testkit.Must(policy.Parse("retry.yaml", []byte("methodConfig: [{name: [{}], admission: REFUSE}]")))(t)
	retrier := testkit.Must(interceptor.New(set, quiet))(t)
	answered := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return nil }
	for i := range 20_000 {
		if i%10_000 == 0 {
			testkit.NoError(t, retrier.Unary()(t.Context(), "/a.B/Own", nil, nil, nil, answered, grpc.StaticMethod()))
		}
		testkit.NoError(t, retrier.Unary()(t.Context(), fmt.Sprint("/a.B/M", i), nil, nil, nil, answered))
	}
	testkit.NoError(t, retrier.Unary()(t.Context(), "/a.B/"+strings.Repeat("M", 300), nil, nil, nil, answered)) // too long a name to be kept
	list := retrier.State().Admission
	own := slices.ContainsFunc(list, func(s interceptor.AdmissionState) bool { return s.Method == "/a.B/Own" })
	if n := len(list); n > 16_384 || n < 16_384*7/8 || !own {
		t.Errorf("state of %d methods, of the client's own: %v; want seven eighths of 16,384 at least, and that", n, own)
	}
}

// Admission knows all methods of a client with many connections.
func TestAdmission_ManyTargets(t *testing.T) {
	t.Parallel()
	set := testkit.Must(policy.Parse("retry.yaml", []byte("methodConfig: [{name: [{service: acme.stock.v1.StockService}], admission: REFUSE}]")))(t)
	retrier := testkit.Must(interceptor.New(set, quiet))(t)
	answered := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return nil }
	for target := range 400 {
		conn := testkit.Must(grpc.NewClient(fmt.Sprintf("target-%d:443", target), grpc.WithTransportCredentials(insecure.NewCredentials())))(t)
		t.Cleanup(func() { _ = conn.Close() })
		for n := range 10 {
			method := fmt.Sprintf("/acme.stock.v1.StockService/Method%d", n)
			testkit.NoError(t, retrier.Unary()(t.Context(), method, nil, nil, conn, answered, grpc.StaticMethod()))
		}
	}
	if n := len(retrier.State().Admission); n != 4000 {
		t.Errorf("admission knows %d methods; want 4000", n)
	}
}

// A call that is refused in an incoming call tells its caller not to retry.
func TestAdmission_Chain(t *testing.T) {
	play(t, admitting("timeout: 1s, "+retries), func(t *testing.T, s scene) {
		middle := testserver.Start(t, testserver.ServerOptions(s.retrier.ServerOptions()...))
		middle.On("*", testserver.Func(func(ctx context.Context, _ testserver.Attempt) testserver.Step {
			_, err := s.call(ctx)
			if reasonOf(err) != policy.ReasonOverloaded {
				t.Errorf("%v; want it refused", err)
			}
			return testserver.Fail(codes.Unavailable)
		}))
		c := s.gather(t, 3)
		defer c.leave()
		var trailer metadata.MD
		err := middle.Dial(t).Invoke(t.Context(), "/a.B/C", wrapperspb.String(""), new(wrapperspb.StringValue), grpc.Trailer(&trailer))
		if got := trailer.Get("grpc-retry-pushback-ms"); err == nil || len(got) != 1 || got[0] != "-1" {
			t.Errorf("%v; the caller is told %v; want -1", err, got)
		}
	})
}

// A caller's own policy has the same gate as the file's.
func TestAdmission_CallersPolicy(t *testing.T) {
	play(t, admitting("timeout: 1s, "+retries), func(t *testing.T, s scene) {
		c := s.gather(t, 3)
		defer c.leave()
		own := interceptor.Policy(parse(t, admitting("timeout: 1s")).Lookup(get))
		if _, err := s.call(t.Context(), own); reasonOf(err) != policy.ReasonOverloaded {
			t.Errorf("%v; want it refused", err)
		}
	})
}
