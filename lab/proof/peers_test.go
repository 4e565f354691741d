// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package proof_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/retry"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/faults"
	"github.com/stagger-go/stagger/internal/policyfile/codename"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// scenario is a statement about calls in a peer's documentation or test suite, and how stagger differs by design: why has the reason.
type scenario struct {
	name   string
	entry  string // of the policy file: the keys after the name
	rest   string // keys of the policy file next to methodConfig
	whole  bool   // the entry names only the service
	serves []testserver.Step

	kind     kind          // "" is unary
	sends    time.Duration // of client streams: the time between two messages
	messages int           // of client streams; 0 is 1
	deadline time.Duration
	away     time.Duration // how long the server is away from the start
	calls    int           // in sequence; 0 is 1
	options  []grpc.CallOption
	theirs   []retry.CallOption // the same settings for go-grpc-middleware, which is also played; nil if that isn't the peer
	shows    []string           // headers to list in the outcome

	peer string // the peer's behaviour, in outcome's notation
	ours string // stagger's behaviour
	why  string
}

// play makes the calls of a scenario, in virtual time. Random numbers are 0.5: backoffs with gRPC's jitter are exact, and
// halved with full jitter. With peer, the peer's own interceptors make the attempts.
func (s scenario) play(t *testing.T, peer bool) (outcome string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := testserver.Start(t)
		name := `{"service": "proof.Service", "method": "Call"}`
		if s.whole {
			name = `{"service": "proof.Service"}`
		}
		set := testkit.Must(policy.Parse("policy.json", fmt.Appendf(nil, `{%s"methodConfig": [{"name": [%s], %s}]}`, s.rest, name, s.entry)))(t)
		retrier := testkit.Must(interceptor.New(set, interceptor.WithRandom(func() float64 { return 0.5 }),
			interceptor.WithObserver(interceptor.Observer{Diagnostic: func(policy.Diagnostic) {}})))(t)
		defer retrier.Close()
		between := retrier.DialOptions()
		if peer {
			between = []grpc.DialOption{
				grpc.WithChainUnaryInterceptor(retry.UnaryClientInterceptor(s.theirs...)),
				grpc.WithChainStreamInterceptor(retry.StreamClientInterceptor(s.theirs...)),
			}
		}
		conn := server.Dial(t, between...)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		server.On("*", testserver.OK())
		for known := 0; s.away == 0 && known < 8; known++ { // no hedge is sent before it is known how fast the method is
			testkit.NoError(t, conn.Invoke(ctx, method, new(wrapperspb.StringValue), new(wrapperspb.StringValue)))
		}
		server.Reset()
		server.On("*", s.serves...)
		start := time.Now()
		if s.deadline > 0 {
			ctx, cancel = context.WithTimeout(ctx, s.deadline)
			defer cancel()
		}
		if s.away > 0 {
			server.Down()
			defer time.AfterFunc(s.away, server.Up).Stop()
		}
		for range max(1, s.calls) {
			got, err := s.call(ctx, conn)
			outcome = fmt.Sprintf("%s after %v", codename.Of(status.Code(err)), time.Since(start))
			if s.kind == serverStream || s.kind == bidiStream {
				outcome = fmt.Sprintf("%s, %d messages", outcome, got)
			}
		}
		synctest.Wait()
		attempts := server.Attempts()
		if s.calls > 0 {
			outcome = fmt.Sprintf("%d requests for %d calls", len(attempts), s.calls)
			return
		}
		var times []string
		for _, a := range attempts {
			times = append(times, a.Time.Sub(start).String())
		}
		outcome += ", requests at " + strings.Join(times, ", ")
		if len(times) == 0 {
			outcome = strings.Replace(outcome, ", requests at ", ", no request", 1)
		}
		for _, key := range s.shows {
			for i, a := range attempts {
				if said := a.Metadata[key]; said != nil {
					outcome += fmt.Sprintf(", request %d has %s: %s", i+1, key, said[0])
				}
			}
		}
	})
	return outcome
}

