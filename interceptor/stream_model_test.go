// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"pgregory.net/rapid"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// check compares what happened with what may happen.
func (m *model) check(t *rapid.T) {
	synctest.Wait()
	last := m.Count(get)
	told := fmt.Sprintf("attempts %v; sender %v, receiver %v; got %v, header of %q, %v (%s) after %d attempts",
		m.attempts, m.sends, m.receives, m.got, m.header, m.end, reasonOf(m.end), last)
	if last > 4 {
		t.Fatalf("%d attempts: %s", last, told)
	}
	script := m.script(last)
	if want := script.sent(last); len(m.got) > len(want) || !slices.Equal(m.got, want[:len(m.got)]) {
		t.Fatalf("got %v of %v: %s", m.got, want, told)
	}
	if m.end == io.EOF && (script.end != "ok" || len(m.got) != len(script.sent(last))) {
		t.Fatalf("success of a stream that was cut: %s", told)
	}
	if len(m.header) > 1 && m.header != fmt.Sprint(last, "-") {
		t.Fatalf("headers of another attempt than %d: %s", last, told)
	}
	m.checkServer(t, told)
	if len(m.calls) != 1 || m.finished != 1 || m.retrier.Replayed() != 0 {
		t.Fatalf("told of %+v, OnFinish called %d times, %d bytes kept: %s", m.calls, m.finished, m.retrier.Replayed(), told)
	}
	m.checkEnd(t, told)
}

// checkServer checks that each attempt heard the beginning of what was sent.
func (m *model) checkServer(t *rapid.T, told string) {
	for i, a := range m.Attempts() {
		heard := m.heard(i)
		if len(heard) > len(m.sent) || !slices.Equal(heard, m.sent[:len(heard)]) {
			t.Fatalf("attempt %d heard %v of %v: %s", i+1, heard, m.sent, told)
		}
		if a.HalfClosed && len(heard) < m.accepted {
			t.Fatalf("attempt %d heard %v of %d messages before the close: %s", i+1, heard, m.accepted, told)
		}
	}
}

// checkEnd checks that a failure was final only where it had to be. An attempt on a connection that
// was dropped may not have reached the server.
func (m *model) checkEnd(t *rapid.T, told string) {
	made, heard, stopped := m.calls[0].Attempts, m.Count(get), 0
	for _, e := range m.journal.attempts {
		if e.Place == interceptor.PlaceCancelled {
			stopped++ // maybe as it was sent
		}
	}
	cut := slices.ContainsFunc(m.attempts, func(a attemptScript) bool { return a.end == "drop" || a.end == "cut" })
	if made < heard || made > heard+stopped && !cut {
		t.Fatalf("%d attempts were made, %d arrived: %s", made, heard, told)
	}
	seen := len(m.got) > 0 || m.header != "" || strings.Contains(fmt.Sprint(m.sends, m.receives), "context")
	unread := m.desc.ClientStreams && slices.ContainsFunc(m.attempts, func(a attemptScript) bool {
		return slices.Contains(a.moves, "headers") || slices.Contains(a.moves, "send") || a.end == "cut"
	})
	if cut && slices.Contains(m.receives, "header") { // of a stream that gRPC has not sent, Header says that there are none
		return
	}
	if unread { // headers, and then a failure that SendMsg finds: nobody may read what else has come
		return
	}
	if reasonOf(m.end) == policy.ReasonCommitted && !seen {
		t.Fatalf("committed to an attempt that nobody has seen: %s", told)
	}
	if status.Code(m.end) == codes.Unavailable && !seen && made < 4 {
		t.Fatalf("given up without need: %s", told)
	}
}

// TestStreamModel_Hedged is what TestStreamModel is for streams whose attempts
// run beside each other: whichever of them wins, the application sees that one alone, and whole.
func TestStreamModel_Hedged(t *testing.T) {
	slow := besides()
	slow.PerAttemptTimeout = 200 * ms
	configs := map[string]policy.Config{
		"hedged": hedged(func(h *policy.HedgeSpec) { h.MaxAttempts, h.Delay = 4, 200*ms }),
		"slow":   config(slow),
	}
	for name, alone := range map[string]bool{"one goroutine": true, "two goroutines": false} {
		for kind, c := range configs {
			t.Run(fmt.Sprint(name, " ", kind), func(t *testing.T) {
				play(t, c, func(t *testing.T, s scene) {
					for range 8 { // each is 100 streams
						rapid.Check(struct{ rapid.TB }{t}, func(t *rapid.T) { // hides Deadline, which a bubble has not
							newModel(t, s, alone).checkHedged(t)
						})
					}
				})
			})
		}
	}
}

