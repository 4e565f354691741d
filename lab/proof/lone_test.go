// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package proof_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// lone is one stream under any policy, with a script of its server and one of its application. What the application sees must keep
// the laws that hold for every call, whatever gRPC would have done.
type lone struct {
	*script

	spec    spec.Policy
	mode    policy.Mode
	grants  int  // permits of the budget
	swallow bool // an inner interceptor keeps gRPC's options to itself
	seed    uint64
	lag     time.Duration // of what runs between gRPC and the application: an inner interceptor, the classifier, an observer
	before  time.Duration // with which an inner interceptor passes operations on
	bare    bool          // an inner interceptor hides the headers
}

// mostSteps bounds the decisions about one stream: one that neither waits nor ends would spin.
const mostSteps = 10_000

func (l *lone) String() string {
	environment := storm{spec: l.spec, budget: fmt.Sprint(l.grants, " permits"), kinds: []kind{l.kind}, mode: l.mode, swallow: l.swallow, seed: l.seed}
	return fmt.Sprintf("%v, lag %v and %v, without headers %v\n%v", environment.String(), l.before, l.lag, l.bare, l.script)
}

// drawLone draws the policy last: so the bytes of a script are also those of the tests that compare it with gRPC.
func drawLone(d *draws) *lone {
	l := &lone{script: drawScript(d)}
	if l.kind == unary {
		l.kind = serverStream
		l.drawMoves(d)
	}
	if l.deadline == 0 { // a server may hang
		l.deadline = 5*time.Second + 311*time.Microsecond + 500
	}
	l.spec = drawSpec(d)
	l.mode = one(d, policy.ModeEnforce, policy.ModeEnforce, policy.ModeEnforce, policy.ModeEnforce, policy.ModeObserve, policy.ModeOff)
	l.grants = one(d, 10, 10, 1, 0)
	l.swallow = d.odds(10)
	l.seed = uint64(d.below(256))
	l.lag = one(d, 0, 0, 3*ms+700*time.Microsecond, 25*ms+700*time.Microsecond)
	for i := range l.moves {
		l.moves[i].sends = l.moves[i].sends || l.moves[i].what == "header" && d.odds(40) // beside RecvMsg
	}
	l.drawDisorder(d)
	l.before = one(d, 0, 0, 2*ms+300*time.Microsecond, 30*ms+300*time.Microsecond)
	l.bare = d.odds(8)
	return l
}

// purse is a budget of so many permits.
type purse struct {
	budget.Budget

	left, given atomic.Int64
}

func (p *purse) Allow(time.Time, budget.Cause) (answer budget.Answer, ended func(time.Time, budget.End)) {
	if p.left.Add(-1) < 0 {
		return budget.No, nil
	}
	p.given.Add(1)
	return budget.Yes, func(time.Time, budget.End) {}
}

// contexts are those of a call's attempts.
type contexts struct {
	mu   sync.Mutex
	list []context.Context
}

func (c *contexts) add(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, ctx)
}

// running returns how many have not ended.
func (c *contexts) running() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ctx := range c.list {
		if ctx.Err() == nil {
			n++
		}
	}
	return n
}

// alone is an attempt that notices two goroutines in one direction.
type alone struct {
	grpc.ClientStream
	*findings

	sending, receiving atomic.Int32
	before, lag        time.Duration // with which its calls begin and return
	bare               bool          // it hides the headers
}

func (a *alone) enter(inside *atomic.Int32, what string) (leave func()) {
	if inside.Add(1) > 1 {
		a.add("two goroutines are in %s of one attempt", what)
	}
	runtime.Gosched() // so that they would meet
	time.Sleep(a.before)
	return func() {
		time.Sleep(a.lag)
		inside.Add(-1)
	}
}

func (a *alone) SendMsg(m any) error {
	defer a.enter(&a.sending, "SendMsg")()
	return a.ClientStream.SendMsg(m)
}