// call makes one call, and returns how many messages it received.
func (s scenario) call(ctx context.Context, conn *grpc.ClientConn) (got int, err error) {
	if s.kind == "" {
		return 1, conn.Invoke(ctx, method, wrapperspb.String("request"), new(wrapperspb.StringValue), s.options...)
	}
	stream, err := conn.NewStream(ctx, s.kind.desc(), method, s.options...)
	if err != nil {
		return 0, err
	}
	for i := range max(1, s.messages) {
		if i > 0 {
			time.Sleep(s.sends)
		}
		if err := stream.SendMsg(wrapperspb.String("String of length 20.")); err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
	}
	if err := stream.CloseSend(); err != nil {
		return 0, err
	}
	for {
		err := stream.RecvMsg(new(wrapperspb.StringValue))
		if errors.Is(err, io.EOF) {
			return got, nil
		}
		if err != nil {
			return got, err
		}
		got++
	}
}

// retries returns an entry with a retryPolicy of n attempts, with gRPC's jitter and without a budget.
func retries(n int, initial, most time.Duration, multiplier float64, list string, more ...string) string {
	return fmt.Sprintf(`"retryPolicy": {"maxAttempts": %d, "initialBackoff": "%.9fs", "maxBackoff": "%.9fs", "backoffMultiplier": %v, "retryableStatusCodes": [%s]%s}`,
		n, initial.Seconds(), most.Seconds(), multiplier, list, ", "+strings.Join(append(more, `"jitter": "PROPORTIONAL", "budget": "NONE"`), ", "))
}

// hedges returns an entry with a hedgingPolicy of n attempts, without a budget.
func hedges(n int, delay time.Duration, list string) string {
	return fmt.Sprintf(`"hedgingPolicy": {"maxAttempts": %d, "hedgingDelay": "%.9fs", "nonFatalStatusCodes": [%s], "budget": "NONE"}`, n, delay.Seconds(), list)
}

var write = flag.Bool("write", false, "write the differences from peers into their pages")

// The pages list exactly the differences by design; -write writes them.
func TestPeers(t *testing.T) {
	t.Parallel()
	const page = "differences.md"
	for _, p := range []struct {
		name, page string
		scenarios  []scenario
	}{
		{"gRPC (gRFC A6)", page, fromA6},
		{"grpc-java", "grpc-java.md", fromJava},
		{"go-grpc-middleware", page, fromMiddleware},
		{"failsafe-go", page, fromFailsafe},
	} {
		var table strings.Builder
		fmt.Fprintf(&table, "| what happens | %s | stagger | why |\n| --- | --- | --- | --- |\n", p.name)
		for _, s := range p.scenarios {
			t.Run(p.name+"/"+s.name, func(t *testing.T) {
				t.Parallel()
				if got := s.play(t, false); got != s.ours {
					t.Errorf("stagger:\n got %s\nwant %s", got, s.ours)
				}
				if s.theirs == nil {
					return
				}
				if got := s.play(t, true); got != s.peer {
					t.Errorf("%s:\n got %s\nwant %s", p.name, got, s.peer)
				}
			})
			fmt.Fprintf(&table, "| %s | %s | %s | %s |\n", s.name, s.peer, s.ours, s.why)
		}
		wantTable(t, p.page, "differences from "+p.name, table.String())
	}
}

// wantTable compares the text between the marks of a page.
func wantTable(t *testing.T, path, name, want string) {
	t.Helper()
	page := testkit.Must(os.ReadFile(path))(t)
	mark := "<!-- " + name + ": make generate -->\n"
	before, rest, begins := strings.Cut(string(page), mark)
	got, after, ends := strings.Cut(rest, "<!-- end -->\n")
	switch {
	case !begins || !ends:
		t.Errorf("%s has no marks for the %s", path, name)
	case got == want:
	case !*write:
		t.Errorf("the %s in %s are not those of the test: run make generate", name, path)
	default:
		if err := os.WriteFile(path, []byte(before+mark+want+"<!-- end -->\n"+after), 0o644); err != nil {
			t.Error(err)
		}
	}
}

