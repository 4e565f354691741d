// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"pgregory.net/rapid"

	"github.com/stagger-go/stagger/testserver"
)

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

// steps are the attempts for the server; the last is written out as often as a call may reach it, so
// that each of its attempts has messages of its own.
func steps(attempts []attemptScript) (list []testserver.Step) {
	for n := 1; n <= 5; n++ {
		list = append(list, attempts[min(n, len(attempts))-1].step(n))
	}
	return list
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
