// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/policy"
)

// grpcSettings are the settings of a policy that gRPC itself carries out.
type grpcSettings struct {
	waits         *bool // nil: the policy says nothing, as below
	send, receive *int

	options []grpc.CallOption // for a call whose caller gives no option for any of them
}

func grpcSettingsOf(p *policy.Policy) grpcSettings {
	of := compiled.Of(p)
	s := grpcSettings{waits: of.WaitForReady, send: of.MaxRequestMessageBytes, receive: of.MaxResponseMessageBytes}
	s.options = s.optionsBeside(nil)
	return s
}

// optionsBeside returns the settings as options for a call with the caller's options, but for those where the caller's are as strict.
func (s *grpcSettings) optionsBeside(caller []grpc.CallOption) (opts []grpc.CallOption) {
	waits, send, receive := s.waits, s.send, s.receive
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

// stricter returns a policy's size limit, or nil if the caller's is as strict.
func stricter(policys *int, callers int) *int {
	if policys == nil || *policys >= callers {
		return nil
	}
	return policys
}
