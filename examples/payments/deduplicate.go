// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package payments

import (
	"context"
	"crypto/sha256"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

const (
	keyHeader      = "idempotency-key"
	replayedHeader = "idempotent-replayed"
	longestKey     = 255 // bytes
)

// Deduplicate returns a server interceptor. It carries out each unary call once for its method and idempotency key, and
// returns the first response for all later ones. The package documentation lists the errors.
//
// Interceptors that can fail a call themselves belong before it: an error from inside counts as a call without effect.
func Deduplicate(answers *Answers) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		key, err := keyOf(ctx)
		if err != nil {
			return nil, err
		}
		if key == "" {
			return handle(ctx, req)
		}
		request, err := fingerprintOf(req)
		if err != nil {
			return nil, err
		}
		for {
			known, first, err := answers.begin(info.FullMethod+" "+key, request)
			if err != nil {
				return nil, err
			}
			if first {
				return answers.carryOut(ctx, known, req, handle)
			}
			if err := known.wait(ctx); err != nil {
				return nil, err
			}
			if !known.failed {
				_ = grpc.SetHeader(ctx, metadata.Pairs(replayedHeader, "true")) // an error here has no consequences
				return known.reply, known.failure
			}
		}
	}
}

var errUnknown = status.Error(codes.Aborted, "payments: the call with this idempotency key panicked: it may have taken effect")

// carryOut calls the handler, and passes its response to all callers that wait for it.
func (a *Answers) carryOut(ctx context.Context, given *answer, req any, handle grpc.UnaryHandler) (reply any, err error) {
	failure := errUnknown
	defer func() { a.end(given, reply, failure, err != nil) }()
	reply, err = handle(ctx, req)
	failure = nil
	return reply, err
}

// keyOf returns the idempotency key of an incoming call, or "" if it has none.
func keyOf(ctx context.Context) (string, error) {
	keys := metadata.ValueFromIncomingContext(ctx, keyHeader)
	switch {
	case len(keys) == 0:
		return "", nil
	case len(keys) > 1:
		return "", status.Errorf(codes.InvalidArgument, "payments: %d values of %s: want one", len(keys), keyHeader)
	case keys[0] == "", len(keys[0]) > longestKey:
		return "", status.Errorf(codes.InvalidArgument, "payments: %s of %d bytes: want 1 to %d", keyHeader, len(keys[0]), longestKey)
	default:
		return keys[0], nil
	}
}

// fingerprint distinguishes requests.
type fingerprint [sha256.Size]byte

func fingerprintOf(req any) (fingerprint, error) {
	m, ok := req.(proto.Message)
	if !ok {
		return fingerprint{}, status.Errorf(codes.Internal, "payments: a request of type %T: want a protobuf message", req)
	}
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return fingerprint{}, status.Errorf(codes.Internal, "payments: %v", err)
	}
	return sha256.Sum256(b), nil
}
