// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"slices"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/budget"
)

// Config is a whole policy file as plain data; its fields stand where the file's keys do. [Parse]
// makes one from a file, and a program may write one by hand for [NewSet].
type Config struct {
	Methods     []MethodConfig
	Budgets     []BudgetSpec
	Throttling  *budget.ThrottleConfig // the budget of every policy that names none; nil: the default budget
	Idempotency Idempotency            // for entries that say nothing of it
	MaxWaiting  int                    // calls that may wait in a backoff at a time; 0: [DefaultMaxWaiting]

	channel channel // what a file says of the channel
}

// MethodConfig is one entry: what holds for the methods that it names.
type MethodConfig struct {
	Names []Name
	Spec
}

// Name names one method, all methods of a service (Method empty), or everything (both empty).
type Name struct {
	Service string // full name: "acme.orders.v1.OrderService"
	Method  string // "GetOrder"
}

// String is the name as a gRPC path: "/service/method", "/service/" or "/".
func (n Name) String() string {
	if n.Service == "" {
		return "/"
	}
	return "/" + n.Service + "/" + n.Method
}

// Spec is what a policy says of a method. [New] checks it and makes a [Policy].
type Spec struct {
	Timeout          time.Duration // of the whole call; 0: only the caller's deadline
	WaitForReady     *bool         // nil: as the call says
	MaxRequestBytes  *int          // nil: as the call says
	MaxResponseBytes *int          // nil: as the call says
	Idempotency      Idempotency
	IdempotencyKey   string     // the header that carries a key of the call's own; "": none
	Retry            *RetrySpec // nil: one attempt, unless Hedge is there
	Hedge            *HedgeSpec // not beside Retry
}

// RetrySpec is what a policy says of retries.
type RetrySpec struct {
	MaxAttempts         int // the first included; at least 2
	Backoff             Backoff
	Codes               CodeSet // retryable codes; at least one
	PerCode             []CodeSpec
	PerAttemptTimeout   time.Duration // 0: none
	OnAttemptTimeout    OnTimeout
	Budget              string // a name of Config.Budgets; "" is the default budget, [NoBudget] none
	CommitOn            CommitOn
	MaxPushback         time.Duration // 0: [DefaultMaxPushback]
	MinAttemptTime      time.Duration // 0: [DefaultMinAttemptTime]
	Chain               Chain
	WaitForReadyOnRetry bool // attempts after the first wait for a connection, if the call has a deadline
	Overrides           []CodeOverride
}

// withDefaults names the kinds that are left at zero, so that policies which mean the same are the same.
func (r RetrySpec) withDefaults() RetrySpec {
	r.Backoff = r.Backoff.withDefaults()
	r.PerCode = slices.Clone(r.PerCode)
	for i, own := range r.PerCode {
		if own.Backoff != nil {
			r.PerCode[i].Backoff = new(own.Backoff.withDefaults())
		}
	}
	r.OnAttemptTimeout = cmp.Or(r.OnAttemptTimeout, OnTimeoutHedge)
	r.CommitOn = cmp.Or(r.CommitOn, CommitOnSeen)
	r.Chain = cmp.Or(r.Chain, ChainAllow)
	return r
}

// CodeOverride lets failures count as if they had another code. The first of a policy that fits is
// taken.
type CodeOverride struct {
	Codes    CodeSet
	Contains string // only if the status message contains it; "": any message
	As       codes.Code
}

// Chain is what a call may do that is made inside of a retried one. The zero value means [ChainAllow].
type Chain uint8

// The rules for chains of services.
const (
	ChainAllow    Chain = iota + 1 // retries as always
	ChainOnce                      // one retry
	ChainSuppress                  // no retry
)

// String spells the rule as a policy file does.
func (c Chain) String() string { return nameOf(c, "ALLOW", "ALLOW", "ONCE", "SUPPRESS") }

