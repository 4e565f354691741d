// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"errors"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/balance"
	"github.com/stagger-go/stagger/internal/codename"
	"github.com/stagger-go/stagger/internal/defaults"
	"github.com/stagger-go/stagger/internal/document"
	"github.com/stagger-go/stagger/internal/inside"
	"github.com/stagger-go/stagger/internal/lookup"
	policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"
)

// Lint parses a policy file like [Parse], and returns all diagnostics, in the order of the file: the errors for which Parse
// refuses it or, if there are none, the warnings of [Set.Warnings], the names of the methods that aren't declared idempotent,
// and advice from experience. Descriptors are those of the generated code in the program. The command "stagger lint" accepts
// others, and has more options.
func Lint(file string, data []byte) []Diagnostic { return lint(file, data, inside.LintOptions{}) }

func lint(file string, data []byte, o inside.LintOptions) []Diagnostic {
	report := document.NewReport(file)
	f := read(report, data, nil)
	if f == nil {
		return diagnosed(report.Errors())
	}
	warnSpelling(report, f)
	config := convert(report, f)
	lintElsewhere(report, config)
	for i, m := range config.Methods {
		path := document.Item("methodConfig", i)
		lintNames(report, path, m.Names)
		lintCodes(report, path, f.GetMethodConfig()[i])
		lintMethod(report, path, m)
		if m.Retry != nil {
			lintFirstRetry(report, path+".retryPolicy", *m.Retry, config)
			lintProcessed(report, path, m, config)
		}
		lintTransparentRetry(report, path, m, config)
		lintRefusedRetry(report, path, m, config)
		lintReserve(report, path, m, config)
	}
	set, err := newSet(config, report)
	if err == nil {
		set.descriptors.only = o.OnlyDescriptors
		set, err = set.WithDescriptors(o.Descriptors...)
	}
	if wrong, ok := errors.AsType[*Error](err); ok {
		return wrong.Diagnostics
	}
	list := slices.Concat(set.warnings, set.listUndeclared(), firstRetryAdvice(report, config), lintFleets(report, config),
		set.notHedged(report, config))
	if o.OtherClients {
		list = append(list, set.elsewhere(report)...)
	}
	list = withoutIgnored(report, f, list)
	return inOrder(list)
}

// withoutIgnored removes the advice that entries ignore, and warns of ignored names that match no advice.
func withoutIgnored(report *document.Report, f *policyv1.PolicyFile, list []Diagnostic) []Diagnostic {
	for i, m := range f.GetMethodConfig() {
		path := document.Item("methodConfig", i)
		for j, ignored := range m.GetIgnoreAdvice() {
			before := len(list)
			list = slices.DeleteFunc(list, func(d Diagnostic) bool { return d.Field == path+"."+ignored.GetOn() })
			if len(list) == before {
				list = append(list, locate(report, Diagnostic{
					Severity: SeverityWarning, Field: document.Item(path+".ignoreAdvice", j) + ".on", Value: ignored.GetOn(),
					Message: "there is no advice on this key of the entry; remove it",
				}))
			}
		}
	}
	return list
}

// Recommended limits, from the experience of the AWS SDKs, Google's SRE book, and gRFC A6.
const (
	saneAttempts = defaults.MaxAttempts
	saneBackoff  = time.Minute
	timerLimit   = time.Millisecond // the resolution of common systems' timers
)

// permanent codes mean that the same call would fail again.
var permanent = []codes.Code{
	codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.PermissionDenied,
	codes.FailedPrecondition, codes.OutOfRange, codes.Unimplemented, codes.Unauthenticated, codes.DataLoss,
}

// versionOfPackage matches names that end like package names.
var versionOfPackage = regexp.MustCompile(`^(.*\.)?v[0-9]+((alpha|beta)[0-9]*)?$`)

// lintNames warns of names that match nothing: packages, and patterns of other forms than "package.*".
func lintNames(report *document.Report, path string, names []string) {
	for i, n := range names {
		field := document.Item(path+".name", i)
		service, method := lookup.Split(n)
		const remedy = "matches nothing: the only pattern is a package, such as {service: acme.orders.v1.*}; a service without a method stands for all its " +
			"methods, and {} for everything"
		switch {
		case strings.Contains(service, "*") && lookup.Package(n) == "":
			report.Warnf(field+".service", service, remedy)
		case versionOfPackage.MatchString(service):
			report.Warnf(field+".service", service, "is the name of a package, and matches nothing: "+
				"write %s.* for all its services, or the full name of one", service)
		}
		if strings.Contains(method, "*") {
			report.Warnf(field+".method", method, remedy)
		}
	}
}

