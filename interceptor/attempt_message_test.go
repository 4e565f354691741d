// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/spec"
	"github.com/stagger-go/stagger/internal/tools/moves"
	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/policy"
)

// This file is about the messages of a call's attempts: each attempt sends the application's message, and receives into a reply as the
// application has passed it.

// giving is a codec of a proxy that gives the buffers of a message away, without a reference of its own.
type giving struct{ frames }

func (giving) Marshal(v any) (mem.BufferSlice, error) { return v.(*frame).payload, nil }

// holding is a call option of the application's.
type holding struct{ grpc.CallOption }

// registered is giving, under a name of its own.
type registered struct{ giving }

func (registered) Name() string { return "giving" }

func init() { encoding.RegisterCodecV2(registered{}) }

// countingPool is a pool of buffers that overwrites those that come back.
type countingPool struct{ out atomic.Int64 }

func (p *countingPool) Get(length int) *[]byte {
	p.out.Add(1)
	return new(make([]byte, length))
}

func (p *countingPool) Put(data *[]byte) {
	p.out.Add(-1)
	clear(*data)
}

// parallelReplies makes frames for parallel attempts.
var parallelReplies = interceptor.WithNewReply(func(_ string, reply any) func() any {
	if _, ok := reply.(*frame); ok {
		return func() any { return new(frame) }
	}
	return nil
})

// slowAndFailing are attempts of which the last is answered, whether they run in sequence or in parallel.
func slowAndFailing() []moves.Move {
	return []moves.Move{moves.Receive(1), moves.Pause(3 * time.Second)}
}

// Every attempt sends the same bytes, though the codec gives away the message's own buffers, which gRPC frees after the first. When the
// call is over, they are free.
func TestAttemptMessage_GivenAway(t *testing.T) {
	request := bytes.Repeat([]byte("x"), 8<<10)
	codecs := []grpc.CallOption{grpc.ForceCodecV2(giving{}), grpc.CallContentSubtype("giving"), holding{grpc.ForceCodecV2(giving{})}}
	for name, c := range map[string]spec.Config{
		"retry": config(plain()), "hedge": hedged(), "beside": config(besides()), "in place": config(hasty()),
	} {
		for i, codec := range codecs {
			t.Run(fmt.Sprint(strings.ReplaceAll(name, " ", "_"), "_", i), func(t *testing.T) {
				var options []interceptor.Option
				if i > 0 {
					options = append(options, parallelReplies)
				}
				play(t, c, func(t *testing.T, s scene) {
					s.On(get,
						moves.Play(slowAndFailing()...).Then(down()),
						moves.Play(moves.Receive(1)).Then(down()),
						moves.Play(moves.Receive(1), say("a")))
					pool := new(countingPool)
					sent := &frame{mem.BufferSlice{mem.Copy(request, pool)}}
					reply := new(frame)
					err := s.conn.Invoke(t.Context(), get, sent, reply, codec)
					synctest.Wait()
					if err != nil || reply.String() != rawReply("a") {
						t.Errorf("%q, %v", reply, err)
					}
					for i, a := range s.Attempts() {
						if !a.Cancelled && !bytes.Equal(a.Requests[0], request) {
							t.Errorf("attempt %d has sent %.20q of %d bytes", i+1, a.Requests[0], len(a.Requests[0]))
						}
					}
					if n := pool.out.Load(); n != 0 || s.Count(get) != 3 {
						t.Errorf("%d buffers are left after %d attempts", n, s.Count(get))
					}
				}, options...)
			})
		}
	}
}

// Codecs of all kinds stay what they are for the server: the content-type is that of a call without a Retrier.
func TestAttemptMessage_ContentType(t *testing.T) {
	for name, opts := range map[string][]grpc.CallOption{
		"V2":             {grpc.ForceCodecV2(giving{})},
		"V1":             {grpc.ForceCodec(jsonStructs{})},
		"V0":             {grpc.CustomCodecCallOption{Codec: notes{name: "v0"}}},
		"with a subtype": {grpc.ForceCodecV2(giving{}), grpc.CallContentSubtype("frames")},
		"registered":     {grpc.CallContentSubtype(registered{}.Name())},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.On(get, down(), moves.Play(moves.Receive(1)).Then(down()), moves.Play(moves.Receive(1)))
				request := any(newFrame("x"))
				switch name {
				case "V1":
					request = &jsonOrder{"x"}
				case "V0":
					request = &note{"x"}
				}
				for _, conn := range []*grpc.ClientConn{s.conn, s.Dial(t)} {
					_ = conn.Invoke(t.Context(), get, request, new(frame), opts...)
				}
				types := map[string]bool{}
				for _, a := range s.Attempts() {
					types[fmt.Sprint(a.Metadata["content-type"])] = true
				}
				if len(types) != 1 {
					t.Errorf("content-types %v; want that of the call without a Retrier", slices.Collect(maps.Keys(types)))
				}
			})
		})
	}
}

