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
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// broken is a codec that cannot encode.
type broken struct{}

func (broken) Name() string                { return "broken" }
func (broken) Marshal(any) ([]byte, error) { return nil, fmt.Errorf("no") }
func (broken) Unmarshal([]byte, any) error { return fmt.Errorf("no") }

func TestWhatFailsOnThisSideIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	internal := plain()
	internal.Codes = policy.Codes(codes.Internal)
	for name, row := range map[string]struct {
		md   metadata.MD
		opts []grpc.CallOption
		raw  []byte
	}{
		"a message that cannot be encoded": {opts: []grpc.CallOption{grpc.ForceCodec(broken{})}},
		"a reply that cannot be decoded":   {raw: []byte{0xff}},
		"a compressor that is not there":   {opts: []grpc.CallOption{grpc.UseCompressor("none-such")}},
		"a codec that is not there":        {opts: []grpc.CallOption{grpc.CallContentSubtype("none-such")}},
		"a header that is not allowed":     {md: metadata.MD{"Not Allowed": {"x"}}},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, config(internal), func(t *testing.T, s scene) {
				s.On(get, testserver.OK().Raw(row.raw))
				ctx := metadata.NewOutgoingContext(t.Context(), row.md)
				_, err := s.call(ctx, get, row.opts...)
				if status.Code(err) != codes.Internal || reasonOf(err) != policy.ReasonNonRetryable || len(s.attempts) != 1 {
					t.Errorf("%v, %s after %d attempts; want non_retryable after 1", err, reasonOf(err), len(s.attempts))
				}
			})
		})
	}
}

func TestAMessageThatIsTooLargeIsNotRetriedWhoeverWrapsTheError(t *testing.T) {
	t.Parallel()
	exhausted := plain()
	exhausted.Codes = policy.Codes(codes.ResourceExhausted)
	unary := mustNew(t, mustSet(t, config(exhausted)), quiet).Unary()
	synctest.Test(t, func(t *testing.T) {
		attempts := 0
		err := unary(t.Context(), get, nil, nil, nil, func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
			attempts++
			return fmt.Errorf("orders client: %w", status.Error(codes.ResourceExhausted, "trying to send message larger than max (9 vs. 3)"))
		})
		if attempts != 1 || reasonOf(err) != policy.ReasonNonRetryable {
			t.Errorf("%v, %s after %d attempts", err, reasonOf(err), attempts)
		}
	})
}

// resettable is a message of an older generator.
type resettable struct{ items []string }

func (r *resettable) Reset() { r.items = []string{"reset"} }

func TestRepliesOfAnyTypeAreEmptiedBeforeAnotherAttempt(t *testing.T) {
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
