// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package proof_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/backoff"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/faults"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/testserver"
)

// resumed is a stream with the Resume option. Its server cuts it, fails or hangs, and its application uses it from three goroutines.
type resumed struct {
	served      []turn
	slow        time.Duration // the policy's perAttemptTimeout; 0: none
	silence     time.Duration // its messageTimeout; 0: none, and no attempt hangs
	before, lag time.Duration // of an inner interceptor, around each operation
	sends       time.Duration // when the application sends its request
	third       []move
}

// turn is what the server does in an attempt.
type turn struct {
	early    bool // it sends before it has the request
	headers  bool
	messages int
	after    time.Duration // between two moves
	end      string        // a cut, UNAVAILABLE, or no end: it hangs
}

func (r *resumed) String() string {
	return fmt.Sprintf("served %+v, then one message and OK; slow %v, silent %v, around operations %v and %v, request at %v, beside that %v",
		r.served, r.slow, r.silence, r.before, r.lag, r.sends, r.third)
}

func drawResumed(d *draws) *resumed {
	r := new(resumed)
	r.silence = one(d, 0, 0, 400*ms+300*time.Microsecond, 90*ms+300*time.Microsecond)
	ends := []string{"cut", "down"}
	if r.silence > 0 {
		ends = append(ends, "hang")
	}
	for range 1 + d.below(4) {
		r.served = append(r.served, turn{d.odds(15), d.odds(30), d.below(4), apart(d, 1), one(d, ends...)})
	}
	r.slow = one(d, 0, 0, 60*ms+100*time.Microsecond)
	r.before, r.lag = one(d, 0, 0, 2*ms, 40*ms), one(d, 0, 0, 3*ms, 300*ms)
	r.sends = one(d, 0, 0, ms, 30*ms)
	for range d.below(3) {
		r.third = append(r.third, move{what: one(d, "header", "context"), after: apart(d, 4)})
	}
	return r
}

// play plays the stream, and returns what is wrong.
func (r *resumed) play(t *testing.T) string {
	t.Helper()
	f := new(findings)
	synctest.Test(t, func(t *testing.T) {
		server := testserver.Start(t)
		var steps []testserver.Step
		for i, a := range r.served {
			steps = append(steps, a.step(i+1))
		}
		last := turn{messages: 1, after: ms}
		server.On("*", append(steps, faults.Play(last.moves(len(steps)+1)...))...)
		p := spec.Policy{Retry: &spec.Retry{
			MaxAttempts: 5, Backoff: backoff.Config{Initial: ms, Max: 5 * ms, Multiplier: 2}, RetryableStatusCodes: []codes.Code{codes.Unavailable},
			PerAttemptTimeout: r.slow, MessageTimeout: r.silence, Budget: "NONE",
		}}
		set := testkit.Must(compiled.NewSet(spec.Config{Methods: []spec.MethodConfig{{Names: []string{method}, Policy: p}}}))(t)
		retrier := testkit.Must(interceptor.New(set))(t)
		inner := func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			stream, err := open(ctx, desc, cc, method, opts...)
			if err != nil {
				return nil, err
			}
			return &alone{ClientStream: stream, findings: f, before: r.before, lag: r.lag}, nil
		}
		conn := server.Dial(t, append(retrier.DialOptions(), soon, grpc.WithChainStreamInterceptor(inner))...)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		got, err := r.use(metadata.AppendToOutgoingContext(ctx, "call", "x"), t, conn)
		if err != io.EOF && status.Code(err) != codes.Unavailable {
			f.add("it ends with %v", err)
		}
		_ = conn.Close()
		synctest.Wait()
		r.check(f, got, server.Attempts())
	})
	return strings.Join(f.list, "\n")
}

// moves are the server's in attempt n.
func (a turn) moves(n int) (list []faults.Move) {
	if !a.early {
		list = append(list, faults.Receive(1))
	}
	if a.headers {
		list = append(list, faults.SendHeader(nil))
	}
	for i := range a.messages {
		list = append(list, faults.Pause(a.after), faults.SendRaw(encoded(fmt.Sprintf("%d.%d", n, i))))
	}
	if a.early {
		list = append(list, faults.Receive(1))
	}
	return append(list, faults.Pause(a.after))
}

func (a turn) step(n int) testserver.Step {
	switch a.end {
	case "cut":
		return faults.Play(append(a.moves(n), faults.Cut())...)
	case "hang":
		return faults.Play(a.moves(n)...).Then(testserver.Hang())
	default:
		return faults.Play(a.moves(n)...).Then(testserver.Fail(codes.Unavailable, "down"))
	}
}

// use is the application.
func (r *resumed) use(ctx context.Context, t *testing.T, conn *grpc.ClientConn) (got []string, err error) {
	t.Helper()
	next := func(last proto.Message) (proto.Message, bool) {
		m, ok := last.(*wrapperspb.StringValue)
		m.Value = "after " + m.GetValue()
		return m, ok
	}
	stream := testkit.Must(conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, method, interceptor.Resume(next)))(t)
	send := func() {
		time.Sleep(r.sends)
		testkit.NoError(t, stream.SendMsg(wrapperspb.String("all")))
		testkit.NoError(t, stream.CloseSend())
	}
	var others sync.WaitGroup
	if r.silence > 0 {
		send() // a RecvMsg that began before would have no messageTimeout
	} else {
		others.Go(send)
	}
	others.Go(func() {
		for _, m := range r.third {
			time.Sleep(m.after)
			if m.what == "context" {
				_ = stream.Context()
			} else {
				_, _ = stream.Header()
			}
		}
	})
	for {
		m := new(wrapperspb.StringValue)
		err = stream.RecvMsg(m)
		if err != nil {
			break
		}
		got = append(got, m.GetValue())
	}
	others.Wait()
	return got, err
}

// check checks that the application got each attempt's messages once and in order, and that each attempt was asked for what follows those.
func (r *resumed) check(f *findings, got []string, at []testserver.Attempt) {
	text := fmt.Sprintf("received %q", got)
	asked := "all"
	for i, a := range at {
		for n, data := range a.Requests {
			if n > 0 || decoded(data) != asked {
				f.add("attempt %d was sent %q; want %q; %s", i+1, decoded(data), asked, text)
			}
		}
		for n := 0; len(got) > 0 && got[0] == fmt.Sprintf("%d.%d", i+1, n); n++ {
			asked = "after " + got[0]
			got = got[1:]
		}
	}
	if len(got) > 0 {
		f.add("%q are out of order; %s", got, text)
	}
}

func TestLoneResumed(t *testing.T) {
	search(t, 500, 60, func(t *testing.T, d *draws) string {
		t.Helper()
		r := drawResumed(d)
		return described(r, func() string { return r.play(t) })
	})
}
