// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/faults"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// messageRow has messages of an application, and what is done with them. These
// stand for types of other libraries, with what matters of them here; module interop has the libraries themselves.
type messageRow struct {
	codec   grpc.CallOption // nil: gRPC's own
	request func(text string) any
	reply   func() any
	text    func(reply any) string
	wire    func(text string) []byte // what a server sends
	options []interceptor.Option

	unary, stream, replay, observed bool // hedged; sent again; what OBSERVE says of a unary hedge
	once                            bool // a unary call has one attempt: its codec may give the request's buffers away
}

func protobufBytes(text string) []byte { return []byte(rawReply(text)) }

func messageRows() map[string]messageRow {
	generated := messageRow{
		nil, func(text string) any { return wrapperspb.String(text) }, func() any { return new(wrapperspb.StringValue) },
		func(reply any) string { return reply.(*wrapperspb.StringValue).GetValue() }, protobufBytes, nil,
		true, true, true, true, false,
	}
	vt := generated
	vt.codec = grpc.ForceCodecV2(generatedOnly{})
	dynamic := generated
	filled := vt
	filled.reply = func() any { return wrapperspb.String("mine") }
	filled.unary, filled.stream, filled.observed = false, false, false
	dynamic.request, dynamic.reply, dynamic.text = dynamicValue, func() any { return dynamicValue("") }, dynamicText
	dynamicJSON := dynamic
	dynamicJSON.codec, dynamicJSON.wire = grpc.ForceCodec(jsonCodec{}), jsonBytes
	gogo := generated
	gogo.request, gogo.reply = func(text string) any { return &legacyValue{Value: text} }, func() any { return new(legacyValue) }
	gogo.text = func(reply any) string { return reply.(*legacyValue).Value }
	gogo.unary, gogo.stream, gogo.replay, gogo.observed = false, false, false, false
	embeds := messageRow{
		nil, func(text string) any { return &envelope{wrapperspb.String(text)} }, func() any { return &envelope{new(wrapperspb.StringValue)} },
		func(reply any) string { return reply.(*envelope).GetValue() }, protobufBytes, nil,
		false, false, false, false, false,
	}
	embedsStrict := embeds
	embedsStrict.codec, embedsStrict.once = grpc.ForceCodecV2(strict{}), true
	embedsOlder := embeds
	embedsOlder.codec = grpc.ForceCodec(older{})
	prepared := messageRow{
		nil, func(text string) any { return newPrepared(text) }, func() any { return newPrepared("") },
		func(reply any) string { return reply.(*preparedValue).values[0] }, protobufBytes, nil,
		false, false, false, false, false,
	}
	asBytes := messageRow{
		grpc.ForceCodecV2(byteFrames{}), func(text string) any { return new(protobufBytes(text)) }, func() any { return new([]byte) },
		func(reply any) string { return valueOf(*reply.(*[]byte)) }, protobufBytes, nil,
		false, false, false, false, true,
	}
	buffers := asBytes
	buffers.codec, buffers.text = grpc.ForceCodecV2(frames{}), func(reply any) string { return valueOf([]byte(reply.(*frame).String())) }
	buffers.request, buffers.reply = func(text string) any { return newFrame(rawReply(text)) }, func() any { return new(frame) }
	structs := messageRow{
		grpc.ForceCodec(jsonStructs{}), func(text string) any { return &jsonOrder{text} }, func() any { return new(jsonOrder) },
		func(reply any) string { return reply.(*jsonOrder).Value }, func(text string) []byte { return fmt.Appendf(nil, "{%q:%q}", "Value", text) }, nil,
		false, false, false, false, false,
	}
	return map[string]messageRow{
		"generated, gRPC's codec": generated, "generated, vtprotobuf's codec": vt, "filled, vtprotobuf's codec": filled,
		"dynamicpb, gRPC's codec": dynamic, "dynamicpb, protojson": dynamicJSON,
		"gogo/protobuf": gogo,
		"embeds a message by pointer, gRPC's codec": embeds, "embeds a message, vtprotobuf's codec": embedsStrict, "embeds a message, an older codec": embedsOlder,
		"jhump/protoreflect dynamic": prepared,
		"`*[]byte`":                  asBytes, "`mem.BufferSlice`": buffers,
		"JSON structs": structs,
	}
}

