// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"

	"github.com/stagger-go/stagger/internal/document"
	policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"
)

// TransparentRetry says whether gRPC may send a call of a method that nobody declared safe once more by itself,
// after a server has said that it did not process the stream. The zero value leaves it to the [Config], and there
// means [TransparentRetryAllow].
type TransparentRetry uint8

// What a policy can say of transparent retries.
const (
	TransparentRetryAllow TransparentRetry = iota + 1 // gRPC trusts the server
	TransparentRetryDeny                              // what may have been sent is not sent again
)

// String spells the rule as a policy file does.
func (t TransparentRetry) String() string {
	return spelling(policyv1.TransparentRetry(cmp.Or(t, TransparentRetryAllow)))
}

// DeniesTransparentRetry reports whether gRPC may not send a call of a method ("/service/method") once more by
// itself: the policy, of this set or not, says so, or the set where the policy says nothing; and neither policy nor
// descriptor declares the method safe to repeat. A nil policy says nothing.
func (s *Set) DeniesTransparentRetry(p *Policy, method string) bool {
	if p == nil {
		p = &Policy{}
	}
	return cmp.Or(p.spec.TransparentRetry, s.transparent) == TransparentRetryDeny && p.spec.IdempotencyKey == "" && !s.Safe(p, method)
}

// lintTransparentRetry says if an entry denies transparent retries to methods that it declares safe, all of them.
func lintTransparentRetry(report *document.Report, path string, m MethodConfig, c Config) {
	if m.TransparentRetry == TransparentRetryDeny && m.declaresSafe(c.Idempotency) {
		report.Warnf(path+".transparentRetry", m.TransparentRetry, forUndeclared)
	}
}

const forUndeclared = "has no effect: it is for methods that nobody declares safe to repeat, and the entry declares its methods safe; " +
	"if they are not, add \"idempotency: NONE\" to it"