// OnTimeout is what follows when an attempt has used up its per-attempt timeout. The zero value means
// [OnTimeoutHedge].
type OnTimeout uint8

// The actions.
const (
	OnTimeoutRetry OnTimeout = iota + 1 // it is cancelled when the next attempt is sent
	OnTimeoutHedge                      // the next attempt is sent beside it, and the first good answer wins
)

// String spells the action as a policy file does.
func (a OnTimeout) String() string { return nameOf(a, "HEDGE", "RETRY", "HEDGE") }

// HedgeSpec is what a policy says of hedging (gRFC A6).
type HedgeSpec struct {
	MaxAttempts    int           // the first included; at least 2
	Delay          time.Duration // between one attempt and the next; 0: all at once
	Quantile       *QuantileSpec // nil: Delay alone
	NonFatal       CodeSet       // codes after which the other attempts go on, and the next is sent at once
	Budget         string        // as in a [RetrySpec]
	MaxPushback    time.Duration // as in a [RetrySpec]
	MinAttemptTime time.Duration // as in a [RetrySpec]
}

// QuantileSpec is a delay taken from the latencies that a method has lately had.
type QuantileSpec struct {
	Quantile float64       // more than 0, less than 1
	Min      time.Duration // 0: [DefaultMinHedgingDelay]
	Max      time.Duration // 0: none
}

// CodeSpec is what a policy does differently after some of its retryable codes.
type CodeSpec struct {
	Codes       CodeSet
	MaxAttempts int      // 1 to the policy's; 0: the policy's
	Backoff     *Backoff // nil: the policy's
	CostFactor  float64  // times the budget's cost of an extra attempt, 0.01 to 100; 0: 1
}

// Idempotency says whether a method may be repeated when an earlier attempt may have taken effect.
type Idempotency uint8

// What a policy can say of idempotency.
const (
	IdempotencyByName   Idempotency = iota // an entry that names service and method: Assume; any other: Declared
	IdempotencyAssume                      // safe: what gRPC takes for granted
	IdempotencyDeclared                    // safe if the descriptor's idempotency_level says so
	IdempotencyNone                        // not safe, whatever the descriptor says
)

// String spells the rule as a policy file does; a file that says nothing means BY_NAME.
func (i Idempotency) String() string { return nameOf(i, "BY_NAME", "ASSUME", "DECLARED", "NONE") }

// CommitOn is when an attempt becomes the only one of its call. The zero value means [CommitOnSeen].
type CommitOn uint8

// The kinds of commitment.
const (
	CommitOnSeen    CommitOn = iota + 1 // the application has seen part of the attempt
	CommitOnHeaders                     // response headers have arrived: gRFC A6's rule
)

// String spells the rule as a policy file does.
func (c CommitOn) String() string { return nameOf(c, "SEEN", "SEEN", "HEADERS") }

// DefaultIdempotencyHeader is the header of an idempotency key, unless a policy names another.
const DefaultIdempotencyHeader = "idempotency-key"

// DefaultMaxWaiting is how many calls may wait in a backoff at a time if a [Config] leaves it at zero.
const DefaultMaxWaiting = 10_000

// The settings of a [RetrySpec] that leaves them at zero.
const (
	DefaultMaxPushback    = 300 * time.Second
	DefaultMinAttemptTime = time.Millisecond

	// DefaultMinHedgingDelay is that of a [QuantileSpec].
	DefaultMinHedgingDelay = time.Millisecond
)

// DefaultRetry is where a policy written in Go starts: 3 attempts, full jitter between 0 and 50 ms,
// then 100 ms, after UNAVAILABLE only, the code that every peer retries.
func DefaultRetry() RetrySpec {
	return RetrySpec{
		MaxAttempts: 3,
		Backoff:     Backoff{Initial: 50 * time.Millisecond, Max: 2 * time.Second, Multiplier: 2},
		Codes:       Codes(codes.Unavailable),
	}
}
