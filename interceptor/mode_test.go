// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/backoff"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/faults"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// minutely is plain with a minute between attempts, and the default budget.
func minutely() spec.Retry {
	retry := plain()
	retry.Backoff, retry.Budget = backoff.Config{Initial: time.Minute, Max: time.Minute, Multiplier: 1, Jitter: "NONE"}, ""
	return retry
}

func (s scene) setMode(t *testing.T, m policy.Mode) {
	t.Helper()
	testkit.NoError(t, s.retrier.SetMode(interceptor.ModeSwitch{Mode: m}))
}

// setModeAfter sets a mode while calls run.
func (s scene) setModeAfter(t *testing.T, d time.Duration, m policy.Mode) {
	t.Helper()
	time.AfterFunc(d, func() { s.setMode(t, m) })
}

// ended makes a unary call, or a stream as desc says, and returns how that ends.
func (s scene) ended(t *testing.T, desc *grpc.StreamDesc) (err error) {
	t.Helper()
	err = exchange(t.Context(), s.conn, desc, get)
	synctest.Wait() // observers are told by whoever has ended the call
	return err
}

var restarting = testserver.Fail(codes.Unavailable, "restarting")

// The effects of a mode set after 1 s.
func TestMode_CallsThatWait(t *testing.T) {
	for _, mode := range []policy.Mode{policy.ModeOff, policy.ModeObserve} {
		for kind, desc := range callKinds {
			t.Run(fmt.Sprint(kind, ", ", mode), func(t *testing.T) {
				play(t, config(minutely()), func(t *testing.T, s scene) {
					s.On(get, restarting)
					s.setModeAfter(t, time.Second, mode)
					start := time.Now()
					err := s.ended(t, desc)
					if took := time.Since(start); status.Convert(err).Message() != "restarting" || reasonOf(err) != policy.ReasonModeOff || took != time.Second {
						t.Errorf("%v, %s after %v; want the server's error, mode_off after 1s", err, reasonOf(err), took)
					}
					if s.Count(get) != 1 || s.retrier.State().Waiting.All() != 0 {
						t.Errorf("%d attempts, %d calls wait", s.Count(get), s.retrier.State().Waiting.All())
					}
					if b := inUse(s.retrier); len(b) != 1 || b[0].Balance < b[0].Capacity {
						t.Errorf("%+v; want the permit back", b)
					}
					e := s.calls[0]
					if e.Mode != policy.ModeOff {
						t.Errorf("%+v; want the event of a call that is off", e)
					}
					if e.Reason != policy.ReasonModeOff || e.Target != s.conn.CanonicalTarget() || len(s.decisions) != 2 {
						t.Errorf("%+v, after %d decisions", e, len(s.decisions))
					}
				})
			})
		}
	}
	for _, kind := range []string{"unary", "stream"} {
		t.Run("for a connection, "+kind, func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.Down()
				s.setModeAfter(t, time.Second, policy.ModeOff)
				start := time.Now()
				err := s.once(t.Context(), kind, create)
				if status.Code(err) != codes.Unavailable || reasonOf(err) != policy.ReasonModeOff || time.Since(start) != time.Second {
					t.Errorf("%v, %s after %v; want UNAVAILABLE, mode_off after 1s", err, reasonOf(err), time.Since(start))
				}
			})
		})
	}
}

func TestMode_Hedges(t *testing.T) {
	for name, row := range map[string]struct {
		after    time.Duration
		attempts int
	}{
		"before the delay": {50 * ms, 1},
		"after a hedge":    {150 * ms, 2}, // which goes on
	} {
		for _, kind := range []string{"unary", "stream"} {
			t.Run(name+", "+kind, func(t *testing.T) {
				play(t, hedged(), func(t *testing.T, s scene) {
					s.On(get, text("slow").Delay(time.Minute))
					s.setModeAfter(t, row.after, policy.ModeOff)
					start := time.Now()
					err := s.once(t.Context(), kind, get)
					if err != nil || time.Since(start) != time.Minute || s.Count(get) != row.attempts {
						t.Errorf("%v after %v, %d attempts; want the answer of the first of %d", err, time.Since(start), s.Count(get), row.attempts)
					}
					last := s.decisions[len(s.decisions)-1]
					if last.Reason != policy.ReasonModeOff || last.Mode != policy.ModeOff {
						t.Errorf("%+v; want no hedge since the mode is off", last)
					}
				})
			})
		}
	}
}