// ledger is a reply that a codec adds to.
type ledger struct {
	Items map[string]string
	Lines []string
	Note  string
}

// merging is a codec that decodes into what is there, as encoding/json does.
type merging struct{}

func (merging) Name() string { return "merging" }

func (merging) Marshal(v any) ([]byte, error) {
	if m, ok := v.(proto.Message); ok {
		return proto.Marshal(m)
	}
	return json.Marshal(v)
}

func (merging) Unmarshal(data []byte, v any) error {
	l := v.(*ledger)
	if l.Items != nil {
		l.Items[valueOf(data)] = "theirs"
	}
	if len(l.Lines) > 0 {
		l.Lines[0] = valueOf(data)
	}
	l.Note += valueOf(data)
	return nil
}

// An attempt that has failed after it had brought a reply is followed by another only if the application's reply can be restored.
func TestAttemptMessage_FilledReply(t *testing.T) {
	for name, row := range map[string]struct {
		reply   func() *ledger
		retried bool
	}{
		"empty":  {func() *ledger { return new(ledger) }, true},
		"text":   {func() *ledger { return &ledger{Note: "mine "} }, true},
		"map":    {func() *ledger { return &ledger{Items: map[string]string{"a": "mine"}} }, false},
		"slice":  {func() *ledger { return &ledger{Lines: []string{"mine"}} }, false},
		"no map": {func() *ledger { return &ledger{Items: map[string]string(nil), Note: "mine "} }, true},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				for range 2 {
					before := s.Count(get)
					s.On(get, down(), moves.Play(moves.Receive(1), say("failed")).Then(down()), moves.Play(moves.Receive(1), say("good")))
					reply, want := row.reply(), row.reply()
					_ = merging{}.Unmarshal([]byte(rawReply("good")), want)
					err := s.conn.Invoke(t.Context(), get, new(ledger), reply, grpc.ForceCodec(merging{}))
					sent := s.Count(get) - before
					switch {
					case row.retried && (err != nil || fmt.Sprint(reply) != fmt.Sprint(want) || sent != 3):
						t.Errorf("%v, %v after %d attempts; want %v", reply, err, sent, want)
					case !row.retried && (reasonOf(err) != policy.ReasonNonRetryable || sent != 2):
						t.Errorf("%v, %v (%s) after %d attempts; want no third", reply, err, reasonOf(err), sent)
					}
				}
				warned := slices.DeleteFunc(s.warnings, func(w string) bool { return !strings.Contains(w, "can't be restored") })
				if want := map[bool]int{false: 1}[row.retried]; len(warned) != want {
					t.Errorf("warnings %q; want %d", s.warnings, want)
				}
			})
		})
	}
}

// So is one whose classifier says "not yet" of a reply.
func TestAttemptMessage_FilledNotYet(t *testing.T) {
	asked := 0
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, moves.Play(moves.Receive(1), say("not yet")), moves.Play(moves.Receive(1), say("good")))
		reply := &ledger{Items: map[string]string{"a": "mine"}}
		err := s.conn.Invoke(t.Context(), get, new(ledger), reply, grpc.ForceCodec(merging{}))
		if err != nil || s.Count(get) != 1 || fmt.Sprint(reply.Items) != "map[a:mine not yet:theirs]" {
			t.Errorf("%v, %v after %d attempts; want the only reply", reply, err, s.Count(get))
		}
	}, says(interceptor.VerdictRetry, &asked))
}

// sealing is an inner interceptor that changes a request in place, as by encryption.
func sealing(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn,
	invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
) error {
	m := req.(*wrapperspb.StringValue)
	m.Value = "sealed(" + m.GetValue() + ")"
	return invoke(ctx, method, req, reply, cc, opts...)
}

