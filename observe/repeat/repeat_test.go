// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package repeat_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/internal/testkit/policytest"
	"github.com/stagger-go/stagger/observe/repeat"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The methods of the tests, and what declares them idempotent.
const (
	named   = "/test.Service/Named"   // the name of its entry
	keyed   = "/test.Service/Keyed"   // its idempotency key
	level   = "/test.Service/Level"   // its descriptor
	assumed = "/test.Assumed/Method"  // ASSUME for its service
	none    = "/test.Service/Nothing" // nothing
	off     = "/test.Service/Off"     // the name of its entry, whose mode is OFF
)

var serverStream = &grpc.StreamDesc{ServerStreams: true}

// scene is a client in repeat mode, and its server.
type scene struct {
	*testserver.Server

	retrier *interceptor.Retrier
	conn    *grpc.ClientConn

	mu     sync.Mutex // guards all below
	found  []string   // reports about methods
	others []string   // other diagnostics
	events []string
}

func play(t *testing.T, ignore func(string, proto.Message), test func(t *testing.T, s *scene), dial ...grpc.DialOption) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &scene{Server: testserver.Start(t)}
		retry := policytest.UsualRetry()
		entry := func(name string, s spec.Policy) spec.MethodConfig {
			s.Retry = &retry
			return spec.MethodConfig{Names: []string{name}, Policy: s}
		}
		set := testkit.Must(compiled.NewSet(spec.Config{Methods: []spec.MethodConfig{
			entry(named, spec.Policy{Timeout: time.Minute}), entry(keyed, spec.Policy{IdempotencyKey: "idempotency-key"}),
			entry("/test.Service/", spec.Policy{}), entry("/test.Assumed/", spec.Policy{Idempotency: "ASSUME"}),
			entry(off, spec.Policy{Mode: "OFF"}),
		}}))(t)
		event := func(kind string) func(context.Context, interceptor.Event) {
			return func(_ context.Context, e interceptor.Event) {
				s.add(&s.events, fmt.Sprint(kind, e.Attempt))
			}
		}
		s.retrier = testkit.Must(interceptor.New(set, repeat.ForTests(ignore), interceptor.WithDescriptors(levels(t)), interceptor.WithObserver(interceptor.Observer{
			Attempt: event("attempt"), Decision: event("decision"), Sent: event("sent"), CallEnd: func(_ context.Context, e interceptor.CallEnd) { s.add(&s.events, fmt.Sprint("call", e.Attempts)) },
			Diagnostic: func(d policy.Diagnostic) {
				if d.Field == "repeat" {
					s.add(&s.found, d.Value+" "+d.Message[strings.LastIndex(d.Message, "calls ")+len("calls "):])
				} else if strings.Contains(d.Field, "ForTests") {
					s.add(&s.others, d.Severity+" "+d.Value+d.Message)
				}
			},
		})))(t)
		s.conn = s.Dial(t, append(s.retrier.DialOptions(), dial...)...)
		test(t, s)
		s.retrier.Close()
	})
}

func (s *scene) add(list *[]string, line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*list = append(*list, line)
}

// levels describes the method whose level is IDEMPOTENT.
func levels(t *testing.T) *protoregistry.Files {
	t.Helper()
	return testkit.Must(protodesc.NewFiles(&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{{
		Name: new("test.proto"), Package: new("test"), Syntax: new("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{{Name: new("M")}},
		Service: []*descriptorpb.ServiceDescriptorProto{{Name: new("Service"), Method: []*descriptorpb.MethodDescriptorProto{{
			Name: new("Level"), InputType: new(".test.M"), OutputType: new(".test.M"),
			Options: &descriptorpb.MethodOptions{IdempotencyLevel: descriptorpb.MethodOptions_IDEMPOTENT.Enum()},
		}}}},
	}}}))(t)
}

// call makes a unary call, waits for the second one, and returns the reply.
func (s *scene) call(t *testing.T, method string, opts ...grpc.CallOption) *structpb.Struct {
	t.Helper()
	reply := new(structpb.Struct)
	testkit.NoError(t, s.conn.Invoke(t.Context(), method, wrapperspb.String("article 7"), reply, opts...))
	time.Sleep(time.Second)
	synctest.Wait()
	return reply
}