func fails(code codes.Code) testserver.Step { return testserver.Fail(code) }

const unavailable = `"UNAVAILABLE"`

// text is a message.
var text = wrapperspb.String("reply")

// standard is A6's example of a retryPolicy.
var standard = retries(4, 100*ms, time.Second, 2, unavailable)

// hedged is A6's example of a hedgingPolicy.
var hedged = hedges(4, 500*ms, `"UNAVAILABLE", "INTERNAL", "ABORTED"`)

var down = fails(codes.Unavailable)

// The statements of gRFC A6 on retries and hedges, section by section.
var fromA6 = []scenario{
	{
		name: "the deadline passes during a backoff", entry: standard, serves: []testserver.Step{down}, deadline: 250 * ms,
		peer: "DEADLINE_EXCEEDED after 250ms, requests at 0s, 100ms",
		ours: "UNAVAILABLE after 100ms, requests at 0s, 100ms",
		why:  "The next attempt would begin after the deadline, so the server's error is returned at once (`deadline_too_close`).",
	},
	{
		name: "the policy sets no jitter", serves: []testserver.Step{down},
		entry: `"retryPolicy": {"maxAttempts": 3, "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"], "budget": "NONE"}`,
		peer:  "UNAVAILABLE after 300ms, requests at 0s, 100ms, 300ms",
		ours:  "UNAVAILABLE after 150ms, requests at 0s, 50ms, 150ms",
		why:   "The default is full jitter, here with the mean; `jitter: PROPORTIONAL` is gRPC's.",
	},
	{
		name: "the policy names the service only", entry: standard, whole: true, serves: []testserver.Step{down.Times(2), testserver.OK()},
		peer: "OK after 300ms, requests at 0s, 100ms, 300ms",
		ours: "UNAVAILABLE after 0s, requests at 0s",
		why:  "An entry for a whole service declares no method idempotent; `idempotency: ASSUME` does.",
	},
	{
		name: "the policy sets no throttling, and 100 calls fail", serves: []testserver.Step{down}, calls: 100,
		entry: `"retryPolicy": {"maxAttempts": 4, "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}`,
		peer:  "400 requests for 100 calls",
		ours:  fmt.Sprintf("%d requests for 100 calls", 100+int(budget.Default().Size)),
		why:   "A policy that names no budget has the default one; `budget: NONE` is gRPC's behavior.",
	},
	{
		name: "the server asks for a delay of 1 s", entry: standard, serves: []testserver.Step{down.Pushback("1000"), down.Times(2), testserver.OK()},
		peer: "OK after 1.3s, requests at 0s, 1s, 1.1s, 1.3s",
		ours: "OK after 1.35s, requests at 0s, 1.05s, 1.15s, 1.35s",
		why:  "The server's delay is prolonged by up to 10 %, so that clients with the same delay don't return together.",
	},
	{
		name: "a unary call fails after its headers", entry: standard, serves: []testserver.Step{down.Header(metadata.Pairs("key", "value")), testserver.OK()},
		peer: "UNAVAILABLE after 0s, requests at 0s",
		ours: "OK after 100ms, requests at 0s, 100ms",
		why:  "The application sees the headers of a unary call only with its result.",
	},
	{
		name: "a hedge's answer asks for a delay of 700 ms", entry: hedged,
		serves: []testserver.Step{testserver.Hang(), down.Pushback("700"), testserver.Hang(), testserver.OK()},
		peer:   "OK after 1.7s, requests at 0s, 500ms, 1.2s, 1.7s",
		ours:   "OK after 1.735s, requests at 0s, 500ms, 1.235s, 1.735s",
		why:    "As for retries.",
	},
}

// tens is the retryPolicy of grpc-java's RetryTest: backoffs of ten seconds.
var tens = retries(4, 10*time.Second, 10*time.Second, 1, unavailable)

