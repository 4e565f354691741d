// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"errors"
)

// Verdict is a classifier's judgment of an attempt's result.
type Verdict uint8

// The verdicts.
const (
	VerdictByCode Verdict = iota // the policy decides by the status code
	VerdictRetry                 // another attempt may help, whatever the code
	VerdictFinal                 // no other attempt can help
)

// WithClassifier lets classify judge the results of attempts: errors whose code is misleading, or
// replies that mean "not yet" (err is nil; VerdictRetry). If such a reply is not
// retried, the caller gets the reply. Idempotency, maxAttempts, deadline and budget are checked afterwards, as always. Without
// a retry policy for the method, classify is not called.
//
// It runs in the call, after every attempt that was not abandoned, and must be safe for concurrent
// use. It must not keep or change reply. reply is nil for streams, for which classify is called only after
// errors, and for an error of an inner interceptor whose attempt gRPC has not ended.
func WithClassifier(classify func(ctx context.Context, method string, reply any, err error) Verdict) Option {
	return func(r *Retrier) error {
		if classify == nil {
			return errors.New("interceptor: WithClassifier(nil): must be a function")
		}
		r.classifier = classify
		return nil
	}
}