func (a *alone) CloseSend() error {
	defer a.enter(&a.sending, "SendMsg and CloseSend")()
	return a.ClientStream.CloseSend()
}

func (a *alone) RecvMsg(m any) error {
	defer a.enter(&a.receiving, "RecvMsg")()
	return a.ClientStream.RecvMsg(m)
}

func (a *alone) Header() (metadata.MD, error) {
	defer time.Sleep(a.lag)
	time.Sleep(a.before)
	headers, err := a.ClientStream.Header()
	if a.bare {
		headers = nil
	}
	return headers, err
}

// play plays the stream, and returns which laws it breaks.
func (l *lone) play(t *testing.T) string {
	t.Helper()
	var list []string
	synctest.Test(t, func(t *testing.T) {
		f := new(findings)
		panics := &panics{chance: newChance(l.seed)}
		budgets := &purse{Budget: budget.Unlimited}
		budgets.left.Store(int64(l.grants))
		books := &ledger{Budget: budgets, findings: f, panics: panics}
		breaker := &circuit{findings: f, panics: panics}
		attempts := new(contexts)

		server := testserver.Start(t)
		var steps []testserver.Step
		for i := range 8 {
			steps = append(steps, l.servedIn(i).step(i+1, false))
		}
		server.On("*", steps...)
		var decisions atomic.Int64
		counted := func() float64 { // each decision takes one
			if decisions.Add(1) > mostSteps {
				panic("the stream spins")
			}
			return panics.float()
		}
		set := testkit.Must(compiled.NewSet(spec.Config{Methods: []spec.MethodConfig{{Names: []string{method}, Policy: l.spec}}}))(t)
		retrier := testkit.Must(interceptor.New(set, interceptor.WithObserver(listener(panics)), interceptor.WithRandom(counted),
			interceptor.WithBudget("", func(string) budget.Budget { return books }),
			interceptor.WithBreaker(func(string, string) interceptor.Gate { return breaker }),
			interceptor.WithObserver(interceptor.Observer{Attempt: func(context.Context, interceptor.Event) { time.Sleep(l.lag) }}),
			interceptor.WithClassifier(func(context.Context, string, any, error) interceptor.Verdict {
				time.Sleep(l.lag)
				return interceptor.VerdictByCode
			})))(t)
		testkit.NoError(t, retrier.SetMode(interceptor.ModeSwitch{Mode: l.mode}))
		inner := func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			attempts.add(ctx)
			if l.swallow {
				opts = withoutListeners(opts)
			}
			stream, err := open(ctx, desc, cc, method, opts...)
			if err != nil {
				return nil, err
			}
			if l.wrapped {
				stream = wrapped{stream}
			}
			return &alone{ClientStream: stream, findings: f, before: l.before, lag: l.lag, bare: l.bare}, nil
		}
		conn := server.Dial(t, append(retrier.DialOptions(), soon, grpc.WithChainStreamInterceptor(inner))...)

		p := testkit.Must(compiled.NewPolicy(l.spec))(t)
		told := &story{findings: f, name: "the stream", most: p.MaxAttempts(), parallel: p.Watched(), attempts: map[int]bool{}}
		told.single = told.most < 2 || l.mode == policy.ModeOff
		seen := l.live(context.WithValue(context.Background(), storyKey{}, told), conn, func() {
			if n := attempts.running(); n > 0 && !told.single {
				f.add("%d attempts run after the end of the call", n)
			}
		})
		_ = conn.Close()
		time.Sleep(5 * time.Second) // an end that gRPC hasn't reported is found
		synctest.Wait()
		l.check(f, told, seen, server.Attempts())
		if extra := len(attempts.list) - 1; int64(extra) > budgets.given.Load() {
			f.add("%d extra attempts, and %d permits", extra, budgets.given.Load())
		}
		if books.running.Load() != 0 || breaker.running.Load() != 0 || retrier.State().Waiting.All() != 0 {
			f.add("%d permits, %d attempts of the breaker and %d slots are held", books.running.Load(), breaker.running.Load(), retrier.State().Waiting.All())
		}
		for _, state := range retrier.State().Admission {
			if state.Running != 0 {
				f.add("admission counts %d attempts", state.Running)
			}
		}
		list = f.list
	})
	return strings.Join(list, "\n")
}