// checkHedged compares what happened with what may happen.
func (m *model) checkHedged(t *rapid.T) {
	synctest.Wait()
	told := fmt.Sprintf("attempts %v; sender %v, receiver %v; got %v, header of %q, %v (%s); heard %v; ended %s",
		m.attempts, m.sends, m.receives, m.got, m.header, m.end, reasonOf(m.end), m.Count(get), m.places())
	if len(m.calls) != 1 || m.finished != 1 || m.retrier.Replayed() != 0 {
		t.Fatalf("told of %+v, OnFinish called %d times, %d bytes kept: %s", m.calls, m.finished, m.retrier.Replayed(), told)
	}
	m.checkWinner(t, told)
	m.checkServer(t, told)
	m.checkPlaces(t, told)
	m.checkEnd(t, told)
}

// checkWinner checks that what the application has seen may come from one attempt.
func (m *model) checkWinner(t *rapid.T, told string) {
	for n := 1; n <= m.Count(get); n++ {
		script := m.script(n)
		all := script.sent(n)
		of := m.header == "" || m.header == "-" || m.header == fmt.Sprint(n, "-")
		if len(m.got) > len(all) || !slices.Equal(m.got, all[:len(m.got)]) || !of {
			continue
		}
		if m.end != io.EOF || script.end == "ok" && len(m.got) == len(all) {
			return
		}
	}
	if m.Count(get) > 0 || len(m.got) > 0 {
		t.Fatalf("no attempt is like that: %s", told)
	}
}

// checkPlaces checks that every attempt has ended, once, and that one of them is the answer.
func (m *model) checkPlaces(t *rapid.T, told string) {
	seen, winners := map[int]bool{}, 0
	for _, e := range m.journal.attempts {
		if seen[e.Number] {
			t.Fatalf("attempt %d has ended twice: %s", e.Number, told)
		}
		seen[e.Number] = true
		if e.Place == interceptor.PlaceWon || e.Place == interceptor.PlaceAlone && status.Code(e.Err) == codes.OK {
			winners++
		}
	}
	if made := m.calls[0].Attempts; len(seen) != made || made > 4 || winners > 1 || m.end == io.EOF && winners != 1 && !slices.Contains(m.receives, "header") { // settled a second after Header found none
		t.Fatalf("%d attempts, %d have ended, %d have won: %s", made, len(seen), winners, told)
	}
	if !m.desc.ClientStreams && strings.Contains(m.places(), "abandoned") { // others follow each other
		t.Fatalf("an attempt was given up: %s", told)
	}
}

// TestStreamModel checks random streams against what an application may see of them:
// the messages of one attempt, none of them lost, repeated, reordered or mixed with another's; and
// what the servers may see: what the application sent, from its beginning.
func TestStreamModel(t *testing.T) {
	for name, alone := range map[string]bool{"one goroutine": true, "two goroutines": false} {
		for _, retry := range []policy.RetrySpec{plain(), hasty()} {
			t.Run(fmt.Sprint(name, retry.PerAttemptTimeout), func(t *testing.T) {
				play(t, config(retry), func(t *testing.T, s scene) {
					for range 8 { // each is 100 streams
						rapid.Check(struct{ rapid.TB }{t}, func(t *rapid.T) { // hides Deadline, which a bubble has not
							newModel(t, s, alone).check(t)
						})
					}
				})
			})
		}
	}
}

// model is one random stream, and what became of it.
type model struct {
	scene

	desc     *grpc.StreamDesc
	attempts []attemptScript
	sends    []string // what the sender does: "send", "close", "pause", "context"
	receives []string // what the receiver does: "receive", "header", "pause", "context"

	sent     []string // given to SendMsg
	accepted int      // of them, until SendMsg first returned an error
	closed   bool
	got      []string
	end      error
	header   string // "3-" if the headers of attempt 3 were seen, "-" if headers that do not say
	finished int
}

func newModel(t *rapid.T, s scene, alone bool) *model {
	synctest.Wait()
	s.Reset()
	s.forget()
	m := &model{scene: s, desc: rapid.SampledFrom([]*grpc.StreamDesc{serverStream, clientStream, bidiStream, bidiStream}).Draw(t, "kind")}
	m.attempts = drawAttempts(t, m.desc)
	m.On(get, steps(m.attempts)...)
	m.sends = rapid.SliceOfN(rapid.SampledFrom([]string{"send", "send", "send", "pause", "pause", "context", "close"}), 0, 8).Draw(t, "sends")
	m.receives = rapid.SliceOfN(rapid.SampledFrom([]string{"receive", "receive", "header", "pause", "pause", "context"}), 0, 5).Draw(t, "receives")
	if !m.desc.ClientStreams {
		m.sends = []string{"send", "close"}
	}
	m.run(t, alone)
	return m
}

