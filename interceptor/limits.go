// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/policy"
)

// limits are the settings of a policy that gRPC itself carries out.
type limits struct {
	waits         *bool // nil: the policy says nothing, as below
	send, receive *int

	options []grpc.CallOption // for a call whose caller gives no option for any of them
}

func limitsOf(p *policy.Policy) limits {
	s := compiled.Of(p)
	l := limits{waits: s.WaitForReady, send: s.MaxRequestMessageBytes, receive: s.MaxResponseMessageBytes}
	l.options = l.optionsBeside(nil)
	return l
}

// optionsBeside returns the limits as options for a call with the caller's options, unless those are as strict.
func (l *limits) optionsBeside(caller []grpc.CallOption) (opts []grpc.CallOption) {
	waits, send, receive := l.waits, l.send, l.receive
	for _, o := range caller {
		switch o := o.(type) {
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
