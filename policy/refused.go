// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"

	"github.com/stagger-go/stagger/internal/document"
	policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"
)

// ErrorInfo describes a google.rpc.ErrorInfo among the details of a status. What is "" fits any; the zero value fits
// statuses without one, too.
type ErrorInfo struct{ Domain, Reason string }

// covers reports whether e fits all that other fits.
func (e ErrorInfo) covers(other ErrorInfo) bool {
	return (e.Domain == "" || e.Domain == other.Domain) && (e.Reason == "" || e.Reason == other.Reason)
}

// convertInfo reads the errorInfo of a list's item.
func convertInfo(report *document.Report, list string, i int, e *policyv1.ErrorInfo) ErrorInfo {
	if e == nil {
		return ErrorInfo{}
	}
	info, field := ErrorInfo{Domain: e.GetDomain(), Reason: e.GetReason()}, document.Item(list, i)+".errorInfo"
	if !report.Whole(field) {
		return info
	}
	const empty = "must be a string; omit it for any"
	switch {
	case info.Domain == "" && report.Written(field+".domain"):
		report.Errorf(field+".domain", "", empty)
	case info.Reason == "" && report.Written(field+".reason"):
		report.Errorf(field+".reason", "", empty)
	case info == ErrorInfo{}:
		report.Errorf(field, nil, "must have a domain, a reason or both")
	}
	return info
}

// checkProcessed checks what the settings of some codes say of processing. A lie makes calls run twice, so it takes more
// than a code, which handlers return, too.
func checkProcessed(report *document.Report, prefix string, c CodeSpec) {
	if c.NotProcessed && (c.Info.Domain == "" || c.Info.Reason == "") {
		report.Errorf(prefix+"processed", verbatim("NO"), "needs errorInfo with domain and reason: handlers that have done work return the same codes; "+
			"add \"errorInfo: {domain: …, reason: …}\" as the server sends it")
	}
}

// checkProcessedNames refuses an entry that says of methods which it does not name that they have not been processed.
func checkProcessedNames(report *document.Report, path string, r *RetrySpec, names ...string) {
	if r == nil || !slices.ContainsFunc(names, func(n string) bool { return !namesMethod(n) }) {
		return
	}
	for i, c := range r.PerCode {
		if c.NotProcessed {
			report.Errorf(document.Item(path+".perCode", i)+".processed", verbatim("NO"), "needs an entry whose names all give service and method, "+
				"since each handler must be known to return no such status; name the methods, or take it out")
		}
	}
}

// lintProcessed says what it costs if the policy is wrong about a server, and where it has no effect.
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
				"of a service it calls (docs/idempotency.md); %s of %s must come only from what refuses calls before their handlers", own.Info.Reason, own.Info.Domain)
		}
	}
}

// lintRefusedRetry says if an entry has the trailer ignored for methods that it declares safe, all of them.
func lintRefusedRetry(report *document.Report, path string, m MethodConfig, c Config) {
	if denies(m.RefusedRetry) && m.declaresSafe(c.Idempotency) {
		report.Warnf(path+".refusedRetry", verbatim(deny), forUndeclared)
	}
}

// lintTransparentRetry says if an entry denies transparent retries to methods that it declares safe, all of them.
func lintTransparentRetry(report *document.Report, path string, m MethodConfig, c Config) {
	if denies(m.TransparentRetry) && m.declaresSafe(c.Idempotency) {
		report.Warnf(path+".transparentRetry", verbatim(deny), forUndeclared)
	}
}

const forUndeclared = "has no effect: it is for methods that are not declared idempotent, and the entry declares its methods idempotent; " +
	"if they are not, add \"idempotency: NONE\" to it"
