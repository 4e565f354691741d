// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package proof_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/stagger-go/stagger/internal/faults"
	"github.com/stagger-go/stagger/testserver"
)

const ms = time.Millisecond

// kind is one of the four kinds of calls.
type kind string

const (
	unary        kind = "unary"
	serverStream kind = "server stream"
	clientStream kind = "client stream"
	bidiStream   kind = "bidi stream"
)

func (k kind) desc() *grpc.StreamDesc {
	return &grpc.StreamDesc{
		ServerStreams: k == serverStream || k == bidiStream,
		ClientStreams: k == clientStream || k == bidiStream,
	}
}

// script is a call: the server's actions in each attempt, and the application's.
type script struct {
	kind     kind
	form     int // of the messages and their codec: an index of forms
	deadline time.Duration
	cancel   time.Duration // when the application cancels, or closes the connection; 0: never
	byHand   bool          // it cancels at cancel or later, just before its next call
	late     time.Duration // how long after its deadline the context ends
	closes   time.Duration
	buffer   int  // grpc.MaxRetryRPCBufferSize; -2: not given
	limited  bool // messages of more than 60 bytes are too large
	ready    bool // grpc.WaitForReady
	wrapped  bool // an inner interceptor wraps the stream, with its own context
	asks     string
	leaves   bool // the application stops after its moves, and cancels
	slow     time.Duration
	together bool // sends and receives in two goroutines

	most      int // attempts
	retryable []codes.Code
	served    []served
	moves     []move
	third     []move // of a third goroutine of the application
	alike     bool   // attempts do not have their number
}

// served has the server's actions in an attempt. The last is also used for all further ones.
type served struct {
	does []move
	end  move
}

// move is one action of the server or the application, some time after the previous one.
type move struct {
	what   string
	sends  bool // by the sender, if the application has two goroutines
	large  bool
	after  time.Duration
	code   codes.Code
	values []string // of pushback
}

func (m move) String() string {
	text := fmt.Sprint(m.what, "@", m.after)
	if m.large {
		text += " large"
	}
	if m.code != codes.OK {
		text += " " + m.code.String()
	}
	if m.values != nil {
		text += fmt.Sprintf(" pushback %q", m.values)
	}
	return text
}

func (s *script) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s of %s, deadline %v and %v, cancel %v by hand %v, close %v, ",
		s.kind, forms[s.form].name, s.deadline, s.late, s.cancel, s.byHand, s.closes)
	fmt.Fprintf(&b, "buffer %d, limited %v, ready %v, wrapped %v, OnFinish asks %q, leaves %v, slow %v, together %v\n",
		s.buffer, s.limited, s.ready, s.wrapped, s.asks, s.leaves, s.slow, s.together)
	fmt.Fprintf(&b, "%d attempts after %v\n", s.most, s.retryable)
	for i, a := range s.served {
		fmt.Fprintf(&b, "  attempt %d: %v, then %v\n", i+1, a.does, a.end)
	}
	fmt.Fprintf(&b, "  application: %v", s.moves)
	if len(s.third) > 0 {
		fmt.Fprintf(&b, ", and beside that %v", s.third)
	}
	return b.String()
}

// drawScript draws a script.
func drawScript(d *draws) *script {
	s := &script{
		kind: one(d, unary, serverStream, clientStream, bidiStream, bidiStream),
		most: 2 + d.below(4), retryable: one(d, []codes.Code{codes.Unavailable}, []codes.Code{codes.Unavailable, codes.ResourceExhausted, codes.DeadlineExceeded, codes.Canceled}),
		buffer: -2,
	}
	for range 1 + d.below(4) {
		s.served = append(s.served, drawServed(d, s.kind))
	}
	if s.kind != unary {
		s.drawMoves(d)
	}
	if d.odds(25) {
		s.form = d.below(len(forms))
	}
	if d.odds(25) { // not a multiple of a microsecond, to which gRPC rounds deadlines: so the client's comes first
		s.deadline = one(d, 150*ms, 400*ms, 1100*ms) + 311*time.Microsecond + 500
	}
	if d.odds(20) {
		s.cancel = one(d, 30*ms, 110*ms, 500*ms) + 417*time.Microsecond
	}
	if d.odds(10) {
		s.closes = one(d, 30*ms, 110*ms, 500*ms) + 613*time.Microsecond
	}
	if d.odds(25) {
		s.buffer = one(d, 0, 20, 40, 150)
	}
	s.limited, s.ready, s.wrapped = d.odds(15), d.odds(15), d.odds(15)
	if d.odds(15) {
		s.asks = one(d, "trailer", "header", "context")
	}
	s.leaves = d.odds(10)
	if d.odds(25) {
		s.slow = one(d, 20*ms, 300*ms)
	}
	s.together = d.odds(40)
	s.byHand = d.odds(30)
	if d.odds(15) {
		s.late = one(d, ms, 20*ms)
	}
	return s
}

