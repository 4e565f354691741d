// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/policyfile/document"
)

// Hedge configures hedging (gRFC A6).
type Hedge struct {
	MaxAttempts         int           // including the first; at least 2
	HedgingDelay        time.Duration // between one attempt and the next; 0: all together
	Quantile            float64       // of the method's recent latencies, once they are known: over 0, under 1; 0: HedgingDelay alone
	MinDelay            time.Duration // with Quantile; 0: 1 ms
	MaxDelay            time.Duration // with Quantile; 0: none
	NonFatalStatusCodes []codes.Code  // codes after which the other attempts continue, and the next one is sent immediately
	Budget              string        // as in a [Retry]
}

func checkHedge(report *document.Report, prefix string, h Hedge) {
	checkAttempts(report, prefix+"maxAttempts", h.MaxAttempts)
	if h.HedgingDelay < 0 {
		report.Errorf(prefix+"hedgingDelay", h.HedgingDelay, "must not be negative; 0s sends all attempts in parallel")
	}
	if h.Quantile != 0 || h.MinDelay != 0 || h.MaxDelay != 0 || report.Written(prefix+"hedgingQuantile") {
		checkQuantile(report, prefix+"hedgingQuantile.", h)
	}
}

func checkQuantile(report *document.Report, prefix string, h Hedge) {
	if !(h.Quantile > 0 && h.Quantile < 1) { // also true for NaN
		report.Errorf(prefix+"quantile", h.Quantile, "must be more than 0 and less than 1, such as 0.95")
	} else {
		checkDecimals(report, prefix+"quantile", h.Quantile, 4)
	}
	checkPositive(report, prefix+"min", h.MinDelay)
	checkPositive(report, prefix+"max", h.MaxDelay)
	if h.MaxDelay > 0 && h.MinDelay > h.MaxDelay {
		report.Errorf(prefix+"max", h.MaxDelay, "must be at least min, %s", document.FormatDuration(h.MinDelay))
	}
}