func TestMessage(t *testing.T) {
	for name, row := range messageRows() {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			t.Run("unary", row.hedgesUnary)
			t.Run("stream", row.hedgesStream)
			t.Run("replay", row.replays)
			t.Run("observe", row.observes)
			t.Run("retried", row.retriesUnary)
		})
	}
}

func (row messageRow) opts() []grpc.CallOption {
	if row.codec == nil {
		return nil
	}
	return []grpc.CallOption{row.codec}
}

// inner dials with interceptors that see of what types messages are.
func (row messageRow) inner(t *testing.T, s *scene) {
	t.Helper()
	var mu sync.Mutex
	request, reply := reflect.TypeOf(row.request("")), reflect.TypeOf(row.reply())
	check := func(sent, received any) {
		mu.Lock()
		defer mu.Unlock()
		if sent != nil && reflect.TypeOf(sent) != request || received != nil && reflect.TypeOf(received) != reply {
			t.Errorf("an attempt has messages of %T and %T; want %s and %s", sent, received, request, reply)
		}
	}
	s.conn = s.Dial(t, append(s.retrier.DialOptions(),
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			check(req, reply)
			return invoke(ctx, method, req, reply, cc, opts...)
		}),
		grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			stream, err := open(ctx, desc, cc, method, opts...)
			return checked{stream, check}, err
		}))...)
}

type checked struct {
	grpc.ClientStream

	check func(sent, received any)
}

func (c checked) SendMsg(m any) error { c.check(m, nil); return c.ClientStream.SendMsg(m) }

func (c checked) RecvMsg(m any) error { c.check(nil, m); return c.ClientStream.RecvMsg(m) }

func (row messageRow) answer(text string, after time.Duration) testserver.Step {
	return faults.Play(faults.Receive(1), faults.Pause(after), faults.SendRaw(row.wire(text)))
}

// hedged plays a call whose first attempt answers after a second.
func (row messageRow) hedged(t *testing.T, s scene, parallel, sequence bool, call func(reply any) error) {
	t.Helper()
	row.inner(t, &s)
	for range 2 {
		s.On(get, row.answer("first", time.Second), row.answer("second", 0))
		reply := row.reply()
		want, before := "first", s.Count(get)
		if parallel {
			want = "second"
		}
		err := call(reply)
		if sent := s.Count(get) - before; err != nil || row.text(reply) != want || sequence && sent != 1 || parallel && sent != 2 {
			t.Errorf("%q, %v after %d attempts; want %q", row.text(reply), err, sent, want)
		}
	}
	synctest.Wait()
	text := "attempts don't run in parallel"
	if row.once {
		text = "calls have one attempt"
	}
	warned := slices.ContainsFunc(s.warnings, func(w string) bool { return strings.Contains(w, text) })
	if warned != sequence || len(s.warnings) > 1 {
		t.Errorf("warnings %q", s.warnings)
	}
}

func (row messageRow) hedgesUnary(t *testing.T) {
	play(t, hedged(), func(t *testing.T, s scene) {
		row.hedged(t, s, row.unary, !row.unary, func(reply any) error {
			return s.conn.Invoke(t.Context(), get, row.request("x"), reply, row.opts()...)
		})
	}, row.options...)
}

func (row messageRow) hedgesStream(t *testing.T) {
	play(t, hedged(), func(t *testing.T, s scene) {
		row.hedged(t, s, row.stream, row.replay && !row.stream, func(reply any) error {
			return row.streamed(t, s, reply)
		})
	}, row.options...)
}

// streamed makes a server stream that waits before it receives: nothing is received ahead.
func (row messageRow) streamed(t *testing.T, s scene, reply any) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stream := s.open(t, ctx, serverStream, row.opts()...)
	testkit.NoError(t, stream.SendMsg(row.request("x")))
	_ = stream.CloseSend()
	return stream.RecvMsg(reply)
}

func (row messageRow) replays(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		row.inner(t, &s)
		s.On(get, faults.Play(faults.Receive(1)).Then(testserver.Fail(codes.Unavailable, "down")), row.answer("second", 0))
		reply := row.reply()
		err := row.streamed(t, s, reply)
		synctest.Wait()
		if !row.replay {
			if err == nil || !strings.Contains(err.Error(), "down") || reasonOf(err) != policy.ReasonCommitted {
				t.Errorf("%v; want the server's error", err)
			}
			return
		}
		all := s.Attempts()
		if err != nil || row.text(reply) != "second" || len(all) != 2 || string(all[0].Requests[0]) != string(all[1].Requests[0]) || len(all[0].Requests[0]) == 0 {
			t.Errorf("%q, %v after %d attempts", row.text(reply), err, len(all))
		}
	}, row.options...)
}

