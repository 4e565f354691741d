// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/retry"
	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/faults"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// observed is a config in mode OBSERVE.
func observed(c spec.Config) spec.Config {
	c.Mode = "OBSERVE"
	return c
}

// decided are the decisions about calls, as reasons.
func (j *journal) decided() string {
	var list []string
	for _, e := range j.decisions {
		list = append(list, fmt.Sprintf("%s %v %v %v", e.Reason, e.WillRetry, e.Delay, e.Mode))
	}
	return strings.Join(list, ", ")
}

// A call has one attempt, and observers hear what would have followed. No budget pays for it.
func TestObserve(t *testing.T) {
	for kind, desc := range callKinds {
		t.Run(kind, func(t *testing.T) {
			play(t, observed(config(minutely())), func(t *testing.T, s scene) {
				s.On(get, restarting, text("2"))
				start := time.Now()
				err := s.ended(t, desc)
				if status.Convert(err).Message() != "restarting" || reasonOf(err) != policy.ReasonModeOff || time.Since(start) != 0 || s.Count(get) != 1 {
					t.Errorf("%v, %s after %v, %d attempts; want the first one's error at once", err, reasonOf(err), time.Since(start), s.Count(get))
				}
				e := s.calls[0]
				if got := s.decided(); got != "retry false 1m0s OBSERVE" || e.Mode != policy.ModeObserve || e.Attempts != 1 || e.Waited != 0 {
					t.Errorf("decided: %s; %+v", got, e)
				}
				if b := inUse(s.retrier); len(b) != 0 {
					t.Errorf("%+v; want no balance", b)
				}
			})
		})
	}
	t.Run("to be resumed", func(t *testing.T) {
		play(t, observed(config(minutely())), func(t *testing.T, s scene) {
			s.On(get, faults.Play(faults.Receive(1), say("1")).Then(restarting), text("2"))
			got, took, err := s.whole(t, serverStream, interceptor.Resume(after))
			if got != "[1]" || reasonOf(err) != policy.ReasonModeOff || took != 0 || s.Count(get) != 1 || s.decided() != "retry false 1m0s OBSERVE" {
				t.Errorf("%s, %v, %s after %v, %d attempts; decided %s", got, err, reasonOf(err), took, s.Count(get), s.decided())
			}
		})
	})
}

// Hedges are decided on once a call.
func TestObserve_Hedges(t *testing.T) {
	for name, row := range map[string]struct {
		step    testserver.Step
		err     codes.Code
		decided string
	}{
		"fast":                     {text("1"), codes.OK, ""},
		"slow":                     {text("1").Delay(time.Second), codes.OK, "hedge false 0s OBSERVE"},
		"slow, and then it fails":  {down().Delay(time.Second), codes.Unavailable, "hedge false 0s OBSERVE, mode_off false 0s OBSERVE"},
		"slow, and fails for good": {testserver.Fail(codes.NotFound).Delay(time.Second), codes.NotFound, "hedge false 0s OBSERVE, non_retryable false 0s OBSERVE"},
	} {
		for kind, desc := range map[string]*grpc.StreamDesc{"unary": nil, "stream": serverStream} {
			t.Run(name+", "+kind, func(t *testing.T) {
				play(t, observed(hedged(func(h *spec.Hedge) { h.Budget = "" })), func(t *testing.T, s scene) {
					s.On(get, row.step)
					if err := s.ended(t, desc); status.Code(err) != row.err || s.Count(get) != 1 {
						t.Errorf("%v, %d attempts; want %v, 1", err, s.Count(get), row.err)
					}
					if got := s.decided(); got != row.decided {
						t.Errorf("decided: %s; want %s", got, row.decided)
					}
				})
			})
		}
	}
}

