// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"math"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/document"
	policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"
)

// convert turns what a file says into a config, and fills in what it leaves out.
func convert(report *document.Report, f *policyv1.PolicyFile) Config {
	c := Config{Idempotency: enum[Idempotency](f.GetIdempotency()), MaxWaiting: toInt(f.GetMaxWaiting())}
	for i, m := range f.GetMethodConfig() {
		c.Methods = append(c.Methods, convertMethod(report, document.Item("methodConfig", i), m))
	}
	for _, b := range f.GetBudgets() {
		c.Budgets = append(c.Budgets, convertBudget(b))
	}
	if t := f.GetRetryThrottling(); t != nil {
		c.Throttling = new(convertThrottle(t))
	}
	c.channel = channelOf(f)
	return c
}

func convertMethod(report *document.Report, path string, m *policyv1.MethodConfig) MethodConfig {
	c := MethodConfig{Spec: Spec{
		Timeout:          m.GetTimeout().AsDuration(),
		WaitForReady:     m.WaitForReady,
		MaxRequestBytes:  convertBytes(m.MaxRequestMessageBytes),
		MaxResponseBytes: convertBytes(m.MaxResponseMessageBytes),
		Idempotency:      enum[Idempotency](m.GetIdempotency()),
	}}
	for _, n := range m.GetName() {
		c.Names = append(c.Names, Name{Service: n.GetService(), Method: n.GetMethod()})
	}
	if k := m.GetIdempotencyKey(); k != nil {
		c.IdempotencyKey = k.GetHeader()
		if !report.Written(path + ".idempotencyKey.header") {
			c.IdempotencyKey = DefaultIdempotencyHeader
		}
	}
	if r := m.GetRetryPolicy(); r != nil {
		retry := convertRetry(report, path+".retryPolicy", r)
		c.Retry = &retry
	}
	if h := m.GetHedgingPolicy(); h != nil {
		c.Hedge = convertHedge(h)
	}
	return c
}

func convertBytes(n *uint32) *int {
	if n == nil {
		return nil
	}
	return new(toInt(*n))
}

// toInt loses nothing that matters where an int has 32 bits: no message and no call gets so far.
func toInt(n uint32) int { return int(min(uint64(n), math.MaxInt)) }

func convertCodes(list []policyv1.StatusCode) CodeSet {
	var s CodeSet
	for _, c := range list {
		s |= bit(codes.Code(c)) //nolint:gosec // not negative
	}
	return s
}

// enum takes a value of the file for the one of the same number. A number that is none of the file's names can
// only come with a descriptor, and is refused by the checks.
func enum[T ~uint8, P ~int32](p P) T {
	if p < 0 || p > math.MaxUint8 {
		return math.MaxUint8
	}
	return T(p)
}
