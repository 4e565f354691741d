// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package streams

import (
	"io"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/policy"
)

// started returns a started call of the given kind, with one of the model's policies.
func started(t *testing.T, set Settings, policy int) *Call {
	t.Helper()
	w := &accounts{open: map[int64]bool{}}
	engine, now := new(attempts.Call), attempts.Now{At: ms(1000)}
	step := engine.Start(&attempts.Settings{
		Policy: modelPolicies[policy], Deadline: attempts.Never, Safe: true, Budget: w, Slots: slots{w}, Alone: !set.Races,
	}, now)
	c := new(Call)
	c.Init(engine, answers{}, set)
	c.Start(now, step)
	c.Exit()
	c.Acted()
	return c
}

// answers is a caller whose calls have the result io.EOF.
type answers struct{}

func (answers) Conclude(int) (tell bool, final error) { return false, io.EOF }
func (answers) Amend(err error) error                 { return err }

// want checks the next order of a task.
func want(t *testing.T, c *Call, task *Task, do Do, n int) {
	t.Helper()
	if o := c.Ask(task); o.Do != do || o.Attempt != n {
		t.Fatalf("task of kind %d: order %+v; want %d of attempt %d", task.Kind, o, do, n)
	}
}

// A hedge is still sent a later message while its goroutine waits for headers: another goroutine sends it.
func TestMessageAfterHeaderWaits(t *testing.T) {
	t.Parallel()
	c := started(t, Settings{ServerStreams: true, Races: true}, 4)
	c.Wake()
	for n := range 2 {
		task := &Task{Kind: Goroutine, Attempt: n + 1}
		want(t, c, task, Open, n+1)
		c.Done(task, Result{})
		want(t, c, task, GetHeader, n+1)
	}
	c.Exit()
	c.Acted()
	want(t, c, &Task{Kind: SendMsg, Kept: true}, Send, 1)
	if acts := c.Exit(); !slices.Equal(acts.Go, []int{2}) {
		t.Errorf("goroutines for %v; want one for attempt 2", acts.Go)
	}
	want(t, c, &Task{Kind: Goroutine, Attempt: 2}, Send, 2)
}

// A message that isn't kept does not commit the call to an attempt that has ended, even if an inner interceptor hides the end
// from SendMsg.
func TestHiddenEndDoesNotCommit(t *testing.T) {
	t.Parallel()
	c := started(t, Settings{ClientStreams: true}, 0)
	opener, sender, receiver := &Task{Kind: NewStream}, &Task{Kind: SendMsg}, &Task{Kind: RecvMsg}
	want(t, c, opener, Open, 1)
	c.Done(opener, Result{})
	want(t, c, receiver, Receive, 1)
	want(t, c, sender, Send, 1)
	c.Finish(1, errUnavailable)
	c.Done(sender, Result{})
	want(t, c, sender, Wait, 0)
	e := c.Done(receiver, Result{Err: errUnavailable})
	r := attempts.Result{Err: e.Err}
	r.Status = status.Convert(e.Err)
	if step := c.Ended(e, r, false); !step.Decision.Retry {
		t.Errorf("decision %+v; want a retry", step.Decision)
	}
}

