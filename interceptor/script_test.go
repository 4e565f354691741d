// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/faults"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/testserver"
)

// tell makes a call of one message, and tells how it has ended: the messages that came, the code, the reason, the waits
// between attempts, and its duration. No desc is a unary call.
func (s scene) tell(t *testing.T, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) string {
	t.Helper()
	var got []string
	var err error
	if desc == nil {
		var reply string
		if reply, err = s.call(t.Context(), method, opts...); err == nil {
			got = []string{reply}
		}
	} else {
		stream := testkit.Must(s.conn.NewStream(t.Context(), desc, method, opts...))(t)
		send(t, stream, "x")
		_ = stream.CloseSend()
		got, err = receive(stream)
		err = streamEnd(err)
	}
	synctest.Wait() // observers are told by whoever has ended the call
	if len(s.calls) != 1 || s.calls[0].Code != status.Code(err) || s.calls[0].Err != err || reasonOf(err) != s.calls[0].Reason && err != nil {
		t.Errorf("%v (%s); observers are told of %+v", err, reasonOf(err), s.calls)
	}
	return fmt.Sprintf("%q %s %s %s %v", got, status.Code(err), s.calls[0].Reason, s.waits(), s.calls[0].Elapsed)
}

// TestScript has what becomes of a call by the answers of its server: for unary calls and for each kind of stream.
func TestScript(t *testing.T) {
	t.Parallel()
	retries := func(change func(*spec.Retry)) spec.Config {
		retry := plain()
		change(&retry)
		return config(retry)
	}
	unlisted := retries(func(r *spec.Retry) { r.RetryableStatusCodes = []codes.Code{codes.Aborted} })
	cancelled := retries(func(r *spec.Retry) { r.RetryableStatusCodes = []codes.Code{codes.Canceled} })
	internal := retries(func(r *spec.Retry) { r.RetryableStatusCodes = []codes.Code{codes.Internal} })
	paid := retries(func(r *spec.Retry) { r.Budget = "" })
	short, never := config(plain()), config(plain())
	short.Methods[0].Timeout = 90 * ms
	never.Methods[0].Idempotency = "NONE"
	two := plain()
	two.MaxAttempts = 2
	assumed := mustPolicy(t, spec.Policy{Retry: &two, Idempotency: "ASSUME"})
	unsafe := mustPolicy(t, spec.Policy{Retry: &two})

	md := metadata.Pairs("from", "1")
	later, now := metadata.Pairs("retry-after", "2"), metadata.Pairs("retry-after", "0")
	past := metadata.Pairs("retry-after", "Fri, 31 Dec 1999 23:59:59 GMT")
	inHeader := down().Header(metadata.Pairs("retry-after", "5"))
	says := func(code codes.Code, message string) testserver.Step { return testserver.Fail(code, message) }
	list := func(texts ...string) testserver.Step { return faults.Play(faults.Receive(1), say(texts...)) }
	cut := list("1").Then(down())
	var thousand []string
	for n := range 1000 {
		thousand = append(thousand, fmt.Sprint(n))
	}
	judged := []interceptor.Option{interceptor.WithClassifier(new(judge).classify)}
	type (
		script  = []testserver.Step
		options = []grpc.CallOption
	)
	const (
		once      = `["a"] OK succeeded [100ms] 100ms`
		stop      = `[] Unavailable pushback_stop [] 0s`
		exhausted = `attempts_exhausted [100ms 200ms 400ms] 700ms`
	)
	for name, row := range map[string]struct {
		config  spec.Config // without methods: config(plain())
		options []interceptor.Option
		method  string // "": GetOrder
		opts    options
		only    string // of the kinds; "": all
		script  script
		want    string
	}{
		"two failures":         {script: script{down(), down(), text("a")}, want: `["a"] OK succeeded [100ms 200ms] 300ms`},
		"nothing but failures": {script: script{down()}, want: `[] Unavailable ` + exhausted},
		"no policy": {
			config: spec.Config{Methods: []spec.MethodConfig{}}, script: script{down()},
			want: `[] Unavailable non_retryable [] 0s`,
		},
		"a code that is not listed":     {config: unlisted, script: script{down()}, want: `[] Unavailable non_retryable [] 0s`},
		"the server's own CANCELLED":    {config: cancelled, script: script{says(codes.Canceled, ""), text("a")}, want: once},
		"a picker's words, by a server": {script: script{says(codes.Unavailable, "RPC is dropped"), text("a")}, want: once},
		"a part of a reply before the failure": {
			only: "unary", script: script{testserver.OK(wrapperspb.String("half")).Then(down()), text("")},
			want: `[""] OK succeeded [100ms] 100ms`,
		},
		"two replies where there is one": {config: internal, only: "client stream", script: script{list("a", "b")}, want: `[] Internal non_retryable [] 0s`},
		"no permit": {
			config: paid, options: []interceptor.Option{interceptor.WithBudget("", forAll(&purse{}))}, script: script{down()},
			want: `[] Unavailable budget_exhausted [] 0s`,
		},
		"a deadline that no backoff fits in": {config: short, script: script{down()}, want: `[] Unavailable deadline_too_close [] 0s`},
		"headers that nobody asked for":      {script: script{down().Header(md), text("a")}, want: once},
		"messages were delivered": {
			only: "server stream, bidi", script: script{list("a", "b", "c").Then(down())},
			want: `["a" "b" "c"] Unavailable committed [] 0s`,
		},
		"messages, and one that is cut": {
			only: "server stream, bidi", script: script{faults.Play(faults.Receive(1), say("a", "b"), faults.Cut())},
			want: `["a" "b"] Unavailable committed [] 0s`,
		},
		"many messages after three failures": {
			only: "server stream, bidi", script: script{down().Times(3), list(thousand...)},
			want: fmt.Sprintf("%q OK succeeded [100ms 200ms 400ms] 700ms", thousand),
		},
		"not declared safe":                 {method: create, script: script{down()}, want: `[] Unavailable not_idempotent [] 0s`},
		"declared safe by the call":         {method: create, opts: options{interceptor.Idempotent()}, script: script{down(), text("a")}, want: once},
		"declared unsafe by the policy":     {config: never, script: script{down()}, want: `[] Unavailable not_idempotent [] 0s`},
		"the call's word over the policy's": {config: never, opts: options{interceptor.Idempotent()}, script: script{down()}, want: `[] Unavailable ` + exhausted},
		"a policy of the call": {
			opts: options{interceptor.Policy(assumed)}, script: script{down()},
			want: `[] Unavailable attempts_exhausted [100ms] 100ms`,
		},
		"one that does not declare it safe": {opts: options{interceptor.Policy(unsafe)}, script: script{down()}, want: `[] Unavailable not_idempotent [] 0s`},
		"one that is none":                  {opts: options{interceptor.Policy(nil)}, script: script{down()}, want: `[] Unavailable non_retryable [] 0s`},
		"an attempt that is too slow":       {config: config(hasty()), only: "unary, server stream", script: script{testserver.Hang(), text("a")}, want: `["a"] OK succeeded [1.1s] 1.1s`},
		"so too, and a stream that takes long": {
			config: config(hasty()), only: "server stream", script: script{testserver.Hang(), faults.Play(faults.Receive(1), say("a"), faults.Pause(time.Minute), say("b"))},
			want: `["a" "b"] OK succeeded [1.1s] 1m1.1s`,
		},
		"slow, and fails in the backoff": {
			config: config(hasty()), only: "unary, server stream", script: script{down().Delay(1050 * ms), text("a")},
			want: `["a"] OK succeeded [1.15s] 1.15s`,
		}, // 1.05 s and a backoff
		"slow, and fails for good in it": {
			config: config(hasty()), script: script{says(codes.NotFound, "").Delay(1050 * ms)},
			want: `[] NotFound non_retryable [] 1.05s`,
		},
		"no hedge after the first message": {
			config: hedged(), only: "server stream", script: script{faults.Play(faults.Receive(1), faults.Pause(50*ms), say("a"), faults.Pause(time.Minute), say("b"))},
			want: `["a" "b"] OK succeeded [] 1m0.05s`,
		},
		"a classifier finds a failure better":   {options: judged, script: script{says(codes.Unknown, "deadlock"), text("a")}, want: once},
		"so too, until the last":                {options: judged, script: script{says(codes.Unknown, "deadlock")}, want: `[] Unknown ` + exhausted},
		"it leaves a failure to the policy":     {options: judged, script: script{says(codes.Unknown, "other")}, want: `[] Unknown non_retryable [] 0s`},
		"it calls a failure OK":                 {options: judged, script: script{says(codes.Unknown, "nonsense")}, want: `[] Unknown non_retryable [] 0s`},
		"it finds a failure final":              {options: judged, script: script{says(codes.Unavailable, "corrupt")}, want: `[] Unavailable non_retryable [] 0s`},
		"it finds a failure worse":              {options: judged, script: script{says(codes.Unavailable, "gone")}, want: `[] Unavailable non_retryable [] 0s`},
		"a reply that says not yet, to the end": {only: "unary", options: judged, script: script{text("not yet")}, want: `["not yet"] OK ` + exhausted},
		"so too, hedged": {
			config: hedged(), only: "unary", options: judged, script: script{text("not yet")},
			want: `["not yet"] OK attempts_exhausted [0s 0s] 0s`,
		},
		"not yet, and not declared safe": {
			only: "unary", method: create, options: judged, script: script{text("not yet")},
			want: `["not yet"] OK not_idempotent [] 0s`,
		},
		"the function of Resume declines": {
			only: "server stream", opts: options{interceptor.Resume(after)}, script: script{list("not a number").Then(down())},
			want: `["not a number"] Unavailable committed [] 0s`,
		},
		"a bidirectional stream is not resumed": {only: "bidi", opts: options{interceptor.Resume(after)}, script: script{cut}, want: `["1"] Unavailable committed [] 0s`},
		// A resumption that delivers a message is progress: the attempts are counted from it.
		"three attempts after the last message": {
			only: "server stream", opts: options{interceptor.Resume(after)}, script: script{cut, cut, down(), down(), cut, down()},
			want: `["1" "1" "1"] Unavailable attempts_exhausted [100ms 200ms 400ms 800ms 1.6s 3.2s 6.4s] 12.7s`,
		},

		"pushback: a delay":     {script: script{down().Pushback("700"), text("a")}, want: `["a"] OK succeeded [700ms] 700ms`},
		"pushback: no delay":    {script: script{down().Pushback("0"), text("a")}, want: `["a"] OK succeeded [0s] 0s`},
		"pushback: retry info":  {script: script{down().RetryInfo(3 * time.Second), text("a")}, want: `["a"] OK succeeded [3s] 3s`},
		"pushback: retry-after": {script: script{down().Trailer(later), text("a")}, want: `["a"] OK succeeded [2s] 2s`},
		// RetryInfo and retry-after say "at least": the longer of delay and backoff.
		"retry info of 0":          {script: script{down().RetryInfo(0), down().RetryInfo(0), down().RetryInfo(0), text("a")}, want: `["a"] OK succeeded [100ms 200ms 400ms] 700ms`},
		"retry-after: 0":           {script: script{down().Trailer(now), down().Trailer(now), text("a")}, want: `["a"] OK succeeded [100ms 200ms] 300ms`},
		"retry-after a past date":  {script: script{down().Trailer(past), down().Trailer(past), text("a")}, want: `["a"] OK succeeded [100ms 200ms] 300ms`},
		"less than the backoff":    {script: script{down().RetryInfo(50 * ms), down().RetryInfo(50 * ms), text("a")}, want: `["a"] OK succeeded [100ms 200ms] 300ms`},
		"more than the backoff":    {script: script{down().RetryInfo(0), down().RetryInfo(3 * time.Second), down(), text("a")}, want: `["a"] OK succeeded [100ms 3s 100ms] 3.2s`},
		"pushback before the rest": {script: script{down().Pushback("0").RetryInfo(3 * time.Second).Trailer(later), text("a")}, want: `["a"] OK succeeded [0s] 0s`},
		"pushback: the first of three": {
			script: script{down().Pushback("700").RetryInfo(3 * time.Second).Trailer(later), text("a")},
			want:   `["a"] OK succeeded [700ms] 700ms`,
		},
		"pushback: the first of two":        {script: script{down().RetryInfo(3 * time.Second).Trailer(later), text("a")}, want: `["a"] OK succeeded [3s] 3s`},
		"pushback: after headers":           {script: script{down().Header(md).Pushback("700"), text("a")}, want: `["a"] OK succeeded [700ms] 700ms`},
		"pushback: the backoff begins anew": {script: script{down(), down().Pushback("700"), down(), text("a")}, want: `["a"] OK succeeded [100ms 700ms 100ms] 900ms`},
		"pushback: stop":                    {script: script{down().Pushback("-1")}, want: stop},
		"pushback: two values":              {script: script{down().Pushback("5", "5")}, want: stop},
		"pushback: more than is waited for": {script: script{down().Pushback("300001")}, want: stop},
		"pushback: a code that is final":    {script: script{testserver.Fail(codes.NotFound).Pushback("5")}, want: `[] NotFound non_retryable [] 0s`},
		// What the headers say never counts, whatever the attempts before, and whether the call asks for headers or not.
		"retry-after in headers":            {only: "unary", script: script{inHeader, inHeader, inHeader.Trailer(later), text("a")}, want: `["a"] OK succeeded [100ms 200ms 2s] 2.3s`},
		"retry-after, then in headers":      {only: "unary", script: script{down().Trailer(later), inHeader, inHeader, text("a")}, want: `["a"] OK succeeded [2s 100ms 200ms] 2.3s`},
		"no answer, retry-after in headers": {only: "unary", script: script{testserver.Drop(), inHeader, text("a")}, want: `["a"] OK succeeded [100ms 200ms] 300ms`},
		"retry-after in requested headers":  {only: "unary", opts: options{grpc.Header(new(metadata.MD))}, script: script{inHeader, text("a")}, want: `["a"] OK succeeded [100ms] 100ms`},
	} {
		for kind, desc := range callKinds {
			if row.only != "" && !slices.Contains(strings.Split(row.only, ", "), kind) {
				continue
			}
			t.Run(name+"/"+kind, func(t *testing.T) {
				c, method := row.config, get
				if c.Methods == nil {
					c = config(plain())
				}
				if row.method != "" {
					method = row.method
				}
				play(t, c, func(t *testing.T, s scene) {
					s.On(method, row.script...)
					if got := s.tell(t, desc, method, row.opts...); got != row.want {
						t.Errorf("%s\nwant %s", got, row.want)
					}
				}, row.options...)
			})
		}
	}
}
