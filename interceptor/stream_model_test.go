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
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"pgregory.net/rapid"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
)

// TestAStreamIsOneUnbrokenAttempt checks random streams against what an application may see of them:
// the messages of one attempt, none of them lost, repeated, reordered or mixed with another's; and
// what the servers may see: what the application sent, from its beginning.
func TestAStreamIsOneUnbrokenAttempt(t *testing.T) {
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

// TestAHedgedStreamIsOneUnbrokenAttempt is what TestAStreamIsOneUnbrokenAttempt is for streams whose attempts
// run beside each other: whichever of them wins, the application sees that one alone, and whole.
func TestAHedgedStreamIsOneUnbrokenAttempt(t *testing.T) {
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
	if made := m.calls[0].Attempts; len(seen) != made || made > 4 || winners > 1 || m.end == io.EOF && winners != 1 {
		t.Fatalf("%d attempts, %d have ended, %d have won: %s", made, len(seen), winners, told)
	}
	if strings.Contains(m.places(), "abandoned") {
		t.Fatalf("an attempt was given up: %s", told)
	}
}
