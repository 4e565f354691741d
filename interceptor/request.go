// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/internal/clock"
	"github.com/stagger-go/stagger/policy"
)

// callFlags come from a call's options and its policy, before the first attempt.
type callFlags uint8

const (
	disabled callFlags = 1 << iota // the call bypasses the Retrier
	safe                           // the caller declares it idempotent
	keyed                          // the caller asks for an idempotency key
)

// readRequest looks up the policy of a call, and sets the options of its attempts: the caller's, then the policy's unless the
// caller's are stricter. Every call runs it. The policy belongs to the returned rules.
func (c *call) readRequest(caller []grpc.CallOption, first *attemptOptions) (of *rules) {
	r, o := c.retrier, &c.options
	c.name = keptName(c.method)
	of = r.rules.Load()
	c.policy = r.lookup(of, c.cc, c.method)
	o.readOptions(caller, first)
	o.retrier = r
	own := math.MaxInt
	for _, option := range caller {
		switch option := unwrapped(option).(type) {
		case disableOption:
			c.flags |= disabled
		case insideOption:
			c.flags |= disabled
			r.warnOnce(&nestedRetriers, "", "")
		case policyOption:
			c.policy = option.policy
		case maxAttemptsOption:
			own = option.n
		case idempotentOption:
			c.flags |= safe
		case keyOption:
			c.flags |= keyed
		}
	}
	if own < 1 {
		n := strconv.Itoa(own)
		r.warnOnce(&noAttempts, n, n)
		own = 1
	}
	if o.maxAttempts = min(r.attemptLimit(), own); o.opaque != nil {
		kind := fmt.Sprintf("%T", o.opaque)
		r.warnOnce(&opaqueOption, kind, kind)
		o.maxAttempts = 1
	}
	if c.policy == nil {
		c.policy = r.single
	}
	c.applyPolicy(of)
	if o.foreign && c.flags&disabled == 0 && o.mode == policy.ModeEnforce {
		r.warnOnce(&foreignOptions, c.name, c.name)
	}
	return of
}

// applyPolicy adds the policy's settings to the options of a call's attempts.
func (c *call) applyPolicy(of *rules) {
	r, o, p := c.retrier, &c.options, c.policy
	o.mode = max(o.mode, r.modeOf(of, p, c.method, &o.draw))
	o.shared = appendLimits(o.shared, o.caller, p.Spec())
	if p.CommitsOnHeaders() {
		o.header = true
	}
}

// announce notifies observers of the call's start, and looks up the data that its policy, one of these rules, needs.
func (c *call) announce(ctx context.Context, of *rules) {
	r := c.retrier
	if r.observers.Load().starts {
		ctx = r.startCall(ctx, c.name, c.cc, c.policy, &c.options)
	}
	c.ctx = r.withBackends(ctx, c.cc, c.policy, c.options.maxAttempts)
	c.options.assignCriticality(ctx, c.policy)
	c.start = clock.Now()
	c.budget = r.budgetFor(of, c.policy, c.cc, c.name, &c.options)
	c.know(of, c.start)
}

// Names over longestName bytes are not kept: a proxy passes on whatever its callers choose. Their calls have a policy, and
// no memory: events, warnings and tables have longName instead.
const (
	longestName = 256
	longName    = "(a name over 256 bytes)"
)

func keptName(method string) string {
	if len(method) > longestName {
		return longName
	}
	return method
}

// appendLimits adds a policy's limits, unless the caller's are as strict.
func appendLimits(opts, caller []grpc.CallOption, s *policy.Spec) []grpc.CallOption {
	waits, send, receive := s.WaitForReady, s.MaxRequestBytes, s.MaxResponseBytes
	if waits == nil && send == nil && receive == nil {
		return opts
	}
	for _, o := range caller {
		switch o := promoted(o).(type) {
		case grpc.FailFastCallOption:
			waits = nil
		case grpc.MaxSendMsgSizeCallOption:
			send = stricter(send, o.MaxSendMsgSize)
		case grpc.MaxRecvMsgSizeCallOption:
			receive = stricter(receive, o.MaxRecvMsgSize)
		}
	}
	if waits != nil {
		opts = append(opts, grpc.WaitForReady(*waits))
	}
	if send != nil {
		opts = append(opts, grpc.MaxCallSendMsgSize(*send))
	}
	if receive != nil {
		opts = append(opts, grpc.MaxCallRecvMsgSize(*receive))
	}
	return opts
}

// stricter returns a policy's limit, or nil if the caller's is as strict.
func stricter(policys *int, callers int) *int {
	if policys == nil || *policys >= callers {
		return nil
	}
	return policys
}