// hundreds is the hedgingPolicy of its tests: six attempts, a hundred seconds apart.
var hundreds = hedges(6, 100*time.Second, `"UNAVAILABLE", "FAILED_PRECONDITION"`)

// sixAttempts allows six attempts.
const sixAttempts = `"maxAttemptsLimit": 6, `

// The assertions of grpc-java's RetryTest, and of the hedging tests in RetriableStreamTest.
var fromJava = []scenario{
	{
		name: "an upload outgrows the buffer in its second attempt", entry: tens, kind: clientStream, messages: 2, sends: 10 * time.Second,
		options: []grpc.CallOption{grpc.MaxRetryRPCBufferSize(39)},
		serves:  []testserver.Step{faults.Play(faults.Receive(1)).Then(down), faults.Play(faults.Receive(2)).Then(down)},
		peer:    "UNAVAILABLE after 10s, requests at 0s, 10s",
		ours:    "UNAVAILABLE after 20s, requests at 0s, 20s",
		why:     "As in gRPC for Go, a stream is retried during the application's calls. Here it sends its second message after 10 s.",
	},
	{
		name: "hedges of an upload get all its messages", entry: hundreds, rest: sixAttempts, kind: clientStream, messages: 3, deadline: 300 * time.Second,
		serves: []testserver.Step{testserver.Hang(), faults.Play(faults.Receive(3), faults.Pause(time.Second), faults.Send(text))},
		peer:   "OK after 1m41s, requests at 0s, 1m40s",
		ours:   "DEADLINE_EXCEEDED after 5m0s, requests at 0s",
		why:    "A timer hedges only calls with one request. Others get their next attempt after a failure that is not fatal.",
	},
	{
		name: "a hedge fails with a non-fatal code, without a delay from the server", entry: hundreds, rest: sixAttempts, deadline: 450 * time.Second,
		serves: []testserver.Step{testserver.Hang(), down, testserver.Hang()},
		peer:   "DEADLINE_EXCEEDED after 7m30s, requests at 0s, 1m40s, 3m20s, 5m0s, 6m40s",
		ours:   "DEADLINE_EXCEEDED after 7m30s, requests at 0s, 1m40s, 1m40s, 3m20s, 5m0s, 6m40s",
		why:    "gRFC A6 sends the next hedge at once. grpc-java does so only if the server names a delay.",
	},
	{
		name: "a hedge's headers come first, its message later, and the other answers in between", entry: hundreds, rest: sixAttempts, kind: serverStream,
		serves: []testserver.Step{
			faults.Play(faults.Receive(1), faults.Pause(110*time.Second), faults.Send(text)),
			faults.Play(faults.Receive(1), faults.SendHeader(metadata.Pairs("key", "value")), faults.Pause(30*time.Second), faults.Send(text, text)),
		},
		peer: "OK after 2m10s, 2 messages, requests at 0s, 1m40s",
		ours: "OK after 1m50s, 1 messages, requests at 0s, 1m40s",
		why:  "The first message decides, since headers don't tell how soon a message follows.",
	},
	{
		name: "the server asks for delays between hedges", entry: hundreds, rest: sixAttempts,
		serves: []testserver.Step{testserver.Hang(), down.Pushback("101000"), down.Pushback("99000"), fails(codes.Internal)},
		peer:   "INTERNAL after 5m0s, requests at 0s, 1m40s, 3m21s, 5m0s",
		ours:   "INTERNAL after 5m10s, requests at 0s, 1m40s, 3m26.05s, 5m10s",
		why:    "The server's delay is prolonged by up to 10 %, so that clients with the same delay don't return together.",
	},
	{
		name: "an upload outgrows the buffer between hedges", entry: hundreds, rest: sixAttempts, kind: clientStream, messages: 2, sends: 150 * time.Second,
		options: []grpc.CallOption{grpc.MaxRetryRPCBufferSize(39)},
		serves:  []testserver.Step{faults.Play(faults.Receive(2), faults.Pause(200*time.Second), faults.Send(text))},
		peer:    "OK after 5m50s, requests at 0s, 1m40s",
		ours:    "OK after 5m50s, requests at 0s",
		why:     "A timer hedges only calls with one request. Others get their next attempt after a failure that is not fatal.",
	},
	{
		name: "throttling stops hedges", deadline: 500 * time.Second,
		entry:  `"hedgingPolicy": {"maxAttempts": 6, "hedgingDelay": "100s", "nonFatalStatusCodes": ["UNAVAILABLE"]}`,
		rest:   sixAttempts + `"retryThrottling": {"maxTokens": 4, "tokenRatio": 0.8}, `,
		serves: []testserver.Step{testserver.Hang(), down, down, testserver.Hang()},
		peer:   "DEADLINE_EXCEEDED after 8m20s, requests at 0s, 1m40s, 3m20s",
		ours:   "DEADLINE_EXCEEDED after 8m20s, requests at 0s, 1m40s, 1m40s",
		why:    "As above, the next hedge is sent at once. Throttling stops the fourth request for both.",
	},
}

