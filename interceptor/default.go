// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/stagger-go/stagger/policy"
)

// DefaultPolicy has the settings of [Default]. The zero value is ready to use.
type DefaultPolicy struct {
	// Idempotent has full names of methods that may run twice, in addition to those that their .proto declares idempotent
	// (idempotency_level): "/acme.orders.v1.OrderService/GetOrder", for which generated code has the constant
	// OrderService_GetOrder_FullMethodName. A method that isn't declared is retried only if the attempt never left the client.
	Idempotent []string

	// RetryPolicy has all other settings. A PerAttemptTimeout is the time after which another attempt is sent in parallel with a slow one, once
	// the method has had five responses: choose one that is longer than nearly all responses take. With OnAttemptTimeout "RETRY", another
	// attempt replaces the slow one, also in a method's first call: choose it for a command, a job or a function that makes a few calls and
	// ends. If the client also makes long polls, whose waits would spend the budget, give them a policy of their own: [policy.New].
	policy.RetryPolicy
}

// Default returns a Retrier with a policy for all methods, without a file. With a zero RetryPolicy, it makes 3 attempts, and retries after
// UNAVAILABLE, with backoffs of 0.1 s that double up to 1 s, with full jitter, and the default budget. Only calls that may run twice are
// retried: see [DefaultPolicy]. Calls need deadlines, as always in gRPC.
//
// Default makes its policies with [policy.New], so an error names the wrong setting by its key: methodConfig[0].retryPolicy.maxAttempts is
// MaxAttempts of p. Use [policy.New] for policies that differ by method, and [Watch] for a file that can change while the program runs.
func Default(p DefaultPolicy, options ...Option) (*Retrier, error) {
	for i, method := range p.Idempotent {
		if !isFullMethod(method) {
			return nil, fmt.Errorf("interceptor: DefaultPolicy.Idempotent[%d]: %q: must be the full name of a method, such as "+
				`"/acme.orders.v1.OrderService/GetOrder"`, i, method)
		}
	}
	all := policy.MethodConfig{Name: []string{"/"}, RetryPolicy: &p.RetryPolicy}
	config := policy.Config{MethodConfig: []policy.MethodConfig{all}}
	if len(p.Idempotent) > 0 { // naming a method declares it idempotent
		config.MethodConfig = append(config.MethodConfig, policy.MethodConfig{Name: p.Idempotent, RetryPolicy: &p.RetryPolicy})
	}
	set, err := policy.New(config)
	if err != nil {
		return nil, fmt.Errorf("interceptor: %w", err)
	}
	return New(set, options...)
}

// isFullMethod reports whether name is the path of a method, as gRPC and its generated code write it.
func isFullMethod(name string) bool {
	rest, rooted := strings.CutPrefix(name, "/")
	service, method, whole := strings.Cut(rest, "/")
	return rooted && utf8.ValidString(name) && whole && service != "" && method != "" && !strings.Contains(method, "/")
}
