// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
)

// Verdict is what an attempt's end means, in the eyes of a classifier.
type Verdict uint8

// The verdicts; [VerdictAs] makes more.
const (
	VerdictByCode Verdict = iota // what the status code says, to the policy
	VerdictRetry                 // another attempt may help, whatever the code
	VerdictFinal                 // no other attempt can help
	// VerdictNotProcessed is VerdictRetry of an attempt that the server has not worked on: calls of methods that aren't
	// declared safe are retried, too. Of a reply, or an error that came with headers, it means VerdictRetry.
	VerdictNotProcessed
	verdictAs
)

// VerdictAs is the verdict that an attempt's end counts as a failure with the code c, one that gRPC defines:
// the policy then decides as for that code. The caller gets the status as it is. OK and codes that gRPC
// does not define mean [VerdictByCode].
func VerdictAs(c codes.Code) Verdict {
	if c == codes.OK || c > codes.Unauthenticated {
		return VerdictByCode
	}
	return verdictAs + Verdict(c)
}

// WithClassifier lets classify say what an attempt's end means: an error that means something else than its code, or a
// reply that means "not yet" (err is nil; VerdictRetry or VerdictAs). If no attempt follows one that brought such a
// reply, the caller gets the reply. Safety, attempts, deadline and budget are asked after it as always. Without a retry
// policy for the method, it is not asked.
//
// It runs in the call, after every attempt that was not abandoned, and must be safe for concurrent
// use. It must not keep or change reply. reply is nil for streams, which it is asked about only when they end with an
// error, and for an error of an inner interceptor whose attempt gRPC has not ended.
func WithClassifier(classify func(ctx context.Context, method string, reply any, err error) Verdict) Option {
	return func(r *Retrier) error {
		if classify == nil {
			return errors.New("interceptor: WithClassifier(nil): must be a function")
		}
		r.classifier = classify
		return nil
	}
}

// code is the code that the verdict names, or OK.
func (v Verdict) code() codes.Code {
	if v < verdictAs {
		return codes.OK
	}
	return codes.Code(v - verdictAs)
}