// Context and Header of a stream don't wait for its RecvMsg in another goroutine, as in gRPC.
func TestObserve_StreamsWaitForNobody(t *testing.T) {
	for name, row := range map[string]struct {
		step    testserver.Step
		ended   time.Duration
		decided string
	}{
		"an answer":   {text("1").Delay(time.Second), time.Second, ""},
		"a failure":   {down().Delay(time.Second), time.Second, "committed false 0s OBSERVE"},
		"no response": {testserver.Hang(), 2 * time.Second, "deadline_exceeded false 0s OBSERVE"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, observed(hedged()), func(t *testing.T, s scene) {
				s.On(get, row.step.Header(metadata.Pairs("shard", "7")))
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				begun := time.Now()
				stream := s.open(t, ctx, serverStream)
				send(t, stream, "order 7")
				ended := make(chan time.Duration)
				go func() {
					_, _ = receive(stream)
					ended <- time.Since(begun)
				}()
				time.Sleep(ms)
				headers, err := stream.Header()
				over := stream.Context().Err()
				if err != nil || over != nil || time.Since(begun) != ms || headers.Get("shard")[0] != "7" {
					t.Errorf("headers %v, %v; context %v; after %v", headers, err, over, time.Since(begun))
				}
				if took := <-ended; took != row.ended || s.Count(get) != 1 {
					t.Errorf("ended after %v, with %d attempts; want %v, 1", took, s.Count(get), row.ended)
				}
				synctest.Wait() // the end of the context may be told by another goroutine
				if got := s.decided(); got != row.decided {
					t.Errorf("decided: %s; want %s", got, row.decided)
				}
			})
		})
	}
}

// A hedge falls due while Header waits. Observers hear of it when the headers come, or at the deadline.
func TestObserve_StreamsTellLate(t *testing.T) {
	for name, row := range map[string]struct {
		headers time.Duration
		decided string
	}{
		"headers":  {time.Second, "hedge false 0s OBSERVE"},
		"deadline": {time.Hour, "hedge false 0s OBSERVE"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, observed(hedged()), func(t *testing.T, s scene) {
				s.On(get, faults.Play(faults.Receive(1), faults.Pause(row.headers), faults.SendHeader(nil), say("1")))
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				stream := s.open(t, ctx, serverStream)
				send(t, stream, "order 7")
				askHeader(stream)
				_, _ = receive(stream)
				synctest.Wait()
				if got := s.decided(); got != row.decided || s.Count(get) != 1 {
					t.Errorf("decided: %s, with %d attempts; want %s", got, s.Count(get), row.decided)
				}
			})
		})
	}
}

// Observers also hear of a hedge that fell due if the server has begun to shut down meanwhile: its connection takes no further calls.
func TestObserve_StreamOutlivesConnection(t *testing.T) {
	play(t, observed(hedged()), func(t *testing.T, s scene) {
		s.conn = speaking(t, s.retrier, func(f *http2.Framer, frame http2.Frame) {
			switch frame := frame.(type) {
			case *http2.HeadersFrame:
				_ = f.WriteGoAway(frame.StreamID, http2.ErrCodeNo, nil)
			case *http2.PingFrame:
				_ = f.WritePing(true, frame.Data)
			}
		})
		knowLatency(s.retrier, s.conn)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_ = exchange(ctx, s.conn, serverStream, get)
		synctest.Wait()
		if got := s.decided(); got != "hedge false 0s OBSERVE" {
			t.Errorf("decided: %s", got)
		}
	})
}

// RecvMsg races with nothing if it begins before the request is sent, so no attempt would follow.
func TestObserve_RecvMsgBeginsBefore(t *testing.T) {
	for _, mode := range []policy.Mode{policy.ModeEnforce, policy.ModeObserve} {
		t.Run(string(mode), func(t *testing.T) {
			retry := plain()
			retry.PerAttemptTimeout = 100 * ms
			c := config(retry)
			c.Mode = string(mode)
			play(t, c, func(t *testing.T, s scene) {
				s.On(get, text("1").Delay(time.Second))
				stream := s.open(t, t.Context(), serverStream)
				time.AfterFunc(ms, func() { send(t, stream, "order 7") })
				if _, err := receive(stream); err != io.EOF || s.decided() != "" || s.Count(get) != 1 {
					t.Errorf("%v, decided %q, %d attempts; want no decision", err, s.decided(), s.Count(get))
				}
			})
		})
	}
}

