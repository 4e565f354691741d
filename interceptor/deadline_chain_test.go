// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// A user's deadline reaches the service in the middle as a cancellation, just before the service's own timer fires. The reason is the
// deadline; the code is what gRPC says of a cancelled context.
func TestDeadlineInAChain(t *testing.T) {
	for name, row := range map[string]struct {
		deadline, cancel time.Duration
		want             policy.Reason
	}{
		"5 ms before":                          {time.Second, 995 * ms, policy.ReasonDeadlineExceeded},
		"more than 5 ms before":                {time.Second, 995*ms - 1, policy.ReasonCancelled},
		"the last tenth of a short call":       {20 * ms, 18 * ms, policy.ReasonDeadlineExceeded},
		"before the last tenth of such a call": {20 * ms, 18*ms - 1, policy.ReasonCancelled},
		"no deadline":                          {0, time.Second, policy.ReasonCancelled},
	} {
		for kind, desc := range callKinds {
			t.Run(name+", "+kind, func(t *testing.T) {
				play(t, config(plain()), func(t *testing.T, s scene) {
					s.On(get, testserver.Hang())
					s.connect()
					ctx := t.Context()
					if row.deadline > 0 {
						var cancel context.CancelFunc
						ctx, cancel = context.WithTimeout(ctx, row.deadline)
						defer cancel()
					}
					ctx, cancel := context.WithCancel(ctx)
					time.AfterFunc(row.cancel, cancel)
					err := exchange(ctx, s.conn, desc, get)
					synctest.Wait() // a stream that its caller has left tells its end in a goroutine of its own
					if status.Code(err) != codes.Canceled || reasonOf(err) != row.want {
						t.Errorf("%v, %s; want CANCELLED, %s", err, reasonOf(err), row.want)
					}
					if len(s.calls) != 1 || s.calls[0].Reason != row.want || s.calls[0].Code != codes.Canceled {
						t.Errorf("observers are told %+v", s.calls)
					}
				})
			})
		}
	}
}

// The same while the call waits for its next attempt.
func TestDeadlineInAChain_Backoff(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down())
		ctx, cancel := context.WithTimeout(t.Context(), 204*ms) // the second attempt is sent after 100 ms, the third after 300 ms
		defer cancel()
		ctx, leave := context.WithCancel(ctx)
		time.AfterFunc(50*ms, leave)
		_, err := s.call(ctx, get)
		if status.Code(err) != codes.Canceled || reasonOf(err) != policy.ReasonCancelled {
			t.Errorf("%v, %s", err, reasonOf(err))
		}
		s.calls = nil
		ctx, cancel = context.WithTimeout(t.Context(), 104*ms)
		defer cancel()
		ctx, leave = context.WithCancel(ctx)
		time.AfterFunc(100*ms-1, leave)
		_, err = s.call(ctx, get)
		if status.Code(err) != codes.Canceled || reasonOf(err) != policy.ReasonDeadlineExceeded {
			t.Errorf("%v, %s", err, reasonOf(err))
		}
	})
}

