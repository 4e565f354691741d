// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"cmp"
	"context"
	"crypto/rand"

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

// IdempotencyKey sends key with every attempt of one call, in the header that the policy names or, by default, in
// "idempotency-key". It declares the call idempotent, unless its policy has idempotency NONE. The server must
// recognize by the key that two attempts are one call. Use one key for each operation that must happen once, and the same key
// when the application itself retries. If key is "", a random one is used.
func IdempotencyKey(key string) grpc.CallOption { return keyOption{key: key} }

// keyCounts reports whether a key makes the calls of a policy idempotent. A key of the caller's doesn't override an entry
// that declares its methods unsafe: the server may ignore the key.
func keyCounts(p *decision.Policy) bool {
	return p.IdempotencyKey() != "" || p.Spec().Idempotency != policy.IdempotencyNone
}

// withKey returns the context of a call that sends an idempotency key, and the key, "" if the call sends none. If
// header is "", it uses the default header, provided that the caller has asked for a key. The key is the
// option's, else the one in the caller's metadata, else a new one.
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
