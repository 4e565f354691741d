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
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/faults"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
)

// This file is about the messages of a call's attempts: each attempt sends the application's message, and receives into a reply as the
// application has passed it.

// giving is a codec of a proxy that gives the buffers of a message away, without a reference of its own.
type giving struct{ frames }

func (giving) Marshal(v any) (mem.BufferSlice, error) { return v.(*frame).payload, nil }

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

// slowAndFailing are attempts of which the last is answered, whether they run in sequence or in parallel.
func slowAndFailing() []faults.Move {
	return []faults.Move{faults.Receive(1), faults.Pause(3 * time.Second)}
}

// A request whose codec may give the message's own buffers away is sent once: gRPC frees them. One warning says so. Whatever its codec, a
// protobuf message is sent again.
func TestAttemptMessage_GivenAway(t *testing.T) {
	request := bytes.Repeat([]byte("x"), 8<<10)
	codecs := []grpc.CallOption{grpc.ForceCodecV2(giving{}), grpc.CallContentSubtype("giving")}
	for name, c := range map[string]spec.Config{
		"retry": config(plain()), "hedge": hedged(), "beside": config(besides()), "in place": config(hasty()),
	} {
		for i, codec := range codecs {
			t.Run(fmt.Sprint(strings.ReplaceAll(name, " ", "_"), "_", i), func(t *testing.T) {
				play(t, c, func(t *testing.T, s scene) {
					s.On(get, faults.Play(slowAndFailing()...).Then(down()), faults.Play(faults.Receive(1), say("a")))
					pool := new(countingPool)
					sent := &frame{mem.BufferSlice{mem.Copy(request, pool)}}
					err := s.conn.Invoke(t.Context(), get, sent, new(frame), codec)
					synctest.Wait()
					if status.Code(err) != codes.Unavailable || reasonOf(err) != policy.ReasonAttemptsExhausted {
						t.Errorf("%v (%s); want the server's error", err, reasonOf(err))
					}
					if got := s.Attempts()[0].Requests[0]; !bytes.Equal(got, request) {
						t.Errorf("it has sent %.20q of %d bytes", got, len(got))
					}
					if n := pool.out.Load(); n != 0 || s.Count(get) != 1 {
						t.Errorf("%d buffers are left after %d attempts", n, s.Count(get))
					}
					if len(s.warnings) != 1 || !strings.HasPrefix(s.warnings[0], "codec: "+get+": calls have one attempt") {
						t.Errorf("warnings %q; want one", s.warnings)
					}
				})
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
				s.On(get, down(), faults.Play(faults.Receive(1)).Then(down()), faults.Play(faults.Receive(1)))
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

// An attempt that fails may have brought a reply. The next one finds what the application has put into it, but for what a failed one has
// changed behind a map, slice or pointer.
func TestAttemptMessage_FilledReply(t *testing.T) {
	for name, row := range map[string]struct {
		reply *ledger
		want  string
	}{
		"empty":  {new(ledger), "&{map[] [] good}"},
		"text":   {&ledger{Note: "mine "}, "&{map[] [] mine good}"},
		"map":    {&ledger{Items: map[string]string{"a": "mine"}}, "&{map[a:mine failed:theirs good:theirs] [] good}"},
		"slice":  {&ledger{Lines: []string{"mine"}}, "&{map[] [good] good}"},
		"no map": {&ledger{Items: map[string]string(nil), Note: "mine "}, "&{map[] [] mine good}"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			play(t, config(plain()), func(t *testing.T, s scene) {
				s.On(get, down(), faults.Play(faults.Receive(1), say("failed")).Then(down()), faults.Play(faults.Receive(1), say("good")))
				err := s.conn.Invoke(t.Context(), get, new(ledger), row.reply, grpc.ForceCodec(merging{}))
				if err != nil || fmt.Sprint(row.reply) != row.want || s.Count(get) != 3 || len(s.warnings) > 0 {
					t.Errorf("%v, %v after %d attempts; want %s", row.reply, err, s.Count(get), row.want)
				}
			})
		})
	}
}

// So does one after a reply of which a classifier says "not yet".
func TestAttemptMessage_FilledNotYet(t *testing.T) {
	asked := 0
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, faults.Play(faults.Receive(1), say("not yet")), faults.Play(faults.Receive(1), say("good")))
		reply := &ledger{Note: "mine "}
		err := s.conn.Invoke(t.Context(), get, new(ledger), reply, grpc.ForceCodec(merging{}))
		if err != nil || asked != 4 || reply.Note != "mine good" {
			t.Errorf("%v, %v after %d attempts; want the last reply", reply, err, s.Count(get))
		}
	}, says(interceptor.VerdictRetry, &asked))
}

// adding is a codec for protobuf messages that adds to what is in a reply.
type adding struct{ generatedOnly }

func (adding) Unmarshal(data mem.BufferSlice, v any) error {
	return proto.UnmarshalOptions{Merge: true}.Unmarshal(data.Materialize(), v.(proto.Message))
}

// Every attempt, alone or in parallel with others, finds in its reply what the application has put there.
func TestAttemptMessage_AddedReply(t *testing.T) {
	for name, c := range map[string]spec.Config{"retry": config(plain()), "hedge": hedged(), "beside": config(besides()), "in place": config(hasty())} {
		for kind, desc := range map[string]*grpc.StreamDesc{"unary": nil, "one each way": {}, "client stream": clientStream} {
			t.Run(strings.ReplaceAll(name+"/"+kind, " ", "_"), func(t *testing.T) {
				play(t, c, func(t *testing.T, s scene) {
					s.On(get,
						faults.Play(faults.Receive(1), sayList("failed"), faults.Pause(3*time.Second)).Then(down()),
						faults.Play(faults.Receive(1), sayList("failed, too")).Then(down()),
						faults.Play(faults.Receive(1), sayList("good")))
					reply, want := new(fieldmaskpb.FieldMask), []string{"mine", "good"}
					reply.Paths = []string{"mine"}
					err := s.oneReply(t, desc, reply, grpc.ForceCodecV2(adding{}))
					if err != nil || !slices.Equal(reply.GetPaths(), want) || s.Count(get) != 3 {
						t.Errorf("%q, %v after %d attempts; want %q", reply.GetPaths(), err, s.Count(get), want)
					}
				})
			})
		}
	}
}

// sayList sends a message with a list of one text.
func sayList(text string) faults.Move {
	data, _ := proto.Marshal(&fieldmaskpb.FieldMask{Paths: []string{text}})
	return faults.SendRaw(data)
}

// oneReply makes a call of any kind that has one reply.
func (s scene) oneReply(t *testing.T, desc *grpc.StreamDesc, reply any, opts ...grpc.CallOption) error {
	t.Helper()
	if desc == nil {
		return s.conn.Invoke(t.Context(), get, wrapperspb.String("x"), reply, opts...)
	}
	stream := s.open(t, t.Context(), desc, opts...)
	testkit.NoError(t, stream.SendMsg(wrapperspb.String("x")))
	_ = stream.CloseSend()
	return stream.RecvMsg(reply)
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
							faults.Play(slowAndFailing()...).Then(down()),
							faults.Play(faults.Receive(1)).Then(down()),
							faults.Play(faults.Receive(1), say("a")))
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

// Replies of any type are received one after the other: a map is filled, and nil is what the codec makes of it.
func TestAttemptMessage_AnyReply(t *testing.T) {
	filled := map[string]string{"a": "mine"}
	for name, row := range map[string]struct {
		reply any
		want  codes.Code
	}{"map": {filled, codes.OK}, "nil": {nil, codes.Internal}, "nil pointer": {(*ledger)(nil), codes.Internal}} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			play(t, hedged(), func(t *testing.T, s scene) {
				s.On(get, faults.Play(slowAndFailing()...).Then(down()), faults.Play(faults.Receive(1), say("good")))
				err := s.conn.Invoke(t.Context(), get, new(ledger), row.reply, grpc.ForceCodec(mapping{}))
				if status.Code(err) != row.want || row.want == codes.OK && fmt.Sprint(filled) != "map[a:mine good:theirs]" {
					t.Errorf("%v, %v", filled, err)
				}
			})
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