// read makes a call of a server stream, and returns the number of messages.
func (s *scene) read(t *testing.T, method string) (n int) {
	t.Helper()
	stream := testkit.Must(s.conn.NewStream(t.Context(), serverStream, method))(t)
	testkit.NoError(t, stream.SendMsg(wrapperspb.String("article 7")))
	testkit.NoError(t, stream.CloseSend())
	for m := new(structpb.Struct); ; n++ {
		if err := stream.RecvMsg(m); errors.Is(err, io.EOF) {
			synctest.Wait()
			return n
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// reply is one that has a field.
func reply(t *testing.T, name string, value any) *structpb.Struct {
	t.Helper()
	return testkit.Must(structpb.NewStruct(map[string]any{name: value}))(t)
}

// Handlers that are not idempotent: the first gets n = 1.
func TestForTests_Planted(t *testing.T) {
	t.Parallel()
	ok := func(name string, value func(n int) any) func(t *testing.T, n int) testserver.Step {
		return func(t *testing.T, n int) testserver.Step { t.Helper(); return testserver.OK(reply(t, name, value(n))) }
	}
	once := func(code codes.Code) func(t *testing.T, n int) testserver.Step {
		return func(t *testing.T, n int) testserver.Step {
			t.Helper()
			if n > 1 {
				return testserver.Fail(code)
			}
			return testserver.OK(reply(t, "done", true))
		}
	}
	const differs = "has another reply: fields"
	for name, row := range map[string]struct {
		handler func(t *testing.T, n int) testserver.Step
		want    string
	}{
		"a new ID each time":     {ok("id", func(n int) any { return fmt.Sprint("order-", n) }), differs},
		"exists the second time": {once(codes.AlreadyExists), "fails with AlreadyExists"},
		"a counter":              {ok("views", func(n int) any { return n }), differs},
		"a queue popped":         {ok("job", func(n int) any { return []any{"a", "b", "c"}[n-1] }), differs},
		"the queue's last":       {once(codes.NotFound), "fails with NotFound"},
		"a token used up":        {once(codes.PermissionDenied), "fails with PermissionDenied"},
		"a time":                 {ok("at", func(int) any { return time.Now().Format(time.RFC3339Nano) }), differs},
		"a running total":        {ok("balance", func(n int) any { return 100 - 30*n }), differs},
		"a new version":          {ok("etag", func(n int) any { return fmt.Sprintf("W/%d", n) }), differs},
		"a version that is old":  {once(codes.Aborted), "fails with Aborted"},
		"a link that works once": {once(codes.FailedPrecondition), "fails with FailedPrecondition"},
		"a list that grows":      {ok("items", func(n int) any { return []any{"x", "x"}[:n] }), differs},
		"a page after the other": {ok("page", func(n int) any { return n }), differs},
		"a switch":               {ok("on", func(n int) any { return n%2 == 1 }), differs},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, nil, func(t *testing.T, s *scene) {
				s.On(named, testserver.Func(func(_ context.Context, a testserver.Attempt) testserver.Step {
					time.Sleep(time.Millisecond)
					return row.handler(t, a.Number)
				}))
				s.call(t, named)
				if want := []string{named + " " + row.want}; !slices.Equal(s.found, want) {
					t.Errorf("found %q; want %q", s.found, want)
				}
				if n := s.Count(named); n != 2 {
					t.Errorf("%d calls; want 2", n)
				}
			})
		})
	}
}

// Whatever declares a method idempotent, it is repeated; nothing else is.
func TestForTests_Declared(t *testing.T) {
	play(t, nil, func(t *testing.T, s *scene) {
		for _, row := range []struct {
			method string
			opts   []grpc.CallOption
			want   int
		}{
			{named, nil, 2},
			{keyed, nil, 2},
			{level, nil, 2},
			{assumed, nil, 2},
			{none, []grpc.CallOption{interceptor.Idempotent()}, 2},
			{none, []grpc.CallOption{interceptor.IdempotencyKey("k")}, 2},
			{named, []grpc.CallOption{interceptor.MaxAttempts(1)}, 2},
			{none, nil, 1},
			{off, nil, 1},
			{named, []grpc.CallOption{interceptor.Disable()}, 1},
			{named, []grpc.CallOption{interceptor.Policy(testkit.Must(compiled.NewPolicy(spec.Policy{Idempotency: "NONE"}))(t))}, 1},
		} {
			s.Reset()
			s.call(t, row.method, row.opts...)
			if n := s.Count(row.method); n != row.want {
				t.Errorf("%s with %v: %d calls; want %d", row.method, row.opts, n, row.want)
			}
		}
		s.retrier.SetMode(interceptor.ModeSwitch{Mode: policy.ModeOff})
		s.Reset()
		if s.call(t, named); s.Count(named) != 1 {
			t.Error("repeated after a switch to OFF")
		}
		if len(s.found) > 0 || len(s.others) != 1 || !strings.HasPrefix(s.others[0], "warning calls of methods") {
			t.Errorf("found %q, %q; want a warning that the mode is on", s.found, s.others)
		}
	})
}