// linear is the setting of go-grpc-middleware's suite: three attempts, 50 ms apart.
var linear = retries(3, 50*ms, 50*ms, 1, `"UNAVAILABLE", "DATA_LOSS"`)

// theirs returns settings of go-grpc-middleware: n attempts with a wait in between.
func theirs(n uint, apart time.Duration, after ...codes.Code) []retry.CallOption {
	return []retry.CallOption{retry.WithMax(n), retry.WithBackoff(retry.BackoffLinear(apart)), retry.WithCodes(after...)}
}

// The assertions of go-grpc-middleware's suite for its retry interceptors, and further differences. All its options are in
// the policy. The interceptors themselves are played as well.
var fromMiddleware = []scenario{
	{
		name: "a server stream fails after two messages", entry: linear, kind: serverStream,
		serves: []testserver.Step{faults.Play(faults.Receive(1), faults.Send(text, text)).Then(down), testserver.OK(text, text, text)},
		theirs: theirs(3, 50*ms, codes.Unavailable, codes.DataLoss),
		peer:   "OK after 50ms, 5 messages, requests at 0s, 50ms",
		ours:   "UNAVAILABLE after 0s, 2 messages, requests at 0s",
		why:    "The first message commits a stream. Else the application would receive two messages twice. `interceptor.Resume` continues a stream.",
	},
	{
		name: "an upload fails", entry: linear, kind: clientStream, serves: []testserver.Step{down, testserver.OK()},
		theirs: theirs(3, 50*ms, codes.Unavailable, codes.DataLoss),
		peer:   "UNIMPLEMENTED after 0s, no request",
		ours:   "OK after 50ms, requests at 0s, 50ms",
		why:    "Streams of all kinds are retried, from a bounded buffer.",
	},
	{
		name: "the server is down for longer than all attempts", entry: linear, kind: serverStream, away: 150 * ms,
		serves: []testserver.Step{testserver.OK()},
		theirs: theirs(3, 50*ms, codes.Unavailable, codes.DataLoss),
		peer:   "UNAVAILABLE after 100ms, 0 messages, no request",
		ours:   "OK after 300ms, 1 messages, requests at 300ms",
		why:    "The call waits for a connection, up to `maxConnectionWait`. `DialOptions` connects again after 0.25 s, and the call follows after one backoff.",
	},
	{
		name: "the server is back soon, and 40 attempts are allowed", entry: retries(40, 60*ms, 60*ms, 1, unavailable), rest: `"maxAttemptsLimit": 40, `,
		kind: serverStream, away: 50 * ms, serves: []testserver.Step{testserver.OK()},
		theirs: theirs(40, 60*ms, codes.Unavailable),
		peer:   "OK after 1.02s, 1 messages, requests at 1.02s",
		ours:   "OK after 310ms, 1 messages, requests at 310ms",
		why:    "The same.",
	},
	{
		name: "the server is down for longer than the deadline", entry: linear, kind: serverStream, away: 150 * ms, deadline: 50 * ms,
		serves: []testserver.Step{testserver.OK()},
		theirs: theirs(3, 50*ms, codes.Unavailable, codes.DataLoss),
		peer:   "DEADLINE_EXCEEDED after 50ms, 0 messages, no request",
		ours:   "UNAVAILABLE after 0s, 0 messages, no request",
		why:    "The next attempt would begin after the deadline, so the error is returned at once (`deadline_too_close`).",
	},
	{
		name: "the deadline passes during a backoff", entry: retries(3, 200*ms, 200*ms, 1, unavailable), serves: []testserver.Step{down}, deadline: 100 * ms,
		theirs: theirs(3, 200*ms, codes.Unavailable),
		peer:   "DEADLINE_EXCEEDED after 100ms, requests at 0s",
		ours:   "UNAVAILABLE after 0s, requests at 0s",
		why:    "The same. The error is the server's.",
	},
	{
		name: "retries have a header", entry: linear, serves: []testserver.Step{down, testserver.OK()}, shows: []string{"x-retry-attempt", "grpc-previous-rpc-attempts"},
		theirs: theirs(3, 50*ms, codes.Unavailable, codes.DataLoss),
		peer:   "OK after 50ms, requests at 0s, 50ms, request 2 has x-retry-attempt: 1",
		ours:   "OK after 50ms, requests at 0s, 50ms, request 2 has grpc-previous-rpc-attempts: 1",
		why:    "That is gRPC's own header.",
	},
	{
		name: "the server asks for a delay of 1 s", entry: linear, serves: []testserver.Step{down.Pushback("1000"), testserver.OK()},
		theirs: theirs(3, 50*ms, codes.Unavailable, codes.DataLoss),
		peer:   "OK after 50ms, requests at 0s, 50ms",
		ours:   "OK after 1.05s, requests at 0s, 1.05s",
		why:    "The server's delay replaces the backoff (pushback, RetryInfo, Retry-After), prolonged by up to 10 %.",
	},
	{
		name: "the method is not declared idempotent", entry: linear, whole: true, serves: []testserver.Step{down.Times(2), testserver.OK()},
		theirs: theirs(3, 50*ms, codes.Unavailable, codes.DataLoss),
		peer:   "OK after 100ms, requests at 0s, 50ms, 100ms",
		ours:   "UNAVAILABLE after 0s, requests at 0s",
		why:    "A call that may have taken effect is retried only if its method is [declared idempotent](../../docs/idempotency.md).",
	},
}

