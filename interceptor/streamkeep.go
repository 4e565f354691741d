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
	late bool          // for the sender alone: messages are kept when they have been sent
}

// What stands in place of the address of a message.
const (
	taken   = 1 // it is in the replay buffer
	claimed = 2 // somebody is encoding it for that
)

// announce makes m the message that t is about to be sent. What stays the same is not written: that is
// dear.
func (s *sending) announce(t *try, m any) {
	if s.late {
		return
	}
	if s.last == nil || reflect.TypeOf(m) != *s.last {
		s.last = new(reflect.TypeOf(m))
		s.kind.Store(s.last)
	}
	if s.to.Load() != t {
		s.to.Store(t)
	}
	s.address.Store(addressOf(m))
}

// claim reports whether the caller is to keep m: it is the message that the application is sending, and
// nobody else has claimed it.
func (s *sending) claim(m any) bool {
	address := s.address.Load()
	return address > claimed && address == addressOf(m) && *s.kind.Load() == reflect.TypeOf(m) &&
		s.address.CompareAndSwap(address, claimed)
}

// addressOf tells messages of the same type apart that are alive at the same time; 0 where nothing can.
func addressOf(m any) uintptr {
	v := reflect.ValueOf(m)
	if v.Kind() != reflect.Pointer {
		return 0
	}
	return v.Pointer()
}

// keep puts what has become of a claimed message into the replay buffer, unless encoding it failed with err:
// so it is encoded once, when gRPC asks for that, and kept before its attempt can be found to have failed.
func (s *stream) keep(data mem.BufferSlice, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sending.address.Load() != claimed {
		return // it was too late, and the sender has seen to it
	}
	if err == nil && s.follows(s.sending.to.Load()) && s.replay.add(data) {
		s.sending.address.Store(taken)
		if s.race != nil {
			s.spread()
		}
	} else {
		s.sending.address.Store(0)
	}
}

// follows reports whether another attempt may follow t, and is then sent what the application sends: not a
// request that asks for the rest. It requires mu.
func (s *stream) follows(t *try) bool {
	return (s.running == t || s.race != nil) && !s.committed && !s.done && !s.resumption.begun
}

// took finds out what has become of m, which t was sent with err. It reports false if the attempt in the
// place of t is to be sent m: what the replay buffer does not hold by then, the sender itself sends. So
// every attempt is sent every message once.
func (s *stream) took(t *try, m any, err error) (_ error, over bool) { //nolint:revive // the error is SendMsg's
	why := policy.CommitNone
	if s.sending.address.Load() != taken {
		why = s.keepLate(t, m, err)
	}
	if s.race != nil {
		s.handBack(t, err)
	}
	switch {
	case why != policy.CommitNone:
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
		why = policy.CommitPreparedMessage // nobody knows its bytes
	} else if data, why = s.encode(m, err); data != nil {
		defer data.Free() // the buffer has a reference of its own
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.sending.address.Swap(0) {
	case taken: // just now, by somebody else
		return policy.CommitNone
	case claimed: // by an interceptor that encodes when it likes: it may take any later message for this one
		s.sending.late = true
	}
	if why == policy.CommitNone && (!s.follows(t) || !s.replay.add(data)) {
		return policy.CommitBufferFull
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
	return data, policy.CommitNone
}

// settle follows t, which was sent a message with err that is not kept: for that reason the call goes on
// with t, unless t has ended.
func (s *stream) settle(t *try, err error, why policy.Commit) (_ error, over bool) { //nolint:revive // the error is SendMsg's
	s.mu.Lock()
	if s.racing() {
		return s.settleRace(t, err, why)
	}
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