// Attempts that may run beside each other don't share the message: each one that follows has the application's, as it was when the call
// began.
func TestAttemptMessage_ChangedInPlace(t *testing.T) {
	for name, c := range map[string]spec.Config{"hedge": hedged(), "beside": config(besides()), "in place": config(hasty())} {
		for _, codec := range []grpc.CallOption{grpc.EmptyCallOption{}, grpc.ForceCodecV2(generatedOnly{})} {
			t.Run(strings.ReplaceAll(fmt.Sprintf("%s %T", name, codec), " ", "_"), func(t *testing.T) {
				play(t, c, func(t *testing.T, s scene) {
					conn := s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainUnaryInterceptor(sealing))...)
					knowLatency(s.retrier, conn)
					for _, text := range []string{"short", strings.Repeat("long", 10<<10), "x"} {
						before := s.Count(get)
						s.On(get,
							moves.Play(slowAndFailing()...).Then(down()),
							moves.Play(moves.Receive(1)).Then(down()),
							moves.Play(moves.Receive(1), say("a")))
						if err := conn.Invoke(t.Context(), get, wrapperspb.String(text), new(wrapperspb.StringValue), codec); err != nil {
							t.Fatal(err)
						}
						synctest.Wait()
						for i := before; i < s.Count(get); i++ {
							if got := fmt.Sprint(s.heard(i)); got != "[sealed("+text+")]" {
								t.Errorf("attempt %d has sent %.40s", i-before+1, got)
							}
						}
						if n := s.Count(get) - before; n != 3 {
							t.Errorf("%d attempts; want 3", n)
						}
					}
				})
			})
		}
	}
}

// An attempt that an inner interceptor may have left running shares no message with the next one either.
func TestAttemptMessage_LeftRunning(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		refuses := true
		conn := s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainUnaryInterceptor(
			func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				if refuses {
					refuses = false
					return status.Error(codes.Unavailable, "refused")
				}
				return sealing(ctx, method, req, reply, cc, invoke, opts...)
			}))...)
		_ = conn.Invoke(t.Context(), get, wrapperspb.String("x"), new(wrapperspb.StringValue))
		s.On(get, down(), text("a"))
		must.Do(t, conn.Invoke(t.Context(), get, wrapperspb.String("x"), new(wrapperspb.StringValue)))
		if got := fmt.Sprint(s.heard(s.Count(get) - 1)); got != "[sealed(x)]" {
			t.Errorf("the last attempt has sent %s", got)
		}
	})
}

// Replies that can't be assigned to get none of another attempt: a map is filled, and nil is what the codec makes of it.
func TestAttemptMessage_DeclaredForAnyReply(t *testing.T) {
	filled := map[string]string{"a": "mine"}
	for name, row := range map[string]struct {
		reply any
		want  codes.Code
	}{"map": {filled, codes.OK}, "nil": {nil, codes.Internal}, "nil pointer": {(*ledger)(nil), codes.Internal}} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			play(t, hedged(), func(t *testing.T, s scene) {
				s.On(get, moves.Play(slowAndFailing()...).Then(down()), moves.Play(moves.Receive(1), say("good")))
				err := s.conn.Invoke(t.Context(), get, new(ledger), row.reply, grpc.ForceCodec(mapping{}))
				if status.Code(err) != row.want || row.want == codes.OK && fmt.Sprint(filled) != "map[good:theirs]" {
					t.Errorf("%v, %v", filled, err)
				}
			}, interceptor.WithNewReply(func(string, any) func() any { return func() any { return map[string]string{} } }))
		})
	}
}

// mapping is a codec whose replies are maps.
type mapping struct{ merging }

func (mapping) Unmarshal(data []byte, v any) error {
	m, ok := v.(map[string]string)
	if !ok {
		return fmt.Errorf("%T is no map", v)
	}
	m[valueOf(data)] = "theirs"
	return nil
}

// A reply that is declared takes the place of one that can't be restored.
func TestAttemptMessage_DeclaredReply(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, moves.Play(moves.Receive(1), say("failed")).Then(down()), moves.Play(moves.Receive(1), say("good")))
		for range 3 { // calls share memory
			reply := &ledger{Items: map[string]string{"a": "mine"}}
			err := s.conn.Invoke(t.Context(), get, new(ledger), reply, grpc.ForceCodec(merging{}))
			if err != nil || fmt.Sprint(reply.Items) != "map[a:mine good:theirs]" {
				t.Errorf("%v, %v after %d attempts", reply, err, s.Count(get))
			}
			s.On(get, moves.Play(moves.Receive(1), say("good")))
		}
	}, interceptor.WithNewReply(func(string, any) func() any {
		return func() any { return &ledger{Items: map[string]string{"a": "mine"}} }
	}))
}