// A stream whose attempt fails after 2 s, before or after a message; OFF comes after 1 s.
func TestMode_Streams(t *testing.T) {
	for name, row := range map[string]struct {
		script testserver.Step
		opts   []grpc.CallOption
		got    string
		why    policy.Reason
	}{
		"not committed": {restarting.Delay(2 * time.Second), nil, "[]", policy.ReasonModeOff},
		"committed": {
			faults.Play(faults.Receive(1), say("1"), faults.Pause(2*time.Second)).Then(restarting), nil, "[1]", policy.ReasonCommitted,
		},
		"to be resumed": {
			faults.Play(faults.Receive(1), say("1"), faults.Pause(2*time.Second)).Then(restarting),
			[]grpc.CallOption{interceptor.Resume(after)},
			"[1]", policy.ReasonModeOff,
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.On(get, row.script)
				s.setModeAfter(t, time.Second, policy.ModeOff)
				got, took, err := s.whole(t, serverStream, row.opts...)
				if got != row.got || reasonOf(err) != row.why || status.Convert(err).Message() != "restarting" || took != 2*time.Second || s.Count(get) != 1 {
					t.Errorf("%s, %v, %s after %v, %d attempts; want %s, %s", got, err, reasonOf(err), took, s.Count(get), row.got, row.why)
				}
			})
		})
	}
	t.Run("keep nothing", func(t *testing.T) {
		play(t, config(plain()), func(t *testing.T, s scene) {
			s.setMode(t, policy.ModeOff)
			s.On(get, text("1").Delay(time.Second))
			stream := s.open(t, t.Context(), bidiStream)
			send(t, stream, "what no other attempt can need")
			if n := s.retrier.Replayed(); n != 0 {
				t.Errorf("%d bytes are kept", n)
			}
			_ = stream.CloseSend()
			_, _ = receive(stream)
		})
	})
	t.Run("in the wait to be resumed", func(t *testing.T) {
		play(t, config(minutely()), func(t *testing.T, s scene) {
			s.On(get, faults.Play(faults.Receive(1), say("1")).Then(restarting))
			s.setModeAfter(t, time.Second, policy.ModeOff)
			got, took, err := s.whole(t, serverStream, interceptor.Resume(after))
			if got != "[1]" || reasonOf(err) != policy.ReasonModeOff || took != time.Second || s.Count(get) != 1 {
				t.Errorf("%s, %s after %v, %d attempts", got, reasonOf(err), took, s.Count(get))
			}
		})
	})
}

// Other settings than retries still apply: timeout, message limits and idempotency key.
func TestMode_OthersStay(t *testing.T) {
	retry := minutely()
	c := spec.Config{Methods: []spec.MethodConfig{{Names: []string{"/"}, Policy: spec.Policy{
		Retry: &retry, Timeout: 10 * time.Second, IdempotencyKey: "x-key", MaxResponseMessageBytes: new(3),
	}}}}
	play(t, c, func(t *testing.T, s scene) {
		s.setMode(t, policy.ModeOff)
		s.On(get, text("too long for three bytes"), text("").Delay(time.Hour))
		if _, err := s.call(t.Context(), get); status.Code(err) != codes.ResourceExhausted {
			t.Errorf("a large reply: %v", err)
		}
		start := time.Now()
		if _, err := s.call(t.Context(), get); status.Code(err) != codes.DeadlineExceeded || time.Since(start) != 10*time.Second {
			t.Errorf("a slow server: %v after %v", err, time.Since(start))
		}
		for _, a := range s.Attempts() {
			if len(a.Metadata["x-key"]) != 1 {
				t.Errorf("an attempt without its key: %v", a.Metadata)
			}
		}
	})
}

func TestMode_Reload(t *testing.T) {
	mode := func(file, entry policy.Mode) spec.Config {
		c := config(minutely())
		c.Mode, c.Methods[0].Mode = string(file), string(entry)
		return c
	}
	for name, row := range map[string]struct {
		set      policy.Mode
		reload   spec.Config
		attempts int // of a call that waits when both come
		reading  policy.Mode
	}{
		"a reload does not undo a switch":        {policy.ModeOff, mode(policy.ModeEnforce, ""), 1, policy.ModeOff},
		"the file's mode":                        {policy.ModeEnforce, mode(policy.ModeOff, ""), 1, policy.ModeOff},
		"an entry's mode":                        {policy.ModeEnforce, mode(policy.ModeEnforce, policy.ModeOff), 1, policy.ModeEnforce},
		"a trial, and calls that were no trial":  {policy.ModeEnforce, mode(policy.ModeObserve, ""), 1, policy.ModeObserve},
		"the strictest, which is that of a file": {policy.ModeObserve, mode(policy.ModeOff, policy.ModeEnforce), 1, policy.ModeOff},
		"another entry's mode does not matter":   {policy.ModeEnforce, func() spec.Config { c := config(minutely()); c.Methods[1].Mode = "OFF"; return c }(), 2, policy.ModeEnforce},
		"nothing":                                {policy.ModeEnforce, mode("", ""), 2, policy.ModeEnforce},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, config(minutely()), func(t *testing.T, s scene) {
				s.On(get, restarting, text("2"))
				time.AfterFunc(time.Second, func() {
					if row.set != policy.ModeEnforce {
						s.setMode(t, row.set)
					}
					s.reload(t, row.reload)
				})
				start := time.Now()
				_, err := s.call(t.Context(), get)
				if took := time.Since(start); s.Count(get) != row.attempts || row.attempts == 1 && (took != time.Second || reasonOf(err) != policy.ReasonModeOff) {
					t.Errorf("%d attempts, %v, %s after %v; want %d", s.Count(get), err, reasonOf(err), took, row.attempts)
				}
				synctest.Wait() // the switch alone may have ended the call, before the reload
				if p := s.retrier.State(); max(p.Policies.Mode(), p.Switches[0].Mode) != row.reading || p.Switches[0].Mode != row.set {
					t.Errorf("%+v; want %v", p, row.reading)
				}
			})
		})
	}
}