// drawMoves draws the application's actions.
func (s *script) drawMoves(d *draws) {
	for i := range d.below(9) {
		list := []string{"recv", "send", "recv", "send", "header", "close", "context", "prepared", "recv"}
		if !s.kind.desc().ClientStreams {
			list = []string{"recv", "recv", "header", "context"}
		}
		m := move{what: one(d, list...), large: d.odds(15)}
		if m.what == "recv" && d.odds(4) {
			m.what = "recv nil"
		}
		m.sends = m.what == "send" || m.what == "close" || m.what == "prepared" || m.what == "context" && d.odds(50)
		m.after = apart(d, i)
		s.moves = append(s.moves, m)
	}
	if !s.kind.desc().ClientStreams {
		s.moves = append([]move{{what: "send", sends: true}, {what: "close", sends: true}}, s.moves...)
	}
}

// drawDisorder makes the application use a stream in another order than usual: it waits for responses before it has sent the request. A third
// goroutine asks for headers or the context at any time.
func (s *script) drawDisorder(d *draws) {
	if d.odds(35) && s.kind == serverStream {
		s.together = !d.odds(15)
		request, rest := slices.Clone(s.moves[:2]), s.moves[2:]
		at := d.below(len(rest) + 1)
		request[0].after = apart(d, 3)
		s.moves = slices.Concat(rest[:at], request, rest[at:])
	}
	for range d.below(3) {
		s.third = append(s.third, move{what: one(d, "header", "context"), after: apart(d, 5)})
	}
}

// apart returns a time between two moves. Its microseconds keep the moves of server and application apart.
func apart(d *draws, i int) time.Duration {
	return one(d, ms, 5*ms, 20*ms, 100*ms, 400*ms) + time.Duration(20+(d.below(256)*97+i*131)%900)*time.Microsecond
}

// drawServed draws the server's actions in one attempt.
func drawServed(d *draws, k kind) (a served) {
	list := []string{"receive", "send", "receive all", "header", "pause", "echo"}
	if !k.desc().ServerStreams {
		list = []string{"receive", "receive all", "header", "pause"}
	}
	sent := false
	for i := range d.below(5) {
		m := move{what: one(d, list...), large: d.odds(10), after: apart(d, i)}
		if m.what == "header" && sent {
			m.what = "pause"
		}
		sent = sent || m.what == "send" || m.what == "echo" || m.what == "header"
		a.does = append(a.does, m)
	}
	a.end = move{what: one(d, "fail", "ok", "ok", "fail", "fail", "hang", "drop", "cut"), after: apart(d, 7)}
	switch a.end.what {
	case "fail":
		a.end.code = one(d, codes.Unavailable, codes.Unavailable, codes.Unavailable, codes.NotFound, codes.ResourceExhausted, codes.DeadlineExceeded, codes.Canceled)
		if d.odds(15) {
			a.end.values = one(d, []string{"30"}, []string{"-1"}, []string{"700"}, []string{"nonsense"}, []string{"5", "5"}, []string{lenient})
		}
		if !k.desc().ServerStreams && d.odds(10) {
			a.does = append(a.does, move{what: "send"})
		}
	case "ok":
		if !k.desc().ServerStreams && !d.odds(8) { // else the one reply is missing
			a.does = append(a.does, move{what: "send", large: d.odds(10)})
		}
	}
	return a
}

// step returns the testserver's step for attempt n, from 1.
func (a served) step(n int, alike bool) testserver.Step {
	if alike {
		n = 0
	}
	by := metadata.Pairs("by", fmt.Sprint(n))
	var list []faults.Move
	replies := 0
	for _, m := range a.does {
		list = append(list, faults.Pause(m.after))
		switch m.what {
		case "receive":
			list = append(list, faults.Receive(1))
		case "receive all":
			list = append(list, faults.Receive(0))
		case "header":
			list = append(list, faults.SendHeader(metadata.Pairs("headers-by", fmt.Sprint(n))))
		case "echo":
			list = append(list, faults.Echo(1))
		case "send":
			list = append(list, faults.SendRaw(encoded(textOf(fmt.Sprintf("s%d.%d", n, replies), m.large))))
			replies++
		}
	}
	list = append(list, faults.Pause(a.end.after))
	if a.end.what == "cut" {
		return faults.Play(append(list, faults.Cut())...).Trailer(by)
	}
	step := faults.Play(list...).Trailer(by)
	switch a.end.what {
	case "fail":
		end := testserver.Fail(a.end.code, fmt.Sprint("of attempt ", n)).Trailer(by)
		if a.end.values != nil {
			end = end.Pushback(a.end.values...)
		}
		return step.Then(end)
	case "hang":
		return step.Then(testserver.Hang())
	case "drop":
		return step.Then(testserver.Drop())
	default:
		return step
	}
}

// textOf makes a text large.
func textOf(text string, large bool) string {
	if large {
		text += strings.Repeat("x", 100)
	}
	return text
}