// run makes the call. In one goroutine the sender's steps come in random order with the receiver's.
func (m *model) run(t *rapid.T, alone bool) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	stream, err := m.conn.NewStream(ctx, m.desc, get, grpc.OnFinish(func(error) { m.finished++ }))
	if err != nil {
		t.Fatal(err)
	}
	if alone {
		for sends, receives := m.sends, m.receives; len(sends)+len(receives) > 0; {
			if len(receives) == 0 || len(sends) > 0 && rapid.Bool().Draw(t, "send next") {
				m.send(stream, sends[0])
				sends = sends[1:]
			} else {
				m.receive(stream, receives[0])
				receives = receives[1:]
			}
		}
		m.send(stream, "close")
	} else {
		var wg sync.WaitGroup
		wg.Go(func() {
			for _, step := range append(m.sends, "close") {
				m.send(stream, step)
			}
		})
		for _, step := range m.receives {
			m.receive(stream, step)
		}
		defer wg.Wait()
	}
	for m.end == nil {
		m.receive(stream, "receive")
	}
}

func (m *model) send(stream grpc.ClientStream, step string) {
	switch {
	case step == "pause":
		time.Sleep(300 * ms)
	case step == "context":
		if stream.Context() == nil {
			panic("no context")
		}
	case m.closed:
	case step == "close":
		m.closed = true
		_ = stream.CloseSend()
	case m.accepted == len(m.sent): // after an error nothing more can be sent
		m.sent = append(m.sent, fmt.Sprintf("c%d", len(m.sent)))
		if stream.SendMsg(wrapperspb.String(m.sent[len(m.sent)-1])) == nil {
			m.accepted++
		}
	}
}

func (m *model) receive(stream grpc.ClientStream, step string) {
	switch {
	case step == "pause":
		time.Sleep(700 * ms)
	case step == "context":
		_ = stream.Context().Err()
	case step == "header":
		if md, err := stream.Header(); md != nil && err == nil {
			m.header = strings.Join(append(md["attempt"], "-"), "")
		}
	case m.end == nil:
		reply := new(wrapperspb.StringValue)
		if m.end = stream.RecvMsg(reply); m.end == nil {
			m.got = append(m.got, reply.GetValue())
			if !m.desc.ServerStreams {
				m.end = io.EOF
			}
		}
	}
}

// forget makes the journal empty again.
func (j *journal) forget() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.attempts, j.decisions, j.calls = nil, nil, nil
}

// attemptScript is what the server does in one attempt.
type attemptScript struct {
	moves []string // "receive", "send", "receive all", "pause"; "headers" first
	end   string   // "ok", "fail", "hang", "drop", "cut"
}

func (a attemptScript) String() string {
	return strings.Join(append(slices.Clone(a.moves), a.end), "/")
}

// drawAttempts makes the scripts of up to 4 attempts; the last goes on forever.
func drawAttempts(t *rapid.T, desc *grpc.StreamDesc) (list []attemptScript) {
	moves := []string{"receive", "receive", "send", "receive all", "pause"}
	if !desc.ServerStreams {
		moves = []string{"receive", "receive all", "pause"} // its one message comes with its end
	}
	for range rapid.IntRange(1, 4).Draw(t, "attempts") {
		a := attemptScript{
			moves: rapid.SliceOfN(rapid.SampledFrom(moves), 0, 5).Draw(t, "moves"),
			end:   rapid.SampledFrom([]string{"fail", "fail", "fail", "ok", "ok", "hang", "drop", "cut"}).Draw(t, "end"),
		}
		if a.end == "ok" && !desc.ServerStreams {
			a.moves = append(a.moves, "send")
		}
		if rapid.IntRange(0, 3).Draw(t, "headers") == 0 {
			a.moves = append([]string{"headers"}, a.moves...)
		}
		list = append(list, a)
	}
	return list
}

// script is what the server does in attempt n, from 1.
func (m *model) script(n int) attemptScript {
	return m.attempts[min(max(n, 1), len(m.attempts))-1]
}

// sent is what the application sees of attempt n, if that is the one.
func (a attemptScript) sent(n int) (texts []string) {
	for _, move := range a.moves {
		if move == "send" {
			texts = append(texts, fmt.Sprintf("attempt %d message %d", n, len(texts)))
		}
	}
	return texts
}

func (a attemptScript) step(n int) testserver.Step {
	var moves []testserver.Move
	texts := a.sent(n)
	for _, move := range a.moves {
		switch move {
		case "headers":
			moves = append(moves, testserver.SendHeader(metadata.Pairs("attempt", fmt.Sprint(n))))
		case "receive":
			moves = append(moves, testserver.Receive(1))
		case "receive all":
			moves = append(moves, testserver.ReceiveAll())
		case "pause":
			moves = append(moves, testserver.Pause(400*ms))
		case "send":
			moves = append(moves, say(texts[0]))
			texts = texts[1:]
		}
	}
	switch a.end {
	case "fail":
		return testserver.Play(moves...).Then(down())
	case "hang":
		return testserver.Play(moves...).Then(testserver.Hang())
	case "drop":
		return testserver.Play(moves...).Then(testserver.Drop())
	case "cut":
		return testserver.Play(append(moves, testserver.Cut())...)
	}
	return testserver.Play(moves...)
}