// No wait slot is taken, and no budget is asked: what is announced doesn't depend on either. Those of enforced calls are untouched.
func TestObserve_TakesNothing(t *testing.T) {
	c := budgeted(bucketOf(2)) // two extra attempts
	c.Methods[0].Mode, c.MaxWaiting = "OBSERVE", 1
	play(t, c, func(t *testing.T, s scene) {
		s.On("*", restarting)
		var reasons []string
		for range 4 {
			_, err := s.call(t.Context(), get)
			reasons = append(reasons, string(reasonOf(err)))
		}
		if got := strings.Join(reasons, " "); got != "mode_off mode_off mode_off mode_off" {
			t.Errorf("the calls end with %s", got)
		}
		if _, err := s.call(t.Context(), create, interceptor.Idempotent()); reasonOf(err) != policy.ReasonBudgetExhausted || s.Count(create) != 3 {
			t.Errorf("a method that is enforced: %s, %d attempts; want two extra attempts", reasonOf(err), s.Count(create))
		}
		if b := inUse(s.retrier); len(b) != 1 || b[0].Granted != 2 || b[0].Refused != 1 {
			t.Errorf("%+v; want the budget of enforced calls", b)
		}
	})
}

// In a trial, as many calls are announced to be retried as mode ENFORCE retries, or would if its budget paid for it.
func TestObserve_AnnouncesCallsThatEnforceWouldRetry(t *testing.T) {
	testkit.Long(t)
	for name, row := range map[string]trouble{
		"one of three fails":        {down(), 3, false},
		"one of three hangs":        {testserver.Hang(), 3, false},
		"a tenth of attempts fails": {down(), 10, false},
		"all fail":                  {down(), 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			retried := map[policy.Mode]*int{policy.ModeEnforce: new(int), policy.ModeObserve: new(int)}
			t.Run("calls", func(t *testing.T) {
				for mode, count := range retried {
					t.Run(string(mode), func(t *testing.T) { *count = row.retriedCalls(t, mode) })
				}
			})
			announced, want := *retried[policy.ModeObserve], *retried[policy.ModeEnforce]
			if want < 25 || math.Abs(float64(announced-want)) > 0.15*float64(want) {
				t.Errorf("%d calls are announced to be retried; mode ENFORCE asks for %d", announced, want)
			}
		})
	}
}

// trouble is a fault of every so many calls: of their first attempt, or of all.
type trouble struct {
	fault testserver.Step
	every int
	all   bool
}

// retriedCalls returns the number of calls whose first attempt is followed by another one, would be in a trial, or is not for
// lack of budget.
func (tr trouble) retriedCalls(t *testing.T, mode policy.Mode) (n int) {
	t.Helper()
	retry := plain()
	retry.Budget, retry.PerAttemptTimeout = "", 200*ms
	c := config(retry)
	c.Mode = string(mode)
	play(t, c, func(t *testing.T, s scene) {
		s.On(get, testserver.Func(func(_ context.Context, a testserver.Attempt) testserver.Step {
			call, _ := strconv.Atoi(a.Metadata.Get("call")[0])
			if call > 20 && call%tr.every == 0 && (tr.all || len(a.Metadata.Get("grpc-previous-rpc-attempts")) == 0) {
				return tr.fault
			}
			return text("1").Delay(20 * ms)
		}))
		var calls sync.WaitGroup
		for call := range 320 {
			ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(t.Context(), "call", strconv.Itoa(call)), 2*time.Second)
			calls.Go(func() {
				defer cancel()
				_, _ = s.call(ctx, get)
			})
			time.Sleep(50 * ms)
		}
		calls.Wait()
		for _, e := range s.decisions {
			follows := e.WillRetry || e.Reason == policy.ReasonRetry || e.Reason == policy.ReasonHedge || e.Reason == policy.ReasonBudgetExhausted || e.Reason == policy.ReasonFailingEverywhere
			if e.Attempt == 1 && follows {
				n++
			}
		}
		for _, e := range s.calls {
			if e.Attempts == 1 && e.Reason == policy.ReasonFailingEverywhere && e.Waited > 0 { // it has waited: there are two decisions
				n--
			}
		}
	})
	return n
}

// trailers is a call at a server of which only the trailer is kept.
type trailers struct{ kept *metadata.MD }

