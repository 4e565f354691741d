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
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/retry"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/codename"
	"github.com/stagger-go/stagger/internal/inside"
	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// scenario is a statement about calls in a peer's documentation or test suite, and stagger's behaviour. Differences are by
// design, and why has the reason.
type scenario struct {
	name   string
	entry  string // of the policy file: the keys after the name
	rest   string // keys of the policy file next to
	whole  bool   // the entry names only the service
	serves []testserver.Step

	kind     kind          // "" is unary
	sends    time.Duration // of client streams: the time between two messages
	messages int           // of client streams; 0 is 1
	deadline time.Duration
	cancel   time.Duration // when the application cancels; 0: never
	away     time.Duration // how long the server is away from the start
	calls    int           // in sequence; 0 is 1
	known    bool          // earlier calls have
	options  []grpc.CallOption
	retrier  []interceptor.Option
	theirs   []retry.CallOption // the same settings for go-grpc-middleware, which is also played; nil if that isn't the peer
	shows    []string           // headers to list in the outcome

	peer string // the peer's behaviour, in outcome's notation
	ours string // stagger's behaviour; "": the same
	why  string
}

// play makes the calls of a scenario, in virtual time. Random numbers are 0.5: backoffs with gRPC's jitter are exact, and
// halved with full jitter. With peer, the peer's own interceptors make the attempts.
func (s scenario) play(t *testing.T, peer bool) (outcome string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := testserver.Start(t)
		server.On("*", s.serves...)
		name := `{"service": "proof.Service", "method": "Call"}`
		if s.whole {
			name = `{"service": "proof.Service"}`
		}
		set := must.Get(policy.Parse("policy.json", fmt.Appendf(nil, `{%s"methodConfig": [{"name": [%s], %s}]}`, s.rest, name, s.entry)))(t)
		retrier := must.Get(interceptor.New(set, append(s.retrier, inside.Random(func() float64 { return 0.5 }).(interceptor.Option),
			interceptor.WithObserver(interceptor.Observer{Diagnostic: func(policy.Diagnostic) {}}))...))(t)
		defer retrier.Close()
		var outer, inner counter
		between := retrier.DialOptions()
		if peer {
			between = []grpc.DialOption{
				grpc.WithChainUnaryInterceptor(retry.UnaryClientInterceptor(s.theirs...)),
				grpc.WithChainStreamInterceptor(retry.StreamClientInterceptor(s.theirs...)),
			}
		}
		conn := server.Dial(t, slices.Concat(outer.options(), between, inner.options())...)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if s.known {
			server.On("*", testserver.OK())
			for range 20 {
				must.Get(s.call(ctx, conn))(t)
			}
			synctest.Wait()
			server.Reset()
			server.On("*", s.serves...)
			outer.n.Store(0)
			inner.n.Store(0)
		}
		start := time.Now()
		if s.deadline > 0 {
			ctx, cancel = context.WithTimeout(ctx, s.deadline)
			defer cancel()
		}
		if s.cancel > 0 {
			defer time.AfterFunc(s.cancel, cancel).Stop()
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
		if n := int64(max(1, s.calls)); outer.n.Load() != n || s.away == 0 && inner.n.Load() < int64(len(attempts)) {
			t.Errorf("an interceptor outside of the Retrier saw %d of %d calls, one inside %d of %d attempts", outer.n.Load(), n, inner.n.Load(), len(attempts))
		}
		if s.calls > 0 {
			outcome = fmt.Sprintf("%d requests for %d calls", len(attempts), s.calls)
			return
		}
		var times []string
		for _, a := range attempts {
			times = append(times, a.Time.Sub(start).String())
		}
		if outcome += ", requests at " + strings.Join(times, ", "); len(times) == 0 {
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
	const method = "/proof.Service/Call"
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

// counter counts the calls through an interceptor.
type counter struct{ n atomic.Int64 }

func (c *counter) options() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			c.n.Add(1)
			return invoke(ctx, method, req, reply, cc, opts...)
		}),
		grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			c.n.Add(1)
			return open(ctx, desc, cc, method, opts...)
		}),
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

var write = flag.Bool("write", false, "write the differences from peers into docs/evidence/peers.md")

// The page lists exactly the differences by design; -write writes it.
func TestPeers(t *testing.T) {
	t.Parallel()
	for _, p := range []struct {
		name      string
		scenarios []scenario
	}{
		{"gRPC (gRFC A6)", fromA6},
		{"grpc-java", fromJava},
		{"go-grpc-middleware", fromMiddleware},
		{"failsafe-go", fromFailsafe},
	} {
		var table strings.Builder
		fmt.Fprintf(&table, "| what happens | %s | stagger | why |\n| --- | --- | --- | --- |\n", p.name)
		for _, s := range p.scenarios {
			want := s.ours
			if want == "" {
				want = s.peer
			}
			t.Run(p.name+"/"+s.name, func(t *testing.T) {
				t.Parallel()
				if got := s.play(t, false); got != want {
					t.Errorf("stagger:\n got %s\nwant %s", got, want)
				}
				if s.theirs == nil {
					return
				}
				if got := s.play(t, true); got != s.peer {
					t.Errorf("%s:\n got %s\nwant %s", p.name, got, s.peer)
				}
			})
			switch {
			case s.ours == s.peer || (s.ours == "") != (s.why == ""):
				t.Errorf("%s: by %s %q, by stagger %q, why %q: want a reason for each difference", s.name, p.name, s.peer, s.ours, s.why)
			case s.ours != "":
				fmt.Fprintf(&table, "| %s | %s | %s | %s |\n", s.name, s.peer, s.ours, s.why)
			}
		}
		wantTable(t, "differences from "+p.name, table.String())
	}
}

// wantTable compares the text between the marks of the page.
func wantTable(t *testing.T, name, want string) {
	t.Helper()
	const path = "../../../docs/evidence/peers.md"
	page := must.Get(os.ReadFile(path))(t)
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

// answersAfter fails with a code, or answers with OK, after a time.
func answersAfter(d time.Duration, code codes.Code) testserver.Step {
	if code == codes.OK {
		return testserver.OK().Delay(d)
	}
	return fails(code).Delay(d)
}
