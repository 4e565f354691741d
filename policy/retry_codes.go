// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/balance"
	"github.com/stagger-go/stagger/internal/codename"
	"github.com/stagger-go/stagger/internal/document"
	policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"
)

// CodeSpec has separate settings for some codes.
type CodeSpec struct {
	Codes       []codes.Code
	MaxAttempts int      // 1 to the policy's; 0: the policy's
	Backoff     *Backoff // nil: the policy's
	CostFactor  float64  // times the budget's cost of an extra attempt, 0.01 to 100; 0: 1

	OnlyWithServerDelay bool // retried only if the server gives a delay
}

// convertCode converts a code's settings, with missing backoff settings from the policy's backoff.
func convertCode(report *document.Report, policy string, i int, c *policyv1.CodePolicy, growth policyv1.Growth, b Backoff) CodeSpec {
	path := document.Item(policy+".perCode", i)
	spec := CodeSpec{
		Codes: convertCodes(c.GetCodes()), MaxAttempts: toInt(c.GetMaxAttempts()), CostFactor: c.GetCostFactor(),
		OnlyWithServerDelay: c.GetOnlyWithServerDelay(),
	}
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

// checkCode checks the settings of some codes. seen has those of earlier settings.
func checkCode(report *document.Report, policy, prefix string, r RetrySpec, c CodeSpec, seen map[codes.Code]bool) {
	checkCodes(report, prefix+"codes", c.Codes)
	if extra := without(c.Codes, r.Codes); len(extra) > 0 && len(r.Codes) > 0 && report.Whole(policy+"retryableStatusCodes") {
		report.Errorf(prefix+"codes", verbatim(codename.List(extra)), "must stand in retryableStatusCodes too, else it is never retried")
	}
	var twice []codes.Code
	for _, code := range sorted(c.Codes) {
		if seen[code] {
			twice = append(twice, code)
		}
		seen[code] = true
	}
	if len(twice) > 0 {
		report.Errorf(prefix+"codes", verbatim(codename.List(twice)), "is in another perCode entry as well; only one may have it")
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
