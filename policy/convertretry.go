// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/document"
	policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"
)

func convertRetry(report *document.Report, path string, r *policyv1.RetryPolicy) RetrySpec {
	c := RetrySpec{
		MaxAttempts: toInt(r.GetMaxAttempts()),
		Backoff: Backoff{
			Initial:    r.GetInitialBackoff().AsDuration(),
			Max:        r.GetMaxBackoff().AsDuration(),
			Multiplier: r.GetBackoffMultiplier(),
			Growth:     enum[Growth](r.GetGrowth()),
			Jitter:     enum[Jitter](r.GetJitter()),
		},
		Codes:               convertCodes(r.GetRetryableStatusCodes()),
		PerAttemptTimeout:   r.GetPerAttemptTimeout().AsDuration(),
		OnAttemptTimeout:    enum[OnTimeout](r.GetOnAttemptTimeout()),
		Budget:              r.GetBudget(),
		CommitOn:            enum[CommitOn](r.GetCommitOn()),
		MaxPushback:         r.GetMaxPushback().AsDuration(),
		MinAttemptTime:      r.GetMinAttemptTime().AsDuration(),
		Chain:               enum[Chain](r.GetChain()),
		WaitForReadyOnRetry: r.GetWaitForReadyOnRetry(),
	}
	for _, o := range r.GetCodeOverrides() {
		c.Overrides = append(c.Overrides, CodeOverride{
			Codes: convertCodes(o.GetCodes()), Contains: o.GetMessageContains(), As: codes.Code(o.GetAs()), //nolint:gosec // not negative
		})
	}
	for i, own := range r.GetPerCode() {
		c.PerCode = append(c.PerCode, convertCode(report, path, document.Item(path+".perCode", i), own, c.Backoff))
	}
	return c
}

// convertCode takes from the policy's backoff what the codes' own settings leave out.
func convertCode(report *document.Report, policy, path string, c *policyv1.CodePolicy, b Backoff) CodeSpec {
	spec := CodeSpec{Codes: convertCodes(c.GetCodes()), MaxAttempts: toInt(c.GetMaxAttempts()), CostFactor: c.GetCostFactor()}
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
	if c.GetGrowth() != policyv1.Growth_GROWTH_UNSPECIFIED {
		own.Growth = enum[Growth](c.GetGrowth())
	}
	if c.GetJitter() != policyv1.Jitter_JITTER_UNSPECIFIED {
		own.Jitter = enum[Jitter](c.GetJitter())
	}
	for _, key := range backoffKeys {
		if field := path + "." + key; !report.Written(field) {
			report.Inherit(field, policy+"."+key)
			absent++
		}
	}
	if own != b || absent < len(backoffKeys) {
		spec.Backoff = &own
	}
	return spec
}

var backoffKeys = []string{"initialBackoff", "maxBackoff", "backoffMultiplier"}