// An attempt that has taken longer than its own time is told as slow, and so is its call.
func TestSlowAttempts(t *testing.T) {
	timed := plain()
	timed.PerAttemptTimeout = 100 * ms
	hedges := spec.Config{Methods: []spec.MethodConfig{{
		Names:  []string{get},
		Policy: spec.Policy{Hedge: &spec.Hedge{MaxAttempts: 2, HedgingDelay: 100 * ms, Budget: "NONE"}},
	}}}
	after := func(d time.Duration) testserver.Step { return testserver.OK().Delay(d) }
	for name, row := range map[string]struct {
		config spec.Config
		method string
		script []testserver.Step
		leaves time.Duration // when the caller leaves; 0: it stays, and has a deadline of 1 s
		want   []bool        // of each attempt, by number
	}{
		"in time":                         {config(plain()), get, []testserver.Step{after(250 * ms)}, 0, []bool{false}},
		"a quarter of the call's time":    {config(plain()), get, []testserver.Step{after(250*ms + 1)}, 0, []bool{true}},
		"a failure":                       {config(plain()), create, []testserver.Step{testserver.Fail(codes.NotFound).Delay(300 * ms)}, 0, []bool{true}},
		"perAttemptTimeout, undeclared":   {config(timed), create, []testserver.Step{after(260 * ms)}, 0, []bool{true}}, // and a quarter, which counts for streams of the client
		"perAttemptTimeout, in time":      {config(timed), create, []testserver.Step{after(50 * ms)}, 0, []bool{false}},
		"the attempt that lost":           {config(timed), get, []testserver.Step{testserver.Hang().Times(1), after(50 * ms)}, 0, []bool{true, false}},
		"hedgingDelay":                    {hedges, get, []testserver.Step{testserver.Hang().Times(1), after(50 * ms)}, 0, []bool{true, false}},
		"the caller leaves a slow server": {config(timed), create, []testserver.Step{testserver.Hang()}, 500 * ms, []bool{true}},
		"the caller leaves at once":       {config(timed), create, []testserver.Step{testserver.Hang()}, 50 * ms, []bool{false}},
	} {
		for kind, desc := range callKinds {
			t.Run(name+", "+kind, func(t *testing.T) {
				play(t, row.config, func(t *testing.T, s scene) {
					if desc != nil && desc.ClientStreams && len(row.want) > 1 {
						return // attempts of streams with many requests don't run in parallel
					}
					s.connect()
					s.On(row.method, row.script...)
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					if row.leaves > 0 {
						time.AfterFunc(row.leaves, cancel)
					}
					err := exchange(ctx, s.conn, desc, row.method)
					synctest.Wait() // a stream that its caller has left tells its end in a goroutine of its own
					got := make([]bool, len(s.attempts))
					slow := false
					for _, e := range s.attempts {
						got[e.Attempt-1] = e.SlowAttempt
						slow = slow || e.SlowAttempt
					}
					if fmtBools(got) != fmtBools(row.want) {
						t.Errorf("slow: %v; want %v (%v)", got, row.want, err)
					}
					if len(s.calls) != 1 || s.calls[0].SlowAttempt != slow || row.leaves > 0 && s.calls[0].Reason != policy.ReasonCancelled {
						t.Errorf("the call: %+v", s.calls)
					}
				})
			})
		}
	}
}

// A quiet watch doesn't make its healthy server slow: it has brought nothing when the call ends, at its deadline or since the application leaves,
// or when it is cut. A message that comes late does, and so does silence after a timeout of the attempt's own, unless the watch is resumed.
func TestSlowAttempts_QuietWatch(t *testing.T) {
	timed := plain()
	timed.PerAttemptTimeout = 100 * ms
	watch := []grpc.CallOption{interceptor.Resume(func(proto.Message) (proto.Message, bool) { return wrapperspb.String("again"), true })}
	cut := testserver.Fail(codes.Unavailable).Delay(time.Minute)
	for name, row := range map[string]struct {
		retry  spec.Retry
		script []testserver.Step
		leaves time.Duration // when the caller leaves; 0: at the deadline of two minutes
		opts   []grpc.CallOption
		slow   bool
	}{
		"until the deadline":                       {plain(), []testserver.Step{testserver.Hang()}, 0, nil, false},
		"until the application leaves":             {plain(), []testserver.Step{testserver.Hang()}, time.Minute, nil, false},
		"cut":                                      {plain(), []testserver.Step{cut}, 0, nil, false},
		"cut and resumed":                          {plain(), []testserver.Step{cut}, 0, watch, false},
		"resumed, with a timeout of its own":       {timed, []testserver.Step{testserver.Hang()}, time.Minute, watch, false},
		"resumed, with a timeout and the deadline": {timed, []testserver.Step{testserver.Hang()}, 0, watch, false},
		"a timeout of its own":                     {timed, []testserver.Step{testserver.Hang()}, time.Minute, nil, true},
		"a late message":                           {plain(), []testserver.Step{testserver.OK(wrapperspb.String("a")).Delay(time.Minute)}, 0, nil, true},
		"a late answer":                            {plain(), []testserver.Step{testserver.Fail(codes.NotFound).Delay(time.Minute)}, 0, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, config(row.retry), func(t *testing.T, s scene) {
				s.connect()
				s.On(get, row.script...)
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				defer cancel()
				if row.leaves > 0 {
					time.AfterFunc(row.leaves, cancel)
				}
				err := exchange(ctx, s.conn, serverStream, get, row.opts...)
				synctest.Wait()
				for _, e := range s.attempts {
					if e.SlowAttempt != row.slow {
						t.Errorf("attempt %d: slow %v; want %v (%v)", e.Attempt, e.SlowAttempt, row.slow, err)
					}
				}
				for _, e := range s.calls {
					if e.SlowAttempt != row.slow {
						t.Errorf("the call, %s: slow %v; want %v (%v)", e.Reason, e.SlowAttempt, row.slow, err)
					}
				}
			})
		})
	}
}

