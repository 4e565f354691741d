// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"

	"github.com/stagger-go/stagger/internal/document"
	policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"
)

// covers reports whether every ErrorInfo that fits other fits c.
func (c CodeSpec) covers(other CodeSpec) bool {
	return (c.ErrorDomain == "" || c.ErrorDomain == other.ErrorDomain) && (c.ErrorReason == "" || c.ErrorReason == other.ErrorReason)
}

// needsInfo reports whether c is only for statuses with an ErrorInfo.
func (c CodeSpec) needsInfo() bool { return c.ErrorDomain != "" || c.ErrorReason != "" }

// convertInfo converts the errorInfo of a list's item.
func convertInfo(report *document.Report, list string, i int, e *policyv1.ErrorInfo) (domain, reason string) {
	domain, reason = e.GetDomain(), e.GetReason()
	field := document.Item(list, i) + ".errorInfo"
	if e == nil || !report.Whole(field) {
		return domain, reason
	}
	const empty = "must be a string; omit it for any"
	switch {
	case domain == "" && report.Written(field+".domain"):
		report.Errorf(field+".domain", "", empty)
	case reason == "" && report.Written(field+".reason"):
		report.Errorf(field+".reason", "", empty)
	case domain == "" && reason == "":
		report.Errorf(field, nil, "must have a domain, a reason or both")
	}
	return domain, reason
}

// checkProcessed checks a code's setting for processing. If it is wrong, calls run twice, so it requires more than a code,
// which handlers also return.
func checkProcessed(report *document.Report, prefix string, c CodeSpec) {
	if c.NotProcessed && (c.ErrorDomain == "" || c.ErrorReason == "") {
		report.Errorf(prefix+"processed", verbatim("NO"), "needs errorInfo with domain and reason: handlers that have done work return the same codes; "+
			"add \"errorInfo: {domain: …, reason: …}\" as the server sends it")
	}
}

// checkProcessedNames refuses that setting in an entry with names that don't give a method.
func checkProcessedNames(report *document.Report, path string, r *RetrySpec, names ...string) {
	if r == nil || !slices.ContainsFunc(names, func(n string) bool { return !namesMethod(n) }) {
		return
	}
	for i, c := range r.PerCode {
		if c.NotProcessed {
			report.Errorf(document.Item(path+".perCode", i)+".processed", verbatim("NO"), "needs an entry whose names all give service and method, "+
				"since each handler must be known to return no such status; name the methods, or remove it")
		}
	}
}

// lintProcessed notes the cost if the policy is wrong about a server, and warns if the setting has no effect.
func lintProcessed(report *document.Report, path string, m MethodConfig, c Config) {
	safe := m.declaresSafe(c.Idempotency)
	for i, own := range m.Retry.PerCode {
		field := document.Item(path+".retryPolicy.perCode", i) + ".processed"
		switch {
		case !own.NotProcessed:
		case safe:
			report.Warnf(field, nil, forUndeclared)
		default:
			report.Warnf(field, nil, "calls run twice if a handler that has done work returns this status, as one does that passes on the error "+
				"of a service it calls (docs/idempotency.md); %s of %s must come only from what refuses calls before their handlers", own.ErrorReason, own.ErrorDomain)
		}
	}
}

// lintRefusedRetry warns if an entry ignores the trailer although it declares all its methods idempotent.
func lintRefusedRetry(report *document.Report, path string, m MethodConfig, c Config) {
	if denies(m.RefusedRetry) && m.declaresSafe(c.Idempotency) {
		report.Warnf(path+".refusedRetry", verbatim(deny), forUndeclared)
	}
}

// lintTransparentRetry warns if an entry denies transparent retries although it declares all its methods idempotent.
func lintTransparentRetry(report *document.Report, path string, m MethodConfig, c Config) {
	if denies(m.TransparentRetry) && m.declaresSafe(c.Idempotency) {
		report.Warnf(path+".transparentRetry", verbatim(deny), forUndeclared)
	}
}

const forUndeclared = "has no effect: it is for methods that are not declared idempotent, and the entry declares its methods idempotent; " +
	"if they are not, add \"idempotency: NONE\" to it"