// lintCodes warns of codes that a list has twice: by name, by number, or in lower case.
func lintCodes(report *document.Report, path string, m *policyv1.MethodConfig) {
	repeated := func(field string, list []policyv1.StatusCode) {
		for i, c := range list {
			if slices.Index(list, c) < i {
				report.Warnf(document.Item(field, i), codename.Of(codes.Code(c)), "is listed twice; remove it")
			}
		}
	}
	repeated(path+".retryPolicy.retryableStatusCodes", m.GetRetryPolicy().GetRetryableStatusCodes())
	repeated(path+".hedgingPolicy.nonFatalStatusCodes", m.GetHedgingPolicy().GetNonFatalStatusCodes())
	for i, own := range m.GetRetryPolicy().GetPerCode() {
		repeated(document.Item(path+".retryPolicy.perCode", i)+".codes", own.GetCodes())
	}
	for i, own := range m.GetRetryPolicy().GetCodeOverrides() {
		repeated(document.Item(path+".retryPolicy.codeOverrides", i)+".codes", own.GetCodes())
	}
}

// lintReserve warns if a client with occasional calls can never pay for an attempt after a timeout.
func lintReserve(report *document.Report, path string, m MethodConfig, c Config) {
	if m.Retry == nil || m.Retry.Budget == NoBudget {
		return
	}
	for _, own := range c.Budgets {
		ratio, ok := own.Config.(budget.RatioConfig)
		if own.Name != m.Retry.Budget || !ok {
			continue
		}
		if ratio.Fleet != "" {
			lintPool(report, path, *m.Retry, own)
			continue
		}
		if m.Retry.PerAttemptTimeout <= 0 {
			continue
		}
		b, err := balance.New(inside.Config(ratio), nil)
		if err != nil {
			return // which is an error in the file
		}
		factor := m.Retry.timeoutFactor()
		b.Start(0)
		if _, granted := b.Withdraw(0, balance.Charge{Kind: balance.KindTimeout, Factor: factor}); !granted {
			report.Warnf(path+".retryPolicy.perAttemptTimeout", m.Retry.PerAttemptTimeout,
				"a client that makes few calls never sends another attempt after it: that costs %v, and budget %s has %v for such a client; "+
					"raise minPerSecond or window, or lower timeoutCost", ratio.TimeoutCost*factor, own.Name, b.Balance(0))
		}
	}
}

func lintMethod(report *document.Report, path string, m MethodConfig) {
	lintAdmission(report, path, m)
	switch {
	case m.Retry != nil:
		lintRetry(report, path+".retryPolicy", m)
	case m.Hedge != nil:
		lintHedge(report, path+".hedgingPolicy", *m.Hedge)
	}
}

// lintAdmission warns of admission that can't work as intended.
func lintAdmission(report *document.Report, path string, m MethodConfig) {
	switch refuses := m.refuses(); {
	case !refuses && !m.SendCriticality && m.Criticality != "":
		report.Warnf(path+".criticality", m.Criticality, "has no effect without admission REFUSE or AUTO, or sendCriticality")
	case refuses && m.Timeout == 0:
		report.Warnf(path+".admission", m.Admission, "calls without a deadline are never refused; set a timeout")
	}
}

func lintRetry(report *document.Report, path string, m MethodConfig) {
	r := *m.Retry
	if r.MaxAttempts > saneAttempts {
		report.Warnf(path+".maxAttempts", r.MaxAttempts, "3 to 5 are enough: five failures are not a short fault")
	}
	lintBackoff(report, path, r.Backoff)
	if bad := common(r.Codes, permanent); len(bad) > 0 {
		report.Warnf(path+".retryableStatusCodes", nil, "%s: the same call will most likely fail again; "+
			"if it means something else here, let it count as another code, with codeOverrides", codename.List(bad))
	}
	if r.Budget == NoBudget {
		report.Warnf(path+".budget", r.Budget, "nothing bounds what all calls together add in an outage, but maxAttempts: up to %d times the load",
			r.MaxAttempts)
	}
	lintTime(report, path, m, r)
	if r.PerAttemptTimeout > 0 && m.Timeout > 0 && r.PerAttemptTimeout >= m.Timeout {
		report.Warnf(path+".perAttemptTimeout", r.PerAttemptTimeout, "timeout ends the call after %v already", m.Timeout)
	}
}

