// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"fmt"
	"math"
	"strconv"

	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/policy"
)

// callFlags are what a caller's options, and its policy, say before the first attempt.
type callFlags uint8

const (
	disabled      callFlags = 1 << iota // the call passes by, untouched
	safe                                // the caller declares it safe to repeat
	keyed                               // the caller has it send an idempotency key
	fast                                // nothing is to be done before an attempt fails
	configPending                       // the connection may have received no service config yet
	sentOnce                            // gRPC does not send an attempt again by itself
)

// read finds the policy of a call, and the options of its attempts: the caller's, then the policy's where the
// caller says nothing stricter. Every call comes through here.
func (r *Retrier) read(cc *grpc.ClientConn, method string, caller []grpc.CallOption, first *attemptOptions) (of *rules, p *decision.Policy, opts callOptions, flags callFlags) {
	f := r.lookup(cc, method, false)
	of, p = f.rules, f.policy
	if f.pending {
		flags |= configPending
	}
	opts = readOptions(caller, first)
	opts.retrier = r
	own := math.MaxInt
	for _, o := range caller {
		switch o := unwrapped(o).(type) {
		case disableOption:
			flags |= disabled
		case insideOption:
			flags |= disabled
			r.warnOnce(&nestedRetriers, "", "")
		case policyOption:
			of, p = r.rules.Load(), o.policy
			flags &^= configPending
			f.maxAttempts = r.attemptLimit()
		case maxAttemptsOption:
			own = o.n
		case criticalityOption:
			opts.criticality = r.criticality(o.criticality)
		case idempotentOption:
			flags |= safe
		case keyOption:
			flags |= keyed
		}
	}
	if own < 1 {
		n := strconv.Itoa(own)
		r.warnOnce(&noAttempts, n, n)
		own = 1
	}
	if opts.maxAttempts = min(f.maxAttempts, own); opts.opaque != nil {
		kind := fmt.Sprintf("%T", opts.opaque)
		r.warnOnce(&opaqueOption, kind, kind)
		opts.maxAttempts = 1
	}
	if p == nil {
		p = r.single
	}
	flags = opts.follow(of, p, method, flags)
	if opts.foreign && flags&disabled == 0 && opts.mode == policy.ModeEnforce {
		r.warnOnce(&foreignOptions, method, method)
	}
	if p.FastPath() && flags&keyed == 0 {
		flags |= fast
	}
	return of, p, opts, flags
}

// follow gives the options of a call's attempts what a policy says. A policy that comes late holds for the attempts that
// follow; of a call that may get one, the first attempt is made so that the strictest would hold.
func (o *callOptions) follow(of *rules, p *decision.Policy, method string, flags callFlags) callFlags {
	r := o.retrier
	o.mode = max(o.mode, r.modeOf(of, p, method, &o.draw))
	if !p.FastPath() {
		o.shared = appendLimits(o.shared, o.caller, p.Spec())
	}
	pending := flags&configPending != 0
	if pending || p.CommitsOnHeaders() {
		o.header = true
	}
	declared := flags&safe != 0 || flags&keyed != 0 && keyCounts(p)
	if !declared && flags&sentOnce == 0 && (pending && r.resolves() || r.rules.Load().set.DeniesTransparentRetry(p, method)) {
		flags |= sentOnce
		o.shared = append(o.shared, sendOnce)
	}
	return flags
}

// criticality is what a caller says, or "" if that means nothing.
func (r *Retrier) criticality(c policy.Criticality) policy.Criticality {
	if c != "" && !isCriticality(c) {
		said := strconv.Quote(string(c))
		r.warnOnce(&wrongCriticality, said, said)
		return ""
	}
	return c
}

// appendLimits adds what a policy says where the caller has not said it, or not as strictly.
func appendLimits(opts, caller []grpc.CallOption, s *policy.Spec) []grpc.CallOption {
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

// stricter returns a policy's limit, or nil if the caller's holds already.
func stricter(policys *int, callers int) *int {
	if policys == nil || *policys >= callers {
		return nil
	}
	return policys
}
