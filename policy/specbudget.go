// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"time"
)

// BudgetSpec describes one budget. Exactly one of the kinds is set.
type BudgetSpec struct {
	Name       string
	Scope      Scope
	Ratio      *RatioSpec
	Throttle   *ThrottleSpec
	Concurrent *ConcurrentSpec
	Refund     *RefundSpec
}

// Alike reports whether two budgets are of the same kind and scope, so that what one has earned means the
// same to the other.
func (b BudgetSpec) Alike(other BudgetSpec) bool {
	return cmp.Or(b.Scope, ScopeTarget) == cmp.Or(other.Scope, ScopeTarget) && (b.Ratio == nil) == (other.Ratio == nil) && (b.Throttle == nil) == (other.Throttle == nil) &&
		(b.Concurrent == nil) == (other.Concurrent == nil) && (b.Refund == nil) == (other.Refund == nil)
}

// Scope is which calls share one balance of a budget. The zero value means [ScopeTarget].
type Scope uint8

// The scopes.
const (
	ScopeProcess Scope = iota + 1 // all calls of the Retrier
	ScopeTarget                   // all calls to one target, over all connections
	ScopeService                  // all calls to one service of one target
)

// String spells the scope as a policy file does.
func (s Scope) String() string { return nameOf(s, "TARGET", "PROCESS", "TARGET", "SERVICE") }

// RatioSpec describes a ratio budget; package budget says what the numbers mean.
type RatioSpec struct {
	Percent      float64
	MinPerSecond float64
	Window       time.Duration
	TimeoutCost  float64
	TimeoutBonus float64
}

// DefaultRatio is what a file that writes "ratio: {}" gets.
func DefaultRatio() RatioSpec {
	return RatioSpec{Percent: 10, MinPerSecond: 1, Window: 10 * time.Second, TimeoutCost: 5, TimeoutBonus: 2.5}
}

// ThrottleSpec describes a throttle budget (gRFC A6).
type ThrottleSpec struct {
	MaxTokens  int
	TokenRatio float64
}

// ConcurrentSpec describes a concurrent budget; package budget says what the numbers mean.
type ConcurrentSpec struct {
	Percent float64
	Min     int
}

// DefaultConcurrent is what a file that writes "concurrent: {}" gets: Envoy's numbers.
func DefaultConcurrent() ConcurrentSpec { return ConcurrentSpec{Percent: 20, Min: 3} }

// RefundSpec describes a refund budget; package budget says what the numbers mean.
type RefundSpec struct {
	Capacity    float64
	RetryCost   float64
	TimeoutCost float64
	Success     float64
}

// DefaultRefund is what a file that writes "refund: {}" gets: the AWS SDKs' numbers.
func DefaultRefund() RefundSpec {
	return RefundSpec{Capacity: 500, RetryCost: 5, TimeoutCost: 10, Success: 1}
}