// servedIn returns what the server does in an attempt, from 0.
func (l *lone) servedIn(attempt int) served { return l.served[min(attempt, len(l.served)-1)] }

// check checks what the application and the server have seen of the stream.
func (l *lone) check(f *findings, told *story, seen *sight, at []testserver.Attempt) {
	defer func() {
		if len(f.list) > 0 {
			f.add("sender %v\nreceiver %v\nthird %v\nheader %s, trailer %s, OnFinish %v", seen.sender, seen.receiver, seen.third, seen.header, seen.trailer, seen.finished)
		}
	}()
	all := slices.Concat(seen.sender, seen.receiver, seen.third)
	for _, r := range all {
		if r.got == "hangs" || r.call == "panic" {
			f.add("%s %s", r.call, r.got)
		}
	}
	if len(at) > told.most || len(told.attempts) > told.most || len(at) > len(told.attempts) {
		f.add("%d attempts at the server, %d told, of at most %d", len(at), len(told.attempts), told.most)
	}
	l.checkTimes(f, told, seen, all)
	by := l.checkReceived(f, seen, at)
	l.checkSent(f, all, at)
	l.checkEnd(f, told, seen, by)
}

// checkTimes checks that no call of the application outlives the call's context.
func (l *lone) checkTimes(f *findings, told *story, seen *sight, all []result) {
	over := longest
	for _, d := range []time.Duration{l.deadline, l.spec.Timeout, l.closes, seen.cancelled} {
		if d > 0 {
			over = min(over, d)
		}
	}
	if l.cancel > 0 && !l.byHand {
		over = min(over, l.cancel)
	}
	allowed := slack + 12*(l.before+l.lag) // one after the other
	if l.swallow {
		allowed += 200 * ms // until the end of the context reports the attempts
	}
	if told.single {
		allowed += l.late // gRPC's own stream ends with its context
	}
	for _, r := range all {
		if late := r.at - max(r.began, over); late > allowed {
			f.add("%s returns %v after the call's end", r.call, late)
		}
	}
}

// checkReceived checks that the messages, headers and trailer that the application got are of one attempt: a prefix of what this has sent,
// and all of it if the call has succeeded. It returns the attempt, from 1, or 0.
func (l *lone) checkReceived(f *findings, seen *sight, at []testserver.Attempt) (by int) {
	var got []string
	whole := false
	for _, r := range seen.receiver {
		if r.call == "RecvMsg" && !strings.HasSuffix(r.got, ")") && r.got != "EOF" {
			got = append(got, r.got)
		}
		whole = whole || r.call == "RecvMsg" && r.got == "EOF"
	}
	var candidates []int
	for i, a := range at {
		sends := l.sends(i, a)
		if len(got) <= len(sends) && slices.Equal(got, sends[:len(got)]) && (!whole || len(got) == len(sends) || l.cut(i)) {
			candidates = append(candidates, i+1)
		}
	}
	if len(got) > 0 && len(candidates) == 0 {
		f.add("%q is not what one attempt has sent", got)
	}
	for _, part := range []string{seen.header, seen.trailer} {
		for n := range 8 {
			headers, trailer := fmt.Sprintf(`headers-by=["%d"]`, n+1), fmt.Sprintf(` by=["%d"]`, n+1)
			if !strings.Contains(part, headers) && !strings.Contains(" "+strings.TrimPrefix(part, "["), trailer) {
				continue
			}
			if by != 0 && by != n+1 || len(got) > 0 && !slices.Contains(candidates, n+1) {
				f.add("messages %q of %v, header %s, trailer %s", got, candidates, seen.header, seen.trailer)
			}
			by = n + 1
		}
	}
	return by
}