// A second call is the first one again, whatever the application does with its messages, and nobody else sees it.
func TestForTests_Same(t *testing.T) {
	var seen []int
	attempts := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		n, _ := interceptor.AttemptFromContext(ctx)
		seen = append(seen, n)
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	play(t, nil, func(t *testing.T, s *scene) {
		s.On(keyed, testserver.OK(reply(t, "id", "7")).Delay(time.Second))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		mine := metadata.MD{"mine": nil}
		trailer := mine
		request, got := wrapperspb.String("article 7"), new(structpb.Struct)
		finished := 0
		testkit.NoError(t, s.conn.Invoke(ctx, keyed, request, got, grpc.Trailer(&trailer), grpc.OnFinish(func(error) { finished++ })))
		cancel()
		trailer, request.Value = mine, "another"
		clear(got.GetFields())
		time.Sleep(time.Hour)
		synctest.Wait()
		list := s.Attempts()
		if len(list) != 2 {
			t.Fatalf("%d calls; want 2", len(list))
		}
		first, second := list[0], list[1]
		if second.Time.Before(first.End) || second.Timeout != first.Timeout || second.Timeout != time.Minute || second.Cancelled {
			t.Errorf("first %+v\nsecond %+v; want it after the end of the first, with as much time", first, second)
		}
		if key := first.Metadata.Get("idempotency-key"); len(key) != 1 || !slices.Equal(key, second.Metadata.Get("idempotency-key")) {
			t.Errorf("keys %q, %q", key, second.Metadata.Get("idempotency-key"))
		}
		if n := second.Metadata.Get("grpc-previous-rpc-attempts"); !slices.Equal(n, []string{"1"}) || !slices.Equal(seen, []int{1, 2}) {
			t.Errorf("previous attempts %q, attempts %v", n, seen)
		}
		if !slices.EqualFunc(first.Requests, second.Requests, slices.Equal) {
			t.Errorf("requests %q, %q", first.Requests, second.Requests)
		}
		if _, mine := trailer["mine"]; !mine || finished != 1 {
			t.Errorf("the second call wrote to the application: trailer %v, %d ends", trailer, finished)
		}
		if want := []string{"attempt1", "call1"}; len(s.found) > 0 || !slices.Equal(s.events, want) {
			t.Errorf("found %q, events %q; want %q", s.found, s.events, want)
		}
		for _, b := range s.retrier.State().Budgets {
			if b.Granted > 0 {
				t.Errorf("the budget paid: %+v", b)
			}
		}
	}, grpc.WithChainUnaryInterceptor(attempts))
}

// Fields that may differ are cleared in copies.
func TestForTests_Ignore(t *testing.T) {
	ignore := func(method string, reply proto.Message) {
		if m, ok := reply.(*structpb.Struct); ok && method == named {
			delete(m.GetFields(), "at")
		}
	}
	play(t, ignore, func(t *testing.T, s *scene) {
		s.On(named, testserver.Func(func(_ context.Context, a testserver.Attempt) testserver.Step {
			return testserver.OK(reply(t, "at", a.Number))
		}))
		if got := s.call(t, named); got.GetFields()["at"].GetNumberValue() != 1 || len(s.found) > 0 {
			t.Errorf("reply %v, found %q", got, s.found)
		}
	})
}

// An inner interceptor that changes a request in place is found, and named: a retry would send its work twice. The second call sends the
// request as it was, and finds nothing else.
func TestForTests_ChangedInPlace(t *testing.T) {
	stamp := func(request proto.Message) proto.Message {
		m := request.(*wrapperspb.StringValue)
		m.Value = "sealed(" + m.GetValue() + ")"
		return m
	}
	for name, row := range map[string]struct {
		change func(request proto.Message) proto.Message
		want   int
	}{
		"in place": {stamp, 1},
		"a copy":   {func(request proto.Message) proto.Message { return stamp(proto.Clone(request)) }, 0},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			play(t, nil, func(t *testing.T, s *scene) {
				s.On(named, testserver.OK(wrapperspb.String("a")))
				for range 2 {
					testkit.NoError(t, s.conn.Invoke(t.Context(), named, wrapperspb.String("x"), new(wrapperspb.StringValue)))
					synctest.Wait()
				}
				s.mu.Lock()
				defer s.mu.Unlock()
				if len(s.found) != row.want || row.want > 0 && !strings.Contains(s.found[0], "in place") {
					t.Errorf("found %q; want %d", s.found, row.want)
				}
				for i, a := range s.Attempts() {
					sent := new(wrapperspb.StringValue)
					if err := proto.Unmarshal(a.Requests[0], sent); err != nil || sent.GetValue() != "sealed(x)" {
						t.Errorf("call %d has sent %q, %v", i+1, sent.GetValue(), err)
					}
				}
			}, grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn,
				invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
			) error {
				return invoke(ctx, method, row.change(req.(proto.Message)), reply, cc, opts...)
			}))
		})
	}
}

