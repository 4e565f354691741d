// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/backoff"
	"github.com/stagger-go/stagger/internal/policyfile/codename"
	"github.com/stagger-go/stagger/internal/policyfile/document"
)

// Code has separate settings for some codes: an item of perCode in the file. It is one type, since each setting
// replaces the policy's own for these codes, and nothing else.
type Code struct {
	Codes       []codes.Code
	MaxAttempts int             // 1 to the policy's; 0: the policy's
	Backoff     *backoff.Config // nil: the policy's

	OnlyWithServerDelay bool // retried only if the server gives a delay
}

// checkCode checks the settings of some codes. seen has those of earlier settings.
func checkCode(report *document.Report, policy, prefix string, r Retry, c Code, seen map[codes.Code]bool) {
	checkCodes(report, prefix+"codes", c.Codes)
	extra := without(c.Codes, r.RetryableStatusCodes)
	if len(extra) > 0 && len(r.RetryableStatusCodes) > 0 && report.Whole(policy+"retryableStatusCodes") {
		report.Errorf(prefix+"codes", verbatim(codename.List(extra)), "must also be in retryableStatusCodes, or it is never retried")
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
}