// An attempt that no server has seen isn't slow, however long its token or its connection took, and nor is one whose deadline had passed.
func TestSlowAttempts_Unsent(t *testing.T) {
	t.Parallel()
	refused := grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return nil, errors.New("refused") })
	for name, row := range map[string]struct {
		deadline time.Duration
		dial     []grpc.DialOption
		opts     []grpc.CallOption
	}{
		"a token":                  {time.Second, nil, []grpc.CallOption{grpc.PerRPCCredentials(lateToken{})}},
		"a token, in between":      {time.Second, waitsForToken(func(err error) error { return err }), nil},
		"a connection":             {time.Second, []grpc.DialOption{refused}, []grpc.CallOption{grpc.WaitForReady(true)}},
		"the deadline had passed":  {-time.Second, nil, nil},
		"it passes at that moment": {0, nil, nil},
	} {
		for kind, desc := range callKinds {
			for policy, c := range map[string]spec.Config{
				"no policy": {}, "a policy": config(plain()), "beside": watchful(false), "hedges": hedged(),
			} {
				t.Run(name+"/"+kind+"/"+policy, func(t *testing.T) {
					play(t, c, func(t *testing.T, s scene) {
						s.On(get, testserver.Hang())
						s.conn = s.Dial(t, append(s.retrier.DialOptions(), row.dial...)...)
						ctx, cancel := context.WithTimeout(t.Context(), row.deadline)
						defer cancel()
						_ = exchange(ctx, s.conn, desc, get, row.opts...)
						synctest.Wait()
						for _, e := range s.attempts {
							if e.SlowAttempt {
								t.Errorf("slow: %+v", e)
							}
						}
						if len(s.calls) != 1 || s.calls[0].SlowAttempt || s.Count(get) != 0 {
							t.Errorf("ends %+v, %d requests", s.calls, s.Count(get))
						}
					})
				})
			}
		}
	}
}

func fmtBools(list []bool) (text string) {
	for _, b := range list {
		text += map[bool]string{true: "slow ", false: "fast "}[b]
	}
	return text
}

// Observers that are only told of the call's end see a slow success, too.
func TestSlowAttempts_CallEndOnly(t *testing.T) {
	var slow []bool
	o := interceptor.Observer{CallEnd: func(_ context.Context, e interceptor.CallEnd) { slow = append(slow, e.SlowAttempt) }}
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.conn = s.Dial(t, mustNew(t, mustSet(t, config(plain())), interceptor.WithObserver(o)).DialOptions()...)
		s.On(get, testserver.OK().Delay(100*ms).Times(1), testserver.OK().Delay(300*ms))
		for range 2 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if _, err := s.call(ctx, get); err != nil {
				t.Error(err)
			}
			cancel()
		}
		if fmtBools(slow) != "fast slow " {
			t.Error(slow)
		}
	})
}