// cut reports whether the server ends an attempt otherwise than by its own status.
func (l *lone) cut(attempt int) bool { return l.servedIn(attempt).end.what != "ok" }

// sends returns the texts that the server sends in an attempt.
func (l *lone) sends(attempt int, a testserver.Attempt) (list []string) {
	received, replies := 0, 0
	for _, m := range l.servedIn(attempt).does {
		switch m.what {
		case "receive":
			received++
		case "receive all":
			received = len(a.Requests)
		case "echo":
			if received < len(a.Requests) {
				list = append(list, decoded(a.Requests[received]))
			}
			received++
		case "send":
			list = append(list, textOf(fmt.Sprintf("s%d.%d", attempt+1, replies), m.large))
			replies++
		}
	}
	return list[:min(len(list), a.Sent)]
}

// checkSent checks that each attempt was sent a prefix of the application's messages, and all of them before the close.
func (l *lone) checkSent(f *findings, all []result, at []testserver.Attempt) {
	accepted := 0
	for _, r := range all {
		if strings.HasPrefix(r.call, "SendMsg") && r.got == "ok" {
			accepted++
		}
	}
	for i, a := range at {
		for n, data := range a.Requests {
			if text := decoded(data); strings.TrimRight(text, "x") != fmt.Sprint("c", n) {
				f.add("attempt %d received %s as message %d", i+1, text, n+1)
			}
		}
		if a.HalfClosed && len(a.Requests) < accepted && a.Received == len(a.Requests) {
			f.add("attempt %d is closed after %d of %d messages", i+1, len(a.Requests), accepted)
		}
	}
}

// checkEnd checks that the call has one end, told once, and the same to all.
func (l *lone) checkEnd(f *findings, told *story, seen *sight, by int) {
	opened := !strings.Contains(seen.receiver[0].got, "(")
	if told.single && (!opened || l.swallow) {
		return // gRPC's own stream, which may call OnFinish twice if it can't be opened
	}
	if told.ended != 1 || len(seen.finished) != 1 {
		f.add("observers were told of %d ends, OnFinish of %v", told.ended, seen.finished)
		return
	}
	end, ended := "", time.Duration(0)
	for _, r := range seen.receiver {
		if r.call == "RecvMsg" || r.call == "NewStream" {
			end, ended = r.got, r.at
		}
	}
	together := slices.ContainsFunc(seen.third, func(r result) bool { return r.call == "header" && r.at == ended }) // a row of NOT-HANDLED.md
	failed := strings.HasSuffix(end, ")")
	finished := seen.finished[0]
	code := func(text string) string { text, _, _ = strings.Cut(text, "("); return text }
	unsent := slices.ContainsFunc(slices.Concat(seen.sender, seen.receiver), func(r result) bool { // the error is SendMsg's; what had arrived is still received
		return strings.HasPrefix(r.call, "SendMsg") && r.got == finished
	})
	cut := unsent || code(finished) == "Canceled" || code(finished) == "DeadlineExceeded" // what had arrived may still be received
	switch {
	case !seen.whole || told.single:
	case failed && code(finished) != code(end) && !cut, !failed && finished != "ok" && !cut:
		f.add("the application received %s, and OnFinish %s", end, finished)
	}
	if seen.whole && end == "EOF" && finished == "ok" && by == 0 && !l.swallow && !together {
		f.add("success without a trailer: %s", seen.trailer)
	}
}

func playLone(t *testing.T, d *draws) string {
	t.Helper()
	l := drawLone(d)
	return described(l, func() string { return l.play(t) })
}

func TestLone(t *testing.T) { search(t, 1000, 190, playLone) }

// FuzzStream is TestLone with the fuzzer's bytes.
func FuzzStream(f *testing.F) {
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 300 { // more are not read
			data = data[:300]
		}
		if found := watched(t, data, playLone); found != "" {
			t.Error(found)
		}
	})
}
