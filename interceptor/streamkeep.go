// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"io"
	"reflect"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"

	"github.com/stagger-go/stagger/policy"
)

// sending is the message that the application is sending. Others than the sender read it: interceptors
// further in may have messages encoded in any goroutine. It holds an address in place of a pointer, since
// one that changes with every message costs the garbage collector more than all the rest; the message is
// alive for as long as its address is here.
type sending struct {
	address atomic.Uintptr // 0 if none is being sent, or it is kept no more
	kind    atomic.Pointer[reflect.Type]
	to      atomic.Pointer[try]

	last *reflect.Type // the kind, for the sender alone
}

// taken stands in place of the address of a message that is in the replay buffer.
const taken = 1

// announce makes m the message that t is about to be sent. What stays the same is not written: that is
// dear.
func (s *sending) announce(t *try, m any) {
	if s.last == nil || reflect.TypeOf(m) != *s.last {
		s.last = new(reflect.TypeOf(m))
		s.kind.Store(s.last)
	}
	if s.to.Load() != t {
		s.to.Store(t)
	}
	s.address.Store(addressOf(m))
}

// active reports whether a message is being sent that is to be kept.
func (s *sending) active() bool { return s.address.Load() > taken }

// addressOf tells messages of the same type apart that are alive at the same time; 0 where nothing can.
func addressOf(m any) uintptr {
	v := reflect.ValueOf(m)
	if v.Kind() != reflect.Pointer {
		return 0
	}
	return v.Pointer()
}

// keep puts what the codec has made of a message into the replay buffer, if it is the one that the
// application is sending: so it is encoded once, by gRPC, and kept before its attempt can be found to have
// failed.
func (s *stream) keep(m any, data mem.BufferSlice) {
	address := addressOf(m)
	if address == 0 || s.sending.address.Load() != address || *s.sending.kind.Load() != reflect.TypeOf(m) {
		return
	}
	s.mu.Lock()
	if s.sending.address.Load() == address && s.follows(s.sending.to.Load()) && s.replay.add(data) {
		s.sending.address.Store(taken)
	}
	s.mu.Unlock()
}

// follows reports whether another attempt may follow t, and is then sent what the application sends: not a
// request that asks for the rest. It requires mu.
func (s *stream) follows(t *try) bool {
	return s.running == t && !s.committed && !s.done && !s.resumption.begun
}

// took finds out what has become of m, which t was sent with err. It reports false if the attempt in the
// place of t is to be sent m: what the replay buffer does not hold by then, the sender itself sends. So
// every attempt is sent every message once.
func (s *stream) took(t *try, m any, err error) (_ error, over bool) { //nolint:revive // the error is SendMsg's
	why := policy.Uncommitted
	if s.sending.address.Load() != taken {
		why = s.keepLate(t, m, err)
	}
	switch {
	case why != policy.Uncommitted:
		return s.settle(t, err, why)
	case err == io.EOF: //nolint:errorlint // gRPC returns it bare
		return s.half(s.recover(t)), true
	}
	return s.sent(t, err), true
}

// keepLate puts m into the replay buffer when it was sent: it was not encoded by gRPC, or not as it is.
// If that cannot be, it returns why, which commits the call.
func (s *stream) keepLate(t *try, m any, err error) (why policy.Commit) {
	var data mem.BufferSlice
	if _, prepared := m.(*grpc.PreparedMsg); prepared {
		why = policy.CommitPrepared // nobody knows its bytes
	} else if data, why = s.encode(m, err); data != nil {
		defer data.Free() // the buffer has a reference of its own
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.sending.address.Swap(0) == taken: // just now, by somebody else
		return policy.Uncommitted
	case why == policy.Uncommitted && (!s.follows(t) || !s.replay.add(data)):
		return policy.CommitBuffer
	}
	return why
}

// encode encodes a message that was sent with err.
func (s *stream) encode(m any, err error) (data mem.BufferSlice, why policy.Commit) {
	if err == nil || err == io.EOF { //nolint:errorlint // gRPC returns it bare
		data, err = s.codec.CodecV2.Marshal(m)
	}
	if err != nil {
		return nil, policy.CommitUnsendable
	}
	return data, policy.Uncommitted
}

// settle follows t, which was sent a message with err that is not kept: for that reason the call goes on
// with t, unless t has ended.
func (s *stream) settle(t *try, err error, why policy.Commit) (_ error, over bool) { //nolint:revive // the error is SendMsg's
	s.mu.Lock()
	for s.led && !s.done {
		s.wait()
	}
	replaced := s.running != t && !s.done && !s.resumption.begun
	settled := s.done || s.committed || s.resumption.begun || err != nil && err != io.EOF //nolint:errorlint // gRPC returns it bare
	if !replaced && !settled && err == nil && !t.ended.Load() {
		settled = s.commit(t, why)
	}
	s.mu.Unlock()
	switch {
	case replaced:
		return nil, false
	case settled:
		return s.half(s.sent(t, err)), true
	}
	err = s.recover(t)
	return s.half(err), err != nil
}