// A report names fields, also those of messages in messages.
func TestForTests_Fields(t *testing.T) {
	play(t, nil, func(t *testing.T, s *scene) {
		s.On(named, testserver.Func(func(_ context.Context, a testserver.Attempt) testserver.Step {
			return testserver.OK(&descriptorpb.MethodDescriptorProto{
				Name: new("same"), InputType: new(fmt.Sprint(a.Number)), Options: &descriptorpb.MethodOptions{Deprecated: new(a.Number > 1)},
			})
		}))
		testkit.NoError(t, s.conn.Invoke(t.Context(), named, wrapperspb.String(""), new(descriptorpb.MethodDescriptorProto)))
		synctest.Wait()
		if want := []string{named + " has another reply: input_type, options.deprecated"}; !slices.Equal(s.found, want) {
			t.Errorf("found %q; want %q", s.found, want)
		}
	})
}

// An answer that says nothing about idempotency is counted only, and a difference is reported once.
func TestForTests_Counts(t *testing.T) {
	play(t, nil, func(t *testing.T, s *scene) {
		answers := []testserver.Step{}
		for _, code := range []codes.Code{codes.Unavailable, codes.ResourceExhausted, codes.DeadlineExceeded, codes.Canceled, codes.Internal, codes.Internal} {
			answers = append(answers, testserver.OK(reply(t, "a", 1)), testserver.Fail(code))
		}
		s.On(named, append(answers, testserver.OK(reply(t, "a", 1)))...)
		for range len(answers)/2 + 3 {
			s.call(t, named)
		}
		s.retrier.Close()
		if want := []string{named + " fails with Internal"}; !slices.Equal(s.found, want) {
			t.Errorf("found %q; want %q", s.found, want)
		}
		want := "note 3 second calls were as the first, 2 differed, 4 got no response, and 0 not made, because 16 ran"
		if n := len(s.others); n != 2 || s.others[1] != want {
			t.Errorf("at the end %q; want %q", s.others, want)
		}
		if s.call(t, named); s.Count(named) != len(answers)+6+1 {
			t.Error("repeated after Close")
		}
	})
}

// 16 second calls run, others are not made, and Close ends them.
func TestForTests_Bound(t *testing.T) {
	play(t, nil, func(t *testing.T, s *scene) {
		s.On(named, testserver.Func(func(_ context.Context, a testserver.Attempt) testserver.Step {
			if a.Metadata.Get("grpc-previous-rpc-attempts") != nil {
				return testserver.Hang()
			}
			return testserver.OK(reply(t, "a", 1))
		}))
		for range 20 {
			s.call(t, named)
		}
		if n := s.Count(named); n != 20+16 {
			t.Errorf("%d calls; want 20, and 16 again", n)
		}
		start := time.Now()
		s.retrier.Close()
		if took := time.Since(start); took > 0 {
			t.Errorf("Close took %v", took)
		}
		want := []string{
			"warning 16 second calls run: calls that end before one of them are not repeated",
			"note 0 second calls were as the first, 0 differed, 16 got no response, and 4 not made, because 16 ran",
		}
		if !slices.Equal(s.others[1:], want) || len(s.found) > 0 {
			t.Errorf("diagnostics %q, found %q; want %q", s.others, s.found, want)
		}
	})
}