// thrice approximates failsafe-go's retry policy, three attempts without a delay, in a policy file.
var thrice = retries(3, time.Nanosecond, time.Nanosecond, 1, `"UNAVAILABLE", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED"`)

// The assertions of failsafe-go's suite for its gRPC client interceptor, on retries, hedges and contexts.
var fromFailsafe = []scenario{
	{
		name: "a stream fails", entry: thrice, kind: serverStream, serves: []testserver.Step{down, testserver.OK(text)},
		peer: "UNAVAILABLE after 0s, 0 messages, requests at 0s",
		ours: "OK after 1ns, 1 messages, requests at 0s, 1ns",
		why:  "Streams of all kinds are retried, from a bounded buffer.",
	},
	{
		name: "the server asks not to retry", entry: thrice, serves: []testserver.Step{down.Pushback("-1")},
		peer: "UNAVAILABLE after 2ns, requests at 0s, 1ns, 2ns",
		ours: "UNAVAILABLE after 0s, requests at 0s",
		why:  "Pushback is obeyed, as in every gRPC client.",
	},
	{
		name: "the method is not declared idempotent", entry: thrice, whole: true, serves: []testserver.Step{down.Times(2), testserver.OK()},
		peer: "OK after 2ns, requests at 0s, 1ns, 2ns",
		ours: "UNAVAILABLE after 0s, requests at 0s",
		why:  "A call that may have taken effect is retried only if its method is [declared idempotent](../../docs/idempotency.md).",
	},
}
