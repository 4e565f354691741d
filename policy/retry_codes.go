// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/balance"
	"github.com/stagger-go/stagger/internal/codename"
	"github.com/stagger-go/stagger/internal/document"
	policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"
)

// CodeSpec has separate settings for some codes. The first match of a list wins.
type CodeSpec struct {
	Codes       []codes.Code
	ErrorDomain string   // only if the status has a google.rpc.ErrorInfo of this domain; "": of any, or none
	ErrorReason string   // only if the status has a google.rpc.ErrorInfo with this reason; "": with any, or none
	MaxAttempts int      // 1 to the policy's; 0: the policy's
	Backoff     *Backoff // nil: the policy's
	CostFactor  float64  // times the budget's cost of an extra attempt, 0.01 to 100; 0: 1

	NotProcessed        bool // the server has not worked on the attempt; needs ErrorDomain and ErrorReason
	OnlyWithServerDelay bool // retried only if the server gives a delay

	As       codes.Code // in RetrySpec.Overrides: the failures count as this code
	Contains string     // in RetrySpec.Overrides: only if the status message contains it; "": any message
}

func convertOverride(report *document.Report, list string, i int, o *policyv1.CodeOverride) CodeSpec {
	spec := CodeSpec{Codes: convertCodes(o.GetCodes()), Contains: o.GetMessageContains(), As: codes.Code(o.GetAs())}
	spec.ErrorDomain, spec.ErrorReason = convertInfo(report, list, i, o.GetErrorInfo())
	return spec
}

// convertCode converts a code's settings, with missing backoff settings from the policy's backoff.
func convertCode(report *document.Report, policy string, i int, c *policyv1.CodePolicy, growth policyv1.Growth, b Backoff) CodeSpec {
	path := document.Item(policy+".perCode", i)
	spec := CodeSpec{
		Codes: convertCodes(c.GetCodes()), MaxAttempts: toInt(c.GetMaxAttempts()), CostFactor: c.GetCostFactor(),
		NotProcessed: c.GetProcessed() == policyv1.Processed_PROCESSED_NO, OnlyWithServerDelay: c.GetOnlyWithServerDelay(),
	}
	spec.ErrorDomain, spec.ErrorReason = convertInfo(report, policy+".perCode", i, c.GetErrorInfo())
	own, absent := b, 0
	if c.GetInitialBackoff() != nil {
		own.Initial = c.GetInitialBackoff().AsDuration()
	}
	if c.GetMaxBackoff() != nil {
		own.Max = c.GetMaxBackoff().AsDuration()
	}
	if c.BackoffMultiplier != nil {
		own.Multiplier = c.GetBackoffMultiplier()
	}
	growth = cmp.Or(c.GetGrowth(), growth)
	own.Linear = growth == policyv1.Growth_GROWTH_LINEAR
	if c.GetJitter() != policyv1.Jitter_JITTER_UNSPECIFIED {
		own.Jitter = word[Jitter](c.GetJitter())
	}
	for _, key := range backoffKeys {
		if field := path + "." + key; !report.Written(field) {
			report.Inherit(field, policy+"."+key)
			absent++
		}
	}
	reportFixed(report, path+".", growth, own.Multiplier)
	if own != b || absent < len(backoffKeys) {
		spec.Backoff = &own
	}
	return spec
}

var backoffKeys = []string{"initialBackoff", "maxBackoff", "backoffMultiplier"}

// checkCode checks the settings with the index i.
func checkCode(report *document.Report, policy, prefix string, r RetrySpec, i int) {
	c := r.PerCode[i]
	checkCodes(report, prefix+"codes", c.Codes)
	if extra := without(c.Codes, r.Codes); len(extra) > 0 && len(r.Codes) > 0 && report.Whole(policy+"retryableStatusCodes") {
		report.Errorf(prefix+"codes", verbatim(codename.List(extra)), "must stand in retryableStatusCodes too, else it is never retried")
	}
	for j, before := range r.PerCode[:i] {
		twice := common(c.Codes, before.Codes)
		switch {
		case len(twice) == 0, !report.Whole(prefix + "errorInfo"), !report.Whole(fmt.Sprintf("%sperCode[%d].errorInfo", policy, j)):
		case before.ErrorDomain == c.ErrorDomain && before.ErrorReason == c.ErrorReason:
			report.Errorf(prefix+"codes", verbatim(codename.List(twice)), "is in another perCode entry as well; only one may have it")
		case before.covers(c):
			report.Errorf(prefix+"codes", verbatim(codename.List(twice)), "is taken by perCode[%d] already, which fits all of these; put that one behind this one", j)
		}
	}
	checkProcessed(report, prefix, c)
	if c.As != 0 || c.Contains != "" {
		report.Errorf(strings.TrimSuffix(prefix, "."), nil, "must not have as and messageContains; they stand in codeOverrides")
	}
	if n := c.MaxAttempts; n < 0 || n == 0 && report.Written(prefix+"maxAttempts") || n > r.MaxAttempts && r.MaxAttempts >= 2 {
		report.Errorf(prefix+"maxAttempts", n, "must be 1 to the policy's maxAttempts, %d", max(r.MaxAttempts, 2))
	}
	if c.Backoff != nil {
		checkBackoff(report, prefix, *c.Backoff)
	}
	if c.CostFactor != 0 || report.Written(prefix+"costFactor") {
		checkNumber(report, prefix+"costFactor", c.CostFactor, 0.01, balance.MaxFactor, 2)
	}
}

func checkOverride(report *document.Report, prefix string, o CodeSpec) {
	checkCodes(report, prefix+"codes", o.Codes)
	if o.MaxAttempts != 0 || o.Backoff != nil || o.CostFactor != 0 || o.NotProcessed || o.OnlyWithServerDelay {
		report.Errorf(strings.TrimSuffix(prefix, "."), nil, "must have only codes, messageContains, errorInfo and as; other settings stand in perCode")
	}
	switch {
	case o.As == 0 && report.Whole(prefix+"as"):
		report.Errorf(prefix+"as", nil, "must be the code that the failure counts as, such as UNAVAILABLE")
	case o.As > maxCode:
		report.Errorf(prefix+"as", uint32(o.As), "must be a code that gRPC defines (1 to %d)", maxCode)
	}
}