func TestForTests_Streams(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 100<<10)
	type list struct {
		n    int
		text string
		end  codes.Code
	}
	for name, row := range map[string]struct {
		method      string
		first, last list
		want        string
	}{
		"same":             {named, list{n: 3, text: "a"}, list{n: 3, text: "a"}, ""},
		"none":             {named, list{}, list{}, ""},
		"undeclared":       {none, list{n: 3}, list{}, ""},
		"another text":     {named, list{n: 3, text: "a"}, list{n: 3, text: "b"}, "has another reply: fields"},
		"drained":          {named, list{n: 3}, list{n: 2}, "has another number of messages"},
		"longer":           {named, list{n: 3}, list{n: 4}, "has another number of messages"},
		"failing":          {named, list{n: 3}, list{n: 3, end: codes.NotFound}, "fails with NotFound"},
		"beyond the bound": {named, list{n: 20, text: large}, list{n: 15, text: large}, ""},
		"before the bound": {named, list{n: 20, text: large}, list{n: 5, text: large}, "has another number of messages"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, nil, func(t *testing.T, s *scene) {
				step := func(l list) testserver.Step {
					return testserver.Stream(func(stream grpc.ServerStream) error {
						for i := range l.n {
							if err := stream.SendMsg(reply(t, "text", fmt.Sprint(l.text, i))); err != nil {
								return err
							}
						}
						return status.Error(l.end, "")
					})
				}
				s.On(row.method, step(row.first), step(row.last))
				s.read(t, row.method)
				var want []string
				if row.want != "" {
					want = []string{row.method + " " + row.want}
				}
				calls := 2
				if row.method == none {
					calls = 1
				}
				if n := s.Count(row.method); !slices.Equal(s.found, want) || n != calls {
					t.Errorf("found %q, %d calls; want %q, %d", s.found, n, want, calls)
				}
			})
		})
	}
}

// A stream is not repeated if the application sends any number of messages, or does not read to the end.
func TestForTests_OtherStreams(t *testing.T) {
	play(t, nil, func(t *testing.T, s *scene) {
		s.On(named, testserver.Stream(func(stream grpc.ServerStream) error {
			if err := stream.RecvMsg(new(wrapperspb.StringValue)); err != nil {
				return err
			}
			return stream.SendMsg(new(structpb.Struct))
		}))
		for _, desc := range []*grpc.StreamDesc{serverStream, {ClientStreams: true}, {ClientStreams: true, ServerStreams: true}} {
			s.Reset()
			ctx, cancel := context.WithCancel(t.Context())
			stream := testkit.Must(s.conn.NewStream(ctx, desc, named))(t)
			testkit.NoError(t, stream.SendMsg(wrapperspb.String("1")))
			testkit.NoError(t, stream.CloseSend())
			testkit.NoError(t, stream.RecvMsg(new(structpb.Struct)))
			if desc.ClientStreams {
				_ = stream.RecvMsg(new(structpb.Struct))
			}
			cancel()
			synctest.Wait()
			if n := s.Count(named); n != 1 {
				t.Errorf("%+v: %d calls; want 1", desc, n)
			}
		}
	})
}

// Calls made for a call that is a retry are not repeated, and failed calls are not.
func TestForTests_Never(t *testing.T) {
	play(t, nil, func(t *testing.T, s *scene) {
		ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs("grpc-previous-rpc-attempts", "1"))
		testkit.NoError(t, s.conn.Invoke(ctx, named, wrapperspb.String(""), new(structpb.Struct)))
		synctest.Wait()
		if n := s.Count(named); n != 1 {
			t.Errorf("%d calls for a retry; want 1", n)
		}
		s.On(named, testserver.Fail(codes.NotFound))
		if err := s.conn.Invoke(t.Context(), named, wrapperspb.String(""), new(structpb.Struct)); status.Code(err) != codes.NotFound {
			t.Error(err)
		}
		synctest.Wait()
		if n := s.Count(named); n != 2 {
			t.Errorf("%d calls; want no second one after a failure", n)
		}
	})
}

// bytesCodec passes bytes on.
type bytesCodec struct{}

func (bytesCodec) Name() string { return "bytes" }
func (bytesCodec) Marshal(v any) ([]byte, error) {
	b, _ := v.(*[]byte)
	return *b, nil
}

func (bytesCodec) Unmarshal(data []byte, v any) error {
	b, _ := v.(*[]byte)
	*b = slices.Clone(data)
	return nil
}

// Messages that can't be copied are not ignored in silence.
func TestForTests_ForeignMessages(t *testing.T) {
	play(t, nil, func(t *testing.T, s *scene) {
		for range 2 {
			testkit.NoError(t, s.conn.Invoke(t.Context(), named, new([]byte), new([]byte), grpc.ForceCodec(bytesCodec{})))
		}
		synctest.Wait()
		want := []string{"warning " + named + "is not repeated: its messages can't be copied, since they aren't protobuf's"}
		if n := s.Count(named); n != 2 || !slices.Equal(s.others[1:], want) {
			t.Errorf("%d calls, %q; want %q", n, s.others, want)
		}
	})
}
