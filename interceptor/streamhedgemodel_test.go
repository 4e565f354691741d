// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"pgregory.net/rapid"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
)

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
