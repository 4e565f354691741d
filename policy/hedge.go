// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/document"
	policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"
)

// HedgeSpec is what a policy says of hedging (gRFC A6).
type HedgeSpec struct {
	MaxAttempts    int           // the first included; at least 2
	Delay          time.Duration // between one attempt and the next; 0: all at once
	Quantile       *QuantileSpec // nil: Delay alone
	NonFatal       []codes.Code  // codes after which the other attempts go on, and the next is sent at once
	Budget         string        // as in a [RetrySpec]
	MaxPushback    time.Duration // as in a [RetrySpec]
	MinAttemptTime time.Duration // as in a [RetrySpec]

	MaxConnectionWait time.Duration // as in a [RetrySpec]
}

// QuantileSpec is a delay taken from the latencies that a method has lately had.
type QuantileSpec struct {
	Quantile float64       // more than 0, less than 1
	Min      time.Duration // 0: 1 ms
	Max      time.Duration // 0: none
}

func convertHedge(h *policyv1.HedgingPolicy) *HedgeSpec {
	spec := &HedgeSpec{
		MaxAttempts:    toInt(h.GetMaxAttempts()),
		Delay:          h.GetHedgingDelay().AsDuration(),
		NonFatal:       convertCodes(h.GetNonFatalStatusCodes()),
		Budget:         h.GetBudget(),
		MaxPushback:    h.GetMaxPushback().AsDuration(),
		MinAttemptTime: h.GetMinAttemptTime().AsDuration(),

		MaxConnectionWait: h.GetMaxConnectionWait().AsDuration(),
	}
	if q := h.GetHedgingQuantile(); q != nil {
		spec.Quantile = &QuantileSpec{Quantile: q.GetQuantile(), Min: q.GetMin().AsDuration(), Max: q.GetMax().AsDuration()}
	}
	return spec
}

func checkHedge(report *document.Report, prefix string, h HedgeSpec) {
	checkAttempts(report, prefix+"maxAttempts", h.MaxAttempts)
	if h.Delay < 0 {
		report.Errorf(prefix+"hedgingDelay", h.Delay, "must not be negative; 0s sends all attempts at once")
	}
	if len(h.NonFatal) > 0 {
		checkCodes(report, prefix+"nonFatalStatusCodes", h.NonFatal)
	}
	checkPositive(report, prefix+"maxPushback", h.MaxPushback)
	checkPositive(report, prefix+"minAttemptTime", h.MinAttemptTime)
	checkPositive(report, prefix+"maxConnectionWait", h.MaxConnectionWait)
	if h.Quantile != nil {
		checkQuantile(report, prefix+"hedgingQuantile.", *h.Quantile)
	}
}

func checkQuantile(report *document.Report, prefix string, q QuantileSpec) {
	switch {
	case !(q.Quantile > 0 && q.Quantile < 1): // NaN too
		report.Errorf(prefix+"quantile", q.Quantile, "must be more than 0 and less than 1, such as 0.95")
	default:
		checkNumber(report, prefix+"quantile", q.Quantile, 0, 1, 4)
	}
	checkPositive(report, prefix+"min", q.Min)
	checkPositive(report, prefix+"max", q.Max)
	if q.Max > 0 && q.Min > q.Max {
		report.Errorf(prefix+"max", q.Max, "must be at least min, %v", q.Min)
	}
}

// hedge notes what is lost of a hedging policy.
func (n *configNotes) hedge(path string, h *HedgeSpec) {
	n.add(path, "", "gRPC for Go does not hedge: one attempt")
	n.attempts(path, h.MaxAttempts)
	if h.Quantile != nil {
		n.add(path+".hedgingQuantile", "", "gRPC hedges after hedgingDelay, "+document.FormatDuration(h.Delay))
	}
	n.budget(path, h.Budget)
	n.pushback(path, h.MaxPushback, h.MinAttemptTime)
}
