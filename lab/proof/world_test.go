// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package proof_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/test/bufconn"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/policyfile/codename"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// world is how a script is played: with gRPC alone, or through a Retrier.
type world struct {
	name    string
	config  func(s *script) string // the policies: a Retrier's, or without one the resolver's; nil: none
	mode    policy.Mode            // of a Retrier; "": without one
	option  grpc.CallOption        // of the call
	twins   bool                   // attempts are alike and run in parallel: which one answers cannot be seen
	watched bool                   // attempts may be slow: Header and RecvMsg choose among them
}

// play plays a script once.
func (w world) play(t *testing.T, s *script) (seen *sight) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		lis := bufconn.Listen(1 << 18)
		server := testserver.Start(t, testserver.Listener(lis))
		var steps []testserver.Step
		for i := range 8 {
			steps = append(steps, s.served[min(i, len(s.served)-1)].step(i+1, s.alike))
		}
		server.On("*", steps...)
		ends := new(ends)
		conn, retrier := w.dial(t, s, lis, ends)
		var extra []grpc.CallOption
		if w.option != nil {
			extra = append(extra, w.option)
		}
		seen = s.live(context.Background(), conn, func() {}, extra...)
		_ = conn.Close()
		time.Sleep(5 * time.Second) // messages in transit may arrive, and an unreported end is found
		synctest.Wait()
		for i, a := range server.Attempts() {
			if !s.alike {
				seen.attempts = append(seen.attempts, received(i, a))
			}
		}
		if retrier != nil {
			seen.reason = fmt.Sprint(ends.calls)
			if fault := ends.fault(retrier); fault != "" {
				seen.receiver = append(seen.receiver, result{call: "Retrier", got: fault})
			}
		}
	})
	return seen
}

// received returns what the server has received in an attempt.
func received(i int, a testserver.Attempt) string {
	var texts []string
	for _, data := range a.Requests {
		texts = append(texts, decoded(data))
	}
	return fmt.Sprintf("attempt %d, after %q: %q, closed %v", i+1, a.Metadata["grpc-previous-rpc-attempts"], texts, a.HalfClosed)
}

// ends has what observers received for one call.
type ends struct {
	attempts int
	calls    []policy.Reason
	faults   []string
}

func (e *ends) observer() interceptor.Option {
	return interceptor.WithObserver(interceptor.Observer{
		Attempt: func(context.Context, interceptor.Event) { e.attempts++ },
		CallEnd: func(_ context.Context, c interceptor.CallEnd) {
			e.calls = append(e.calls, c.Reason)
			if c.Attempts != e.attempts {
				e.faults = append(e.faults, fmt.Sprintf("the call ends after %d attempts, and %d were told of", c.Attempts, e.attempts))
			}
		},
		Diagnostic: func(policy.Diagnostic) {},
		ModeChange: func(_, _ interceptor.ModeSwitch) {},
	})
}

// fault returns what the call has left behind.
func (e *ends) fault(r *interceptor.Retrier) string {
	if len(e.calls) != 1 {
		e.faults = append(e.faults, fmt.Sprintf("told of %d calls", len(e.calls)))
	}
	if n := r.State().Waiting.All(); n != 0 {
		e.faults = append(e.faults, fmt.Sprintf("%d calls wait", n))
	}
	return strings.Join(e.faults, ", ")
}

// dial connects to the server as the world does.
func (w world) dial(t *testing.T, s *script, lis *bufconn.Listener, e *ends) (*grpc.ClientConn, *interceptor.Retrier) {
	t.Helper()
	opts := []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			conn, err := lis.DialContext(ctx)
			return distant{conn}, err
		}),
	}
	config := "{}"
	if w.config != nil {
		config = w.config(s)
	}
	var retrier *interceptor.Retrier
	if w.mode != "" {
		set, err := policy.Parse("policy.json", []byte(config))
		if err != nil {
			t.Fatal(err)
		}
		options := []interceptor.Option{e.observer(), interceptor.WithRandom(func() float64 { return 0 })}
		config = "{}" // they don't come from the resolver
		if retrier, err = interceptor.New(set, options...); err != nil {
			t.Fatal(err)
		}
		testkit.NoError(t, retrier.SetMode(interceptor.ModeSwitch{Mode: w.mode}))
		opts = append(opts, retrier.DialOptions()...)
	}
	if s.wrapped {
		opts = append(opts, grpc.WithChainStreamInterceptor(wrap))
	}
	fixed := manual.NewBuilderWithScheme("proof")
	fixed.BuildCallback = func(_ resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) {
		fixed.InitialState(resolver.State{Addresses: []resolver.Address{{Addr: "server"}}, ServiceConfig: cc.ParseServiceConfig(config)})
	}
	conn := testkit.Must(grpc.NewClient("proof:///server", append(opts, grpc.WithResolvers(fixed))...))(t)
	t.Cleanup(func() { _ = conn.Close() })
	return conn, retrier
}

// distant is a connection on which the server's data arrive a moment later, so that the client's own deadline comes before
// the server's report of it.
type distant struct{ net.Conn }

func (c distant) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	time.Sleep(time.Microsecond)
	return n, err
}

// wrap is an inner interceptor with its own streams and contexts.
func wrap(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := open(ctx, desc, cc, method, opts...)
	if err != nil {
		return nil, err
	}
	return wrapped{stream}, nil
}

type wrapped struct{ grpc.ClientStream }

type wrappedKey struct{}

func (w wrapped) Context() context.Context {
	return context.WithValue(w.ClientStream.Context(), wrappedKey{}, true)
}

// retries returns a service config with gRPC's retryPolicy, and stagger's keys that give it the same meaning.
func (s *script) retries(more string) string {
	return entry(fmt.Sprintf(`"waitForReady": false, "retryPolicy": {"maxAttempts": %d, "initialBackoff": "0.000000001s", "maxBackoff": "0.000000001s",
		"backoffMultiplier": 1, "retryableStatusCodes": [%s], "jitter": "NONE", "budget": "NONE"%s}`, s.most, names(s.retryable), more))
}

// blind returns the script without headers and messages in attempts that others may follow: unread headers commit gRPC, but not a
// Retrier. Parallel attempts proceed independently, so the application keeps pace with them.
func (s *script) blind() *script {
	without := *s
	if s.kind == serverStream {
		without.moves, without.slow = s.moves[:2], 0
	}
	without.served = nil
	for _, a := range s.served {
		if a.end.what != "ok" {
			a.does = slices.DeleteFunc(slices.Clone(a.does), func(m move) bool { return m.what == "header" || m.what == "send" || m.what == "echo" })
		}
		if a.end.what == "cut" {
			a.end.what = "drop"
		}
		without.served = append(without.served, a)
	}
	return &without
}

func names(list []codes.Code) string {
	var texts []string
	for _, c := range list {
		texts = append(texts, fmt.Sprintf("%q", codename.Of(c)))
	}
	return strings.Join(texts, ", ")
}

func entry(text string) string {
	config := `{"methodConfig": [{"name": [{"service": "proof.Service", "method": "Call"}], ` + text + `}]}`
	if !json.Valid([]byte(config)) {
		panic("not JSON: " + config)
	}
	return config
}