// lintTime warns if the last attempt may not start before the call's timeout.
func lintTime(report *document.Report, path string, m MethodConfig, r RetrySpec) {
	longest := r.longestWait()
	slow := float64(r.MaxAttempts-1) * float64(r.PerAttemptTimeout) // may be more than a Duration holds
	switch {
	case m.Timeout == 0:
	case longest >= m.Timeout:
		report.Warnf(path+".maxAttempts", r.MaxAttempts, "the waits before attempt %d may add up to %v, but timeout ends the call after %v",
			r.MaxAttempts, longest, m.Timeout)
	case r.PerAttemptTimeout < m.Timeout && float64(longest)+slow >= float64(m.Timeout):
		report.Warnf(path+".maxAttempts", r.MaxAttempts, "if attempts are slow, the waits and %d times perAttemptTimeout do not fit: timeout ends the call after %v",
			r.MaxAttempts-1, m.Timeout)
	}
}

func lintBackoff(report *document.Report, path string, b Backoff) {
	if b.Max > saneBackoff {
		report.Warnf(path+".maxBackoff", b.Max, "30s to 60s are enough: a call that waits longer is seldom waited for")
	}
	if b.Jitter == JitterNone {
		report.Warnf(path+".jitter", nil, "without jitter, clients that failed together come back together; FULL spreads them best")
	}
	if b.Initial < timerLimit {
		report.Warnf(path+".initialBackoff", b.Initial, "is less than timers resolve (%v): retries follow at once", timerLimit)
	}
	if b.Multiplier < 1 {
		report.Warnf(path+".backoffMultiplier", b.Multiplier, "makes each wait shorter than the last; 2 doubles it, 1 keeps it")
	}
	if b.Initial > b.Max {
		report.Warnf(path+".initialBackoff", b.Initial, "is cut to maxBackoff, %v", b.Max)
	}
}

func lintHedge(report *document.Report, path string, h HedgeSpec) {
	if h.MaxAttempts > saneAttempts {
		report.Warnf(path+".maxAttempts", h.MaxAttempts, "2 or 3 are enough: more hedges help few calls more")
	}
	if h.Delay == 0 && h.Quantile == 0 {
		report.Warnf(path, nil, "without hedgingDelay all attempts are sent at once: %d times the load, as far as the budget goes", h.MaxAttempts)
	}
	if h.Budget == NoBudget {
		report.Warnf(path+".budget", h.Budget, "nothing bounds the hedges of a service that has become slow: up to %d times the load", h.MaxAttempts)
	}
}

// longestWait returns the maximum sum of a call's backoffs.
func (r RetrySpec) longestWait() time.Duration {
	var sum, previous time.Duration
	retries := r.MaxAttempts - 1
	if r.FirstRetryAtOnce {
		sum, retries = time.Millisecond, retries-1
	}
	for retry := range min(retries, saneAttempts*20) {
		previous = r.Backoff.Delay(retry, previous, almostOne)
		if sum += previous; sum < 0 {
			return math.MaxInt64
		}
	}
	return sum.Round(time.Millisecond)
}

// timeoutFactor returns the cost of an attempt after a timeout, as a multiple of the usual cost.
func (r RetrySpec) timeoutFactor() float64 {
	code := codes.DeadlineExceeded
	for _, o := range r.Overrides {
		if slices.Contains(o.Codes, code) && o.Contains == "" && !o.needsInfo() {
			code = o.As
			break
		}
	}
	for _, own := range r.PerCode {
		if slices.Contains(own.Codes, code) && !own.needsInfo() {
			return cmp.Or(own.CostFactor, 1)
		}
	}
	return 1
}

// almostOne is the largest random number.
const almostOne = 1 - 1.0/(1<<53)
