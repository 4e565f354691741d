// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"

func convertHedge(h *policyv1.HedgingPolicy) *HedgeSpec {
	spec := &HedgeSpec{
		MaxAttempts:    toInt(h.GetMaxAttempts()),
		Delay:          h.GetHedgingDelay().AsDuration(),
		NonFatal:       convertCodes(h.GetNonFatalStatusCodes()),
		Budget:         h.GetBudget(),
		MaxPushback:    h.GetMaxPushback().AsDuration(),
		MinAttemptTime: h.GetMinAttemptTime().AsDuration(),
	}
	if q := h.GetHedgingQuantile(); q != nil {
		spec.Quantile = &QuantileSpec{Quantile: q.GetQuantile(), Min: q.GetMin().AsDuration(), Max: q.GetMax().AsDuration()}
	}
	return spec
}

func checkHedge(ps *problems, path string, h HedgeSpec) {
	checkAttempts(ps, path+"maxAttempts", h.MaxAttempts)
	if h.Delay < 0 {
		ps.add(path+"hedgingDelay", h.Delay, "must not be negative; 0s sends all attempts at once")
	}
	if h.NonFatal != 0 {
		checkCodes(ps, path+"nonFatalStatusCodes", h.NonFatal)
	}
	checkPositive(ps, path+"maxPushback", h.MaxPushback)
	checkPositive(ps, path+"minAttemptTime", h.MinAttemptTime)
	if h.Quantile != nil {
		checkQuantile(ps, path+"hedgingQuantile.", *h.Quantile)
	}
}

func checkQuantile(ps *problems, path string, q QuantileSpec) {
	switch {
	case !(q.Quantile > 0 && q.Quantile < 1): // NaN too
		ps.add(path+"quantile", q.Quantile, "must be more than 0 and less than 1, such as 0.95")
	default:
		checkNumber(ps, path+"quantile", q.Quantile, 0, 1, 4)
	}
	checkPositive(ps, path+"min", q.Min)
	checkPositive(ps, path+"max", q.Max)
	if q.Max > 0 && q.Min > q.Max {
		ps.add(path+"max", q.Max, "must be at least min, %v", q.Min)
	}
}

// hedging is what deciding asks of a hedging policy: the same as of retries, without a backoff.
func (h *HedgeSpec) hedging() RetrySpec {
	return RetrySpec{
		MaxAttempts: h.MaxAttempts, Codes: h.NonFatal, Budget: h.Budget,
		MaxPushback: h.MaxPushback, MinAttemptTime: h.MinAttemptTime,
	}
}
