// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	encodingproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// broken is a codec that cannot encode.
type broken struct{}

// What the caller has put into a reply is there again in each attempt, and if all fail, also afterwards: a codec may need it.
func TestReply_Kept(t *testing.T) {
	t.Parallel()
	type order struct {
		Items  []string
		schema *int
	}
	schema := new(int)
	json := grpc.ForceCodec(jsonStructs{})
	for name, row := range map[string]struct {
		reply any
		opts  []grpc.CallOption
		fill  func(reply any)
		text  func(reply any) string
		want  string // before each attempt
		after string
	}{
		"a message, gRPC's codec, which empties it": {
			wrapperspb.String("mine"), nil, func(any) {}, func(m any) string { return m.(*wrapperspb.StringValue).GetValue() }, "mine", "mine",
		},
		"a message, another codec": {
			wrapperspb.String("mine"),
			[]grpc.CallOption{json},
			func(m any) { m.(*wrapperspb.StringValue).Value += " and theirs" }, func(m any) string { return m.(*wrapperspb.StringValue).GetValue() },
			"mine", "mine and theirs",
		},
		"an empty message, another codec": {
			wrapperspb.String(""),
			[]grpc.CallOption{json},
			func(m any) { m.(*wrapperspb.StringValue).Value += "theirs" }, func(m any) string { return m.(*wrapperspb.StringValue).GetValue() },
			"", "theirs",
		},
		"a struct": {
			&order{schema: schema}, nil, func(m any) { m.(*order).Items = append(m.(*order).Items, "theirs") },
			func(m any) string { return fmt.Sprint(m.(*order).Items, m.(*order).schema == schema) }, "[] true", "[theirs] true",
		},
		"a type that would reset itself": {
			&resettable{items: []string{"mine"}}, nil, func(m any) { m.(*resettable).items = nil },
			func(m any) string { return fmt.Sprint(m.(*resettable).items) }, "[mine]", "[]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				attempts := 0
				err := mustNew(t, mustSet(t, config(plain())), quiet).Unary()(t.Context(), get, nil, row.reply, nil,
					func(_ context.Context, _ string, _, reply any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
						attempts++
						if row.text(reply) != row.want {
							t.Errorf("attempt %d finds %q; want %q", attempts, row.text(reply), row.want)
						}
						row.fill(reply)
						return status.Error(codes.Unavailable, "")
					}, row.opts...)
				if attempts != 4 || row.text(row.reply) != row.after {
					t.Errorf("%v after %d attempts, %q; want %q", err, attempts, row.text(row.reply), row.after)
				}
			})
		})
	}
}

// So it is if the program has replaced gRPC's codec for all calls. A function has no messages.
func TestReply_Kept_ReplacedCodec(t *testing.T) { // not parallel: the codec is that of all calls
	grpcs := encoding.GetCodecV2(encodingproto.Name)
	encoding.RegisterCodecV2(struct{ encoding.CodecV2 }{grpcs})
	defer encoding.RegisterCodecV2(grpcs)
	synctest.Test(t, func(t *testing.T) {
		reply := wrapperspb.String("mine")
		_ = mustNew(t, mustSet(t, config(plain())), quiet).Unary()(t.Context(), get, wrapperspb.String("7"), reply, nil,
			func(_ context.Context, _ string, _, reply any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
				m := reply.(*wrapperspb.StringValue)
				if m.GetValue() != "mine" {
					t.Errorf("an attempt finds %q; want the caller's", m.GetValue())
				}
				m.Value += " and theirs"
				return status.Error(codes.Unavailable, "")
			})
		attempts := 0
		_ = mustNew(t, mustSet(t, config(plain())), quiet).Do(t.Context(), get, func(context.Context) error {
			attempts++
			return status.Error(codes.Unavailable, "")
		})
		if attempts != 4 {
			t.Errorf("%d attempts of a function; want 4", attempts)
		}
	})
}

// resettable is a message of an older generator.
type resettable struct{ items []string }

func (r *resettable) Reset() { r.items = []string{"reset"} }

// Replies that can't be kept or emptied do no harm.
func TestReply_OfAnyType(t *testing.T) {
	t.Parallel()
	unary := mustNew(t, mustSet(t, config(plain())), quiet).Unary()
	fail := func() grpc.UnaryInvoker {
		attempts := 0
		return func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
			attempts++
			if attempts == 1 {
				return status.Error(codes.Unavailable, "")
			}
			return nil
		}
	}
	synctest.Test(t, func(t *testing.T) {
		for _, reply := range []any{(*int)(nil), nil, 7, (*wrapperspb.StringValue)(nil), &envelope{}} {
			for _, opts := range [][]grpc.CallOption{nil, {grpc.ForceCodec(jsonStructs{})}} {
				if err := unary(t.Context(), get, nil, reply, nil, fail(), opts...); err != nil {
					t.Errorf("reply %v: %v", reply, err)
				}
			}
		}
	})
}

// A unary call can bring a message and then fail. With protobuf the next decoding starts from
// nothing; with other codecs it may add to what is there.
func TestReply_FilledByFailure(t *testing.T) {
	t.Parallel()
	unary := mustNew(t, mustSet(t, config(plain())), quiet).Unary()
	synctest.Test(t, func(t *testing.T) {
		type order struct{ Items []string }
		var reply order
		attempts := 0
		err := unary(t.Context(), get, nil, &reply, nil,
			func(_ context.Context, _ string, _, reply any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
				attempts++
				o := reply.(*order)
				o.Items = append(o.Items, fmt.Sprint("item of attempt ", attempts))
				if attempts < 3 {
					return status.Error(codes.Unavailable, "")
				}
				return nil
			})
		if err != nil || fmt.Sprint(reply.Items) != "[item of attempt 3]" {
			t.Errorf("%v, %v; want the items of the last attempt", reply.Items, err)
		}
	})
}
