// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"cmp"
	"context"
	"crypto/rand"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/stagger-go/stagger/policy"
)

type keyOption struct {
	grpc.EmptyCallOption

	key string
}

// IdempotencyKey sends key with every attempt of one call, in the header that the policy names, else in
// "idempotency-key", and so declares the call safe to repeat: the server must know by it that two
// attempts are one call. Make it for each thing that is to happen once, and keep it when the application
// itself tries again. If key is "", a random one is made.
func IdempotencyKey(key string) grpc.CallOption { return keyOption{key: key} }

// keyed gives the call its idempotency key, if it is to have one: the option's, else one that the caller
// has put into the metadata, else a new one.
func (c *call) keyed(ctx context.Context) context.Context {
	key, asked := "", false
	for _, o := range c.options.caller {
		if o, ok := o.(keyOption); ok {
			key, asked = o.key, true
		}
	}
	header := c.policy.IdempotencyKey()
	if header == "" && !asked {
		return ctx
	}
	header = cmp.Or(header, policy.DefaultIdempotencyHeader)
	md, ok := metadata.FromOutgoingContext(ctx)
	if own := cmp.Or(md.Get(header)...); key == "" && own != "" {
		c.key = own
		return ctx
	}
	if !ok {
		md = metadata.MD{}
	}
	c.key = cmp.Or(key, rand.Text())
	md.Set(header, c.key)
	return metadata.NewOutgoingContext(ctx, md)
}