// A message that can't be resent ends the call with the server's last error, and with the headers and trailer of the attempt
// that returned it.
func TestUnsendableShowsTheAttemptThatFailed(t *testing.T) {
	t.Parallel()
	c := started(t, Settings{ClientStreams: true}, 0)
	opener, sender, receiver := &Task{Kind: NewStream}, &Task{Kind: SendMsg, Kept: true}, &Task{Kind: RecvMsg}
	want(t, c, opener, Open, 1)
	c.Done(opener, Result{})
	want(t, c, sender, Send, 1)
	c.Done(sender, Result{})
	want(t, c, receiver, Receive, 1)
	end := func(e End) {
		r := attempts.Result{Err: e.Err}
		r.Status = status.Convert(e.Err)
		c.Ended(e, r, false)
	}
	end(c.Done(receiver, Result{Err: errUnavailable}))
	now := c.now
	now.At += ms(100)
	c.Enter(now, "")
	c.Wake()
	follower := &Task{Kind: Goroutine, Attempt: 2}
	want(t, c, follower, Open, 2)
	c.Done(follower, Result{})
	want(t, c, follower, Send, 2)
	e := c.Done(follower, Result{Err: errNoCopy, Unsendable: true})
	want(t, c, receiver, Wait, 0)
	end(e)
	if end := c.engine.End(); !c.Over() || end.Err != errUnavailable || c.Answer() != 1 {
		t.Errorf("over %v with %v of attempt %d; want attempt 1 and its error", c.Over(), end.Err, c.Answer())
	}
	if o := c.Ask(receiver); o.Do != Return || o.Returns != Final {
		t.Errorf("RecvMsg: %+v; want the end of the call", o)
	}
}

// RecvMsg does not return the end while another task still reports it: the application may ask for the trailer next.
func TestEndIsReportedBeforeRecvMsgReturns(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]Settings{
		"io.EOF":        {ClientStreams: true, ServerStreams: true},
		"the one reply": {ClientStreams: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := started(t, set, 0)
			opener, header, receiver := &Task{Kind: NewStream}, &Task{Kind: Header}, &Task{Kind: RecvMsg}
			want(t, c, opener, Open, 1)
			c.Done(opener, Result{})
			want(t, c, header, GetHeader, 1)
			c.Done(header, Result{Headers: true})
			want(t, c, header, Return, 1)
			c.Finish(1, nil)
			c.Enter(c.now, policy.ReasonClosed)
			ends := slices.Clone(c.Exit().Report)
			want(t, c, receiver, Receive, 1)
			var brought error
			if set.ServerStreams {
				brought = io.EOF
			}
			c.Done(receiver, Result{Err: brought})
			want(t, c, receiver, Wait, 0)
			for _, e := range ends {
				c.Ended(e, attempts.Result{Err: errGivenUp, Local: true}, false)
			}
			want(t, c, receiver, Return, 0)
			if !c.Over() || c.Answer() != 1 {
				t.Errorf("over %v, with attempt %d; want attempt 1", c.Over(), c.Answer())
			}
		})
	}
}

// A call without the engine knows how long its first message took, as the engine would: from the end of the request on, while
// RecvMsg waits.
func TestAtOnce_Latency(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		pause           int
		joins, measured bool
	}{{0, false, true}, {2, false, true}, {10, false, false}, {2, true, true}, {10, true, false}} {
		w, now, c, task := &accounts{}, ms(1000), new(Call), new(Task)
		clock := func() time.Duration { return now }
		c.Init(nil, answers{}, Settings{ServerStreams: true})
		c.Begin(now)
		for _, kind := range []Kind{NewStream, SendMsg, CloseSend, RecvMsg} {
			task = &Task{Kind: kind, Kept: kind == SendMsg}
			c.Lend(task, new(Order), clock)
			if now += ms(50); kind != RecvMsg && !c.GiveBack(task, clock) {
				t.Fatalf("kind %d is not given back", kind)
			} else if kind == CloseSend {
				now += ms(row.pause)
			}
		}
		if row.joins {
			c.Join(new(attempts.Call), &attempts.Settings{Policy: modelPolicies[0], Deadline: attempts.Never, Uploads: true, Budget: w, Method: load{w}})
			c.Enter(attempts.Now{At: now}, "")
			c.Done(task, Result{})
		} else if took, heard, _ := c.AtOnce(task, nil, now); heard {
			w.answered = append(w.answered, took)
		}
		if len(w.answered) > 1 || row.measured != slices.Contains(w.answered, ms(50)) {
			t.Errorf("%+v: latencies %v", row, w.answered)
		}
	}
}