func (row messageRow) observes(t *testing.T) {
	play(t, observed(hedged()), func(t *testing.T, s scene) {
		row.inner(t, &s)
		s.On(get, row.answer("first", time.Second))
		reply := row.reply()
		err := s.conn.Invoke(t.Context(), get, row.request("x"), reply, row.opts()...)
		if err != nil || row.text(reply) != "first" || s.Count(get) != 1 || len(s.decisions) > 0 != row.observed {
			t.Errorf("%q, %v after %d attempts; decided %s", row.text(reply), err, s.Count(get), s.decided())
		}
		reply = row.reply()
		if err := row.streamed(t, s, reply); err != nil || row.text(reply) != "first" || s.Count(get) != 2 {
			t.Errorf("%q, %v after %d attempts of a stream", row.text(reply), err, s.Count(get)-1)
		}
	}, row.options...)
}

// retriesUnary: a retry needs no message of ours. If the codec may give away the request's buffers, there is none, and one warning.
func (row messageRow) retriesUnary(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		row.inner(t, &s)
		s.On(get, down(), down(), row.answer("third", 0))
		reply := row.reply()
		if row.once {
			row.fails(t, &s, reply)
			return
		}
		if err := s.conn.Invoke(t.Context(), get, row.request("x"), reply, row.opts()...); err != nil || row.text(reply) != "third" {
			t.Errorf("%q, %v", row.text(reply), err)
		}
	}, row.options...)
}

// fails makes calls that are not retried.
func (row messageRow) fails(t *testing.T, s *scene, reply any) {
	t.Helper()
	for n := range 2 {
		err := s.conn.Invoke(t.Context(), get, row.request("x"), reply, row.opts()...)
		if status.Code(err) != codes.Unavailable || reasonOf(err) != policy.ReasonAttemptsExhausted || s.Count(get) != n+1 {
			t.Errorf("%v (%s) after %d attempts; want the error of the only one", err, reasonOf(err), s.Count(get)-n)
		}
	}
	if len(s.warnings) != 1 || !strings.Contains(s.warnings[0], "calls have one attempt") {
		t.Errorf("warnings %q; want one", s.warnings)
	}
}

// jsonOrder is a message of a program that has no schema.
type jsonOrder struct{ Value string }

type jsonStructs struct{}

func (jsonStructs) Name() string                       { return "json" }
func (jsonStructs) Marshal(v any) ([]byte, error)      { return json.Marshal(v) }
func (jsonStructs) Unmarshal(data []byte, v any) error { return json.Unmarshal(data, v) }

func valueOf(data []byte) string {
	m := new(wrapperspb.StringValue)
	_ = proto.Unmarshal(data, m)
	return m.GetValue()
}

// A stream of many requests has one attempt at a time whatever its codec: and one warning says that
// the policy's timeout or hedges don't apply.
func TestMessages_NoHintForManyRequests(t *testing.T) {
	for kind, desc := range kinds() {
		for field, c := range map[string]spec.Config{"hedgingPolicy": hedged(), "perAttemptTimeout": config(besides())} {
			t.Run(kind+"/"+field, func(t *testing.T) {
				play(t, c, func(t *testing.T, s scene) {
					s.On(get, faults.Play(faults.Receive(1)))
					for range 2 {
						stream := s.open(t, t.Context(), desc, grpc.ForceCodec(jsonStructs{}))
						_ = stream.SendMsg(new(ledger))
						_ = stream.CloseSend()
						_ = stream.RecvMsg(new(ledger))
					}
					want := field + ": " + get + ": does not apply to calls whose client sends a stream"
					switch {
					case !desc.ClientStreams:
						if len(s.warnings) > 0 && strings.Contains(s.warnings[0], "does not apply") {
							t.Errorf("warnings %q", s.warnings)
						}
					case len(s.warnings) != 1 || !strings.HasPrefix(s.warnings[0], want):
						t.Errorf("warnings %q; want one, %s", s.warnings, want)
					}
				})
			})
		}
	}
}
