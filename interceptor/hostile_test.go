// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"slices"
	"testing"
	"time"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/stagger-go/stagger/policy"
)

// Law 7, and its limits: the server's word wins, whatever it is, and nothing that it says makes a client
// panic, wait for longer than the policy allows, or send more.
func TestAHostileServersWordIsBounded(t *testing.T) {
	t.Parallel()
	hedges := hedged(func(h *policy.HedgeSpec) { h.MaxAttempts, h.Delay = 4, time.Hour })
	for name, row := range map[string]struct {
		config policy.Config
		stream bool
	}{
		"unary":                 {config(plain()), false},
		"unary that may race":   {config(besides()), false},
		"hedged":                {hedges, false},
		"stream":                {config(plain()), true},
		"stream with a timeout": {config(hasty()), true},
	} {
		for _, h := range slices.Concat(pushbacks(), retryAfters(), retryInfos(), floods()) {
			if name == "hedged" && h.elapsed == unsaid {
				h.elapsed = 0 // the next hedge follows a failure at once
			}
			t.Run(name+", "+h.name, func(t *testing.T) {
				play(t, row.config, func(t *testing.T, s scene) { h.check(t, s, row.stream) })
			})
		}
	}
}

// check makes a call to the hostile server, and then one to see that the client is well.
func (h hostility) check(t *testing.T, s scene, stream bool) {
	t.Helper()
	call := func() error {
		if stream {
			return ask(t.Context(), s.conn, false)
		}
		_, err := s.call(t.Context(), get)
		return err
	}
	start := time.Now()
	s.On(get, h.step)
	if err := call(); status.Code(err) != codes.Unavailable {
		t.Errorf("error %.200v; want the server's", err)
	}
	if n, took := s.Count(get), time.Since(start); n != h.attempts || took != h.elapsed {
		t.Errorf("%d attempts in %v; want %d in %v", n, took, h.attempts, h.elapsed)
	}
	s.On(get, text("well"))
	if err := call(); err != nil || s.retrier.Waiting() != 0 || s.retrier.Replayed() != 0 {
		t.Errorf("the next call ends with %v, %d calls wait, %d bytes are kept", err, s.retrier.Waiting(), s.retrier.Replayed())
	}
}

// openGates let every attempt through.
type openGates struct{}

func (openGates) Open() bool                             { return false }
func (openGates) Enter() bool                            { return true }
func (openGates) Leave()                                 {}
func (openGates) Fail()                                  {}
func (openGates) Withdraw(*policy.Outcome, float64) bool { return true }

// FuzzServersWord feeds all that a server may say of retries to the decision.
func FuzzServersWord(f *testing.F) {
	f.Add("5", "", "120", retryInfoURL, []byte("\x0a\x02\x08\x05"), 0.5)
	f.Add("-1", "7", "Fri, 31 Dec 9999 23:59:59 GMT", "", []byte{}, 0.0)
	f.Add("", "", "99999999999999999999", retryInfoURL, []byte("\x0a\x0a\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f"), 0.999)
	p := mustPolicy(f, policy.Spec{Retry: new(plain())})
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, pushback, second, after, url string, detail []byte, r float64) {
		if !(r >= 0 && r < 1) {
			t.Skip("no chance")
		}
		trailer := metadata.Pairs(policy.RetryAfter, after)
		for _, value := range []string{pushback, second} {
			if value != "" {
				trailer.Append(policy.PushbackTrailer, value)
			}
		}
		st := status.FromProto(&spb.Status{Code: int32(codes.Unavailable), Details: []*anypb.Any{{TypeUrl: url, Value: detail}, nil}})
		push := policy.ReadPushback(st, nil, trailer, now)
		if push.Delay < 0 || (push.Stop || push.Delay > 0) && push.Source == "" || push.Stop && push.Delay != 0 {
			t.Errorf("ReadPushback = %+v", push)
		}
		d := p.Decide(&policy.Call{Attempts: 1, Safe: true}, &policy.Outcome{Status: st, Trailer: trailer}, openGates{}, now, r)
		switch {
		case d.Retry && push.Source == "" && d.Delay != 100*ms,
			d.Retry && push.Source != "" && (d.Delay < push.Delay || d.Delay-push.Delay > push.Delay/10 || push.Delay > policy.DefaultMaxPushback),
			d.Retry == (push.Stop || push.Delay > policy.DefaultMaxPushback),
			!d.Retry && d.Reason != policy.ReasonPushbackStop:
			t.Errorf("%+v after %+v", d, push)
		}
	})
}
