// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"cmp"
	"context"
	"crypto/rand"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/defaults"
	"github.com/stagger-go/stagger/policy"
)

type keyOption struct {
	grpc.EmptyCallOption

	key string
}

// IdempotencyKey sends key with every attempt of one call, in the header that the policy names, else in
// "idempotency-key", and so declares the call safe to repeat, unless its policy says idempotency NONE: the server must
// know by the key that two attempts are one call. Make it for each thing that is to happen once, and keep it when the
// application itself tries again. If key is "", a random one is made.
func IdempotencyKey(key string) grpc.CallOption { return keyOption{key: key} }

// keyCounts reports whether a key makes the calls of a policy safe to repeat. What an entry declares unsafe is so with a
// key that the caller sends, too: nobody has said that the server heeds it.
func keyCounts(p *decision.Policy) bool {
	return p.IdempotencyKey() != "" || p.Spec().Idempotency != policy.IdempotencyNone
}

// carries reports whether attempts made in a context carry the key in the header.
func carries(ctx context.Context, header, key string) bool {
	md, _ := metadata.FromOutgoingContext(ctx)
	return slices.Contains(md.Get(header), key)
}

// withKey returns the context of a call that sends an idempotency key in the given header, or, if that is "", in
// the default one when the caller has asked for a key; and the key, "" if the call sends none. The key is the
// option's, else one that the caller has put into the metadata, else a new one.
func withKey(ctx context.Context, header string, caller []grpc.CallOption) (_ context.Context, key string) {
	asked := false
	for _, o := range caller {
		if o, ok := unwrapped(o).(keyOption); ok {
			key, asked = o.key, true
		}
	}
	if header == "" && !asked {
		return ctx, ""
	}
	header = cmp.Or(header, defaults.IdempotencyHeader)
	md, ok := metadata.FromOutgoingContext(ctx)
	if own := cmp.Or(md.Get(header)...); key == "" && own != "" {
		return ctx, own
	}
	if !ok {
		md = metadata.MD{}
	}
	key = cmp.Or(key, rand.Text())
	md.Set(header, key)
	return metadata.NewOutgoingContext(ctx, md), key
}
