// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/backoff"
	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/policyfile/document"
)

// Config is a policy file as a Go value, for [New]. Its fields are named as the file's keys, with a capital letter, and mean the same:
// proto/stagger/policy/v1/README.md describes each key. A field that is zero is left out of the file, so it has the key's default. Keys for
// which zero means something else are pointers: nil is the default, and new(0.0) is zero.
//
// A file can say a few things that a Config can't: loadBalancingPolicy, healthCheckConfig and connectionScaling at its top, and
// perAttemptRecvTimeout, for which a Config has PerAttemptTimeout and OnAttemptTimeout.
type Config struct {
	MethodConfig        []MethodConfig
	RetryThrottling     *budget.ThrottleConfig
	LoadBalancingConfig string // JSON, such as `[{"round_robin": {}}]`
	Budgets             []Budget
	Idempotency         string // "ASSUME", "DECLARED" or "NONE"
	MaxWaiting          int
	Mode                Mode
	MaxAttemptsLimit    int
	DefaultTimeout      time.Duration
}

// MethodConfig is an entry of a policy file: the settings of the methods that it names. It has one of RetryPolicy and HedgingPolicy, or
// neither for one attempt.
type MethodConfig struct {
	// Name has full names of methods, as generated code has them: "/acme.orders.v1.OrderService/GetOrder", which declares the method
	// idempotent. "/acme.orders.v1.OrderService/" names all methods of the service, and "/" all methods.
	Name                    []string
	WaitForReady            *bool
	Timeout                 time.Duration
	MaxRequestMessageBytes  *int
	MaxResponseMessageBytes *int
	RetryPolicy             *RetryPolicy
	HedgingPolicy           *HedgingPolicy
	Idempotency             string // "ASSUME", "DECLARED" or "NONE"
	IdempotencyKey          *IdempotencyKey
	Mode                    Mode
	Admission               string // "REFUSE" or "NONE"
}

// IdempotencyKey has the header of an entry's idempotency keys.
type IdempotencyKey struct {
	Header string // "" is "idempotency-key"
}

// RetryPolicy has the settings of retries. The zero value is ready to use: 3 attempts, retries after UNAVAILABLE, backoffs of 0.1 s that double
// up to 1 s, with full jitter, and the default budget.
type RetryPolicy struct {
	MaxAttempts          int           // 0 is 3
	InitialBackoff       time.Duration // 0 is 0.1 s
	MaxBackoff           time.Duration // 0 is 1 s, or InitialBackoff if that is longer
	BackoffMultiplier    float64       // 0 is 2, or 1 with growth FIXED
	RetryableStatusCodes []codes.Code  // none is UNAVAILABLE

	Growth            backoff.Growth
	Jitter            backoff.Jitter
	PerAttemptTimeout time.Duration
	OnAttemptTimeout  string // "HEDGE" or "RETRY"
	MessageTimeout    time.Duration
	Budget            string
	MaxPushback       time.Duration
	PerCode           []PerCode
	Chain             string         // "ALLOW" or "SUPPRESS"
	MaxConnectionWait *time.Duration // nil is 3 s; with 0 calls don't wait
	FirstRetry        string         // "BACKOFF" or "AT_ONCE"
}

// withDefaults returns p with what a policy file requires.
func (p RetryPolicy) withDefaults() RetryPolicy {
	if p.MaxAttempts == 0 {
		p.MaxAttempts = 3
	}
	if p.InitialBackoff == 0 {
		p.InitialBackoff = 100 * time.Millisecond
	}
	if p.MaxBackoff == 0 {
		p.MaxBackoff = max(time.Second, p.InitialBackoff)
	}
	if p.BackoffMultiplier == 0 {
		p.BackoffMultiplier = 2
		if p.Growth == backoff.GrowthFixed {
			p.BackoffMultiplier = 1
		}
	}
	if p.RetryableStatusCodes == nil {
		p.RetryableStatusCodes = []codes.Code{codes.Unavailable}
	}
	return p
}

// PerCode has separate settings for some of a policy's codes. A field that is zero is the policy's.
type PerCode struct {
	Codes               []codes.Code
	MaxAttempts         int
	InitialBackoff      time.Duration
	MaxBackoff          time.Duration
	BackoffMultiplier   float64
	Growth              backoff.Growth
	Jitter              backoff.Jitter
	OnlyWithServerDelay bool
}

// HedgingPolicy has the settings of hedges.
type HedgingPolicy struct {
	MaxAttempts         int // required
	HedgingDelay        time.Duration
	NonFatalStatusCodes []codes.Code
	HedgingQuantile     *HedgingQuantile
	Budget              string
	MaxPushback         time.Duration
	MaxConnectionWait   *time.Duration // as in a RetryPolicy
}

// HedgingQuantile takes the hedging delay from the latencies of the method.
type HedgingQuantile struct {
	Quantile float64
	Min      time.Duration
	Max      time.Duration
}

// Budget is a budget that policies can name. It has one of Bucket and Throttle.
type Budget struct {
	Name     string
	Scope    string // "TARGET", "SERVICE" or "PROCESS"
	Bucket   *Bucket
	Throttle *budget.ThrottleConfig
}

// Bucket has the settings of a bucket, as [budget.BucketConfig] describes them. The zero value is [budget.Default].
type Bucket struct {
	Size       *float64 // nil is 4
	PerSuccess *float64 // nil is 0.1; with 0 successes add nothing
	SlowCost   float64  // 0 is 4
	Refund     *float64 // nil is 2; with 0 nothing is refunded
	RefundSize *float64 // nil is 24; with 0 refunds fill no more than Size
}

// newSource is the source of the sets of New.
const newSource = "policy.New"

// New returns the policies of a config. It writes the config as a policy file, which [Set.String] returns, and parses that, so the checks and
// their errors are those of [Parse]. The error is an [*Error], whose diagnostics name the fields as keys of the file:
// methodConfig[1].retryPolicy.maxAttempts is MethodConfig[1].RetryPolicy.MaxAttempts. The set's source is "policy.New".
func New(c Config) (*Set, error) {
	text, err := write(c)
	if err != nil {
		return nil, err
	}
	set, err := Parse(newSource, text)
	if wrong, ok := errors.AsType[*document.Error](err); ok {
		for i := range wrong.Diagnostics { // the program has no lines of the file
			wrong.Diagnostics[i].Line, wrong.Diagnostics[i].Column = 0, 0
		}
	}
	return set, err
}
