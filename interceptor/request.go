// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"

	"github.com/stagger-go/stagger/balancer"
	"github.com/stagger-go/stagger/internal/balance"
	"github.com/stagger-go/stagger/internal/clock"
	"github.com/stagger-go/stagger/internal/tried"
	"github.com/stagger-go/stagger/policy"
)

// callFlags come from a call's options and its policy, before the first attempt.
type callFlags uint8

const (
	disabled callFlags = 1 << iota // the call bypasses the Retrier
	safe                           // the caller declares it idempotent
	keyed                          // the caller asks for an idempotency key
)

// readRequest reads the caller's options, and finds the entry of the call. Every call runs it.
func (c *call) readRequest(caller []grpc.CallOption, first *attemptOptions) {
	r, o := c.retrier, &c.options
	o.caller, o.shared, o.maxAttempts = caller, first.array[added:added], math.MaxInt
	for _, option := range caller {
		if _, ok := option.(grpc.StaticMethodCallOption); ok { // fast path: all calls of generated code have it
			o.static = true
			o.shared = append(o.shared, option)
			continue
		}
		c.readOption(option)
	}
	if c.flags&disabled != 0 {
		return
	}
	c.start = clock.Now()
	c.entry = r.entry(c.cc, c.method, o.static, c.policy, c.start)
	c.name, c.policy, c.budget = c.entry.name, c.entry.policy, c.entry.budget
	if o.maxAttempts < 1 {
		n := strconv.Itoa(o.maxAttempts)
		r.warnOnce(&noAttempts, n, n)
	}
	o.maxAttempts = max(min(c.entry.most, o.maxAttempts), 1)
	if o.opaque {
		o.maxAttempts = 1
	}
	if o.mode = c.entry.mode; c.entry.percent < 100 && 100*r.random() >= c.entry.percent {
		o.mode, c.budget = policy.ModeOff, balance.Unlimited
	}
	if o.limited {
		o.shared = append(o.shared, limitsOf(c.policy.Spec(), caller)...)
	} else {
		o.shared = append(o.shared, c.entry.limits...)
	}
	o.header = o.header || c.entry.headers
	if o.mode != policy.ModeEnforce { // then another library's retries don't multiply
		return
	}
	if first.retrier = r; o.foreign {
		r.warnOnce(&foreignOptions, c.name, c.name)
	}
}

// readOption reads an option of the caller's.
func (c *call) readOption(option grpc.CallOption) {
	o := &c.options
	if _, ok := option.(grpc.OnFinishCallOption); ok { // gRPC itself doesn't call embedded ones
		o.notify = true
		return
	}
	target := promoted(option)
	switch target.(type) {
	case grpc.HeaderCallOption, grpc.TrailerCallOption, grpc.PeerCallOption:
		if _, ok := target.(grpc.HeaderCallOption); ok {
			o.header = true
		}
		if o.notify = true; option != target {
			o.embedded = append(o.embedded, option)
		}
		return
	case grpc.StaticMethodCallOption:
		o.static = true
	case grpc.ForceCodecV2CallOption, grpc.ForceCodecCallOption, grpc.CustomCodecCallOption, grpc.ContentSubtypeCallOption:
		o.codec = true
	case grpc.FailFastCallOption, grpc.MaxSendMsgSizeCallOption, grpc.MaxRecvMsgSizeCallOption:
		o.limited = true
	case grpc.EmptyCallOption:
		c.readOwn(unwrapped(option))
	case nil:
		o.opaque = true
		kind := fmt.Sprintf("%T", option)
		c.retrier.warnOnce(&opaqueOption, kind, kind)
	}
	o.shared = append(o.shared, option)
}

// readOwn reads an option of this package.
func (c *call) readOwn(option grpc.CallOption) {
	switch option := option.(type) {
	case disableOption:
		c.flags |= disabled
	case insideOption:
		c.flags |= disabled
		c.retrier.warnOnce(&nestedRetriers, "", "")
	case policyOption:
		if c.policy = option.policy; c.policy == nil {
			c.policy = c.retrier.single
		}
	case maxAttemptsOption:
		c.options.maxAttempts = option.n
	case idempotentOption:
		c.flags |= safe
	case keyOption:
		c.flags |= keyed
	default:
		c.options.foreign = c.options.foreign || ofMiddleware(option)
	}
}

// announce notifies observers of the call's start, and finds what its context determines.
func (c *call) announce(ctx context.Context) {
	r := c.retrier
	if r.observers.Load().starts {
		ctx = r.startCall(ctx, c.event(0, codes.OK, nil))
	}
	c.ctx, c.known = ctx, c.entry.known
	// A connection that is not READY may get a policy of package balancer when it wakes up for this call.
	if cc := c.cc; cc != nil && c.options.maxAttempts > 1 &&
		(tried.InUse(cc.Target()) || c.entry.rules.balancing != "" && cc.GetState() != connectivity.Ready) {
		c.ctx = balancer.NewContext(ctx)
	}
}

// limitsOf returns a policy's limits as options, unless the caller's are as strict.
func limitsOf(s *policy.Spec, caller []grpc.CallOption) (opts []grpc.CallOption) {
	waits, send, receive := s.WaitForReady, s.MaxRequestBytes, s.MaxResponseBytes
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