func (trailers) Method() string                    { return get }
func (trailers) SetHeader(metadata.MD) error       { return nil }
func (trailers) SendHeader(metadata.MD) error      { return nil }
func (t trailers) SetTrailer(md metadata.MD) error { *t.kept = metadata.Join(*t.kept, md); return nil }

// In a trial, existing retries continue: no warning asks to remove them.
func TestObserve_BesideOtherRetries(t *testing.T) {
	twice := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		_ = invoke(ctx, method, req, reply, cc, opts...)
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	for _, mode := range []policy.Mode{policy.ModeEnforce, policy.ModeObserve, policy.ModeOff} {
		t.Run(string(mode), func(t *testing.T) {
			c := config(plain())
			c.Mode = string(mode)
			play(t, c, func(t *testing.T, s scene) {
				s.conn = s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainUnaryInterceptor(twice))...)
				s.On(get, down())
				outer := metadata.AppendToOutgoingContext(t.Context(), "x-retry-attempty", "2")
				_, _ = s.call(outer, get, retry.WithMax(2))
				if want := map[bool]int{true: 3}[mode == policy.ModeEnforce]; len(s.warnings) != want {
					t.Errorf("%d warnings %q; want %d", len(s.warnings), s.warnings, want)
				}
			})
		})
	}
}

// DialOptions switch gRPC's own retries off in every mode; Unary and Stream keep them.
func TestMode_GRPCRetries(t *testing.T) {
	const grpcs = `{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 3, "initialBackoff": "0.1s",
		"maxBackoff": "1s", "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}}]}`
	alone := func(s scene) []grpc.DialOption { return s.retrier.DialOptions() }
	beside := func(s scene) []grpc.DialOption {
		return []grpc.DialOption{grpc.WithUnaryInterceptor(s.retrier.Unary()), grpc.WithStreamInterceptor(s.retrier.Stream())}
	}
	for name, row := range map[string]struct {
		mode     policy.Mode
		dial     func(scene) []grpc.DialOption
		config   string
		attempts int
	}{
		"enforced":                         {policy.ModeEnforce, alone, grpcs, 4},
		"observed":                         {policy.ModeObserve, alone, grpcs, 1},
		"off":                              {policy.ModeOff, alone, grpcs, 1},
		"off, and gRPC has no policy":      {policy.ModeOff, alone, "{}", 1},
		"off, and gRPC's own are kept":     {policy.ModeOff, beside, grpcs, 3},
		"observed, and gRPC's own as well": {policy.ModeObserve, beside, grpcs, 3},
	} {
		for _, kind := range []string{"unary", "stream"} {
			t.Run(name+", "+kind, func(t *testing.T) {
				c := config(plain())
				c.Mode = string(row.mode)
				play(t, c, func(t *testing.T, s scene) {
					s.conn = s.Dial(t, append(row.dial(s), grpc.WithDefaultServiceConfig(row.config))...)
					s.On(get, down())
					for range 2 {
						s.Reset()
						s.On(get, down())
						_ = s.once(t.Context(), kind, get)
						if s.Count(get) != row.attempts {
							t.Errorf("%d attempts; want %d", s.Count(get), row.attempts)
						}
					}
					want := map[string]int{"observed": 1}[name] // nobody retries, though the mode is to change nothing
					if len(s.warnings) != want {
						t.Errorf("warnings %q; want %d", s.warnings, want)
					}
				})
			})
		}
	}
}

// A trial warns of a budget that the Retrier does not have, before a call needs it.
func TestObserve_UnknownBudget(t *testing.T) {
	for mode, want := range map[policy.Mode]int{policy.ModeEnforce: 1, policy.ModeObserve: 1, policy.ModeOff: 0} {
		t.Run(string(mode), func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.setMode(t, mode)
				own := mustSet(t, budgeted(bucketOf(2))).Lookup(get) // it names a budget of its own file
				s.warnings = nil
				_, _ = s.call(t.Context(), get, interceptor.Policy(own))
				found := 0
				for _, w := range s.warnings {
					if strings.Contains(w, "names a budget") {
						found++
					}
				}
				if found != want {
					t.Errorf("%d warnings of the budget in %q; want %d", found, s.warnings, want)
				}
			})
		})
	}
}
