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
	"google.golang.org/grpc/status"
)

// broken is a codec that cannot encode.
type broken struct{}

// resettable is a message of an older generator.
type resettable struct{ items []string }

func (r *resettable) Reset() { r.items = []string{"reset"} }

func TestReply_OfAnyType(t *testing.T) {
	t.Parallel()
	unary := mustNew(t, mustSet(t, config(plain())), quiet).Unary()
	fail := func() grpc.UnaryInvoker {
		attempts := 0
		return func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
			if attempts++; attempts == 1 {
				return status.Error(codes.Unavailable, "")
			}
			return nil
		}
	}
	synctest.Test(t, func(t *testing.T) {
		old := &resettable{items: []string{"half"}}
		for _, reply := range []any{old, (*int)(nil), nil, 7} {
			if err := unary(t.Context(), get, nil, reply, nil, fail()); err != nil {
				t.Errorf("reply %v: %v", reply, err)
			}
		}
		if fmt.Sprint(old.items) != "[reset]" {
			t.Errorf("items %v; want those of Reset", old.items)
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
