// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stagger-go/stagger/policy"
)

// DefaultPolicy has the settings of [Default]. The zero value is ready to use.
type DefaultPolicy struct {
	// Idempotent has full names of methods that may run twice, in addition to those that their .proto declares idempotent
	// (idempotency_level): "/acme.orders.v1.OrderService/GetOrder", for which generated code has the constant
	// OrderService_GetOrder_FullMethodName. A method that isn't declared is retried only if the attempt never left the client.
	Idempotent []string

	// PerAttemptTimeout is how long an attempt may take before another one is sent in parallel. The first good response counts. Choose a
	// time that is longer than nearly all responses take. 0 means no limit: an attempt may take all of the call's time. If the client also
	// makes long polls, whose waits would spend the budget, write a policy file, in which they have no such timeout.
	PerAttemptTimeout time.Duration

	// OnAttemptTimeout is what happens after PerAttemptTimeout, as onAttemptTimeout in a policy file. "" or "HEDGE" sends another attempt
	// in parallel, once the method has had five responses. "RETRY" cancels the slow attempt and sends another one, also for a method's
	// first call. Choose "RETRY" for a command, a job or a function that makes a few calls and ends.
	OnAttemptTimeout string
}

// Default returns a Retrier with a policy for all methods, without a file: 3 attempts, retries after UNAVAILABLE, backoffs of 0.1 s that
// double up to 1 s, with full jitter, and the default budget. Only calls that may run twice are retried: see [DefaultPolicy]. Calls need
// deadlines, as always in gRPC. The error names the wrong field of p, or the wrong option.
//
// Messages about its policy name the keys of a policy file, and places in the text that Default writes, "interceptor.Default". For other
// settings, write a policy file: [Watch] follows one, and [Retrier.Reload] gives its policies to this Retrier.
func Default(p DefaultPolicy, options ...Option) (*Retrier, error) {
	if p.PerAttemptTimeout < 0 {
		return nil, fmt.Errorf("interceptor: DefaultPolicy.PerAttemptTimeout: %v: must be positive, or 0 for no limit", p.PerAttemptTimeout)
	}
	switch {
	case p.OnAttemptTimeout != "" && p.OnAttemptTimeout != "HEDGE" && p.OnAttemptTimeout != "RETRY":
		return nil, fmt.Errorf(`interceptor: DefaultPolicy.OnAttemptTimeout: %q: must be "HEDGE" or "RETRY"`, p.OnAttemptTimeout)
	case p.OnAttemptTimeout != "" && p.PerAttemptTimeout == 0:
		return nil, fmt.Errorf("interceptor: DefaultPolicy.OnAttemptTimeout: %q: has no effect without PerAttemptTimeout: set that, or leave this out",
			p.OnAttemptTimeout)
	}
	seen := map[string]int{}
	for i, method := range p.Idempotent {
		if !isFullMethod(method) {
			return nil, fmt.Errorf("interceptor: DefaultPolicy.Idempotent[%d]: %q: must be the full name of a method, such as "+
				`"/acme.orders.v1.OrderService/GetOrder"`, i, method)
		}
		if first, twice := seen[method]; twice {
			return nil, fmt.Errorf("interceptor: DefaultPolicy.Idempotent[%d]: %q: is there twice, first at %d", i, method, first)
		}
		seen[method] = i
	}
	file, err := p.file()
	if err != nil {
		return nil, fmt.Errorf("interceptor: %w", err)
	}
	set, err := policy.Parse(defaultSource, file)
	if err != nil {
		return nil, fmt.Errorf("interceptor: %w", err)
	}
	return New(set, options...)
}

// defaultSource is the name of the text that Default writes.
const defaultSource = "interceptor.Default"

// isFullMethod reports whether name is the path of a method, as gRPC and its generated code write it.
func isFullMethod(name string) bool {
	rest, rooted := strings.CutPrefix(name, "/")
	service, method, whole := strings.Cut(rest, "/")
	return rooted && utf8.ValidString(name) && whole && service != "" && method != "" && !strings.Contains(method, "/")
}

// file returns the policy as a policy file in JSON.
func (p DefaultPolicy) file() ([]byte, error) {
	type object map[string]any
	retry := object{
		"maxAttempts":          3,
		"initialBackoff":       "0.1s",
		"maxBackoff":           "1s",
		"backoffMultiplier":    2,
		"retryableStatusCodes": []string{"UNAVAILABLE"},
	}
	if p.PerAttemptTimeout > 0 {
		retry["perAttemptTimeout"] = fmt.Sprintf("%d.%09ds", p.PerAttemptTimeout/time.Second, p.PerAttemptTimeout%time.Second)
	}
	if p.OnAttemptTimeout != "" {
		retry["onAttemptTimeout"] = p.OnAttemptTimeout
	}
	entries := []object{{"name": []object{{}}, "retryPolicy": retry}}
	names := make([]object, 0, len(p.Idempotent))
	for _, method := range p.Idempotent { // naming a method declares it idempotent
		service, name, _ := strings.Cut(method[1:], "/")
		names = append(names, object{"service": service, "method": name})
	}
	if len(names) > 0 {
		entries = append(entries, object{"name": names, "retryPolicy": retry})
	}
	return json.Marshal(object{"methodConfig": entries})
}
