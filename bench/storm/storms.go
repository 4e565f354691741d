// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/testserver"
)

const (
	normal = 0.55 // of the capacity
	pulse  = 1.5
)

// storms are all of them, in the order in which they are played.
func storms() []storm {
	return []storm{
		{
			name: "blip", what: "every backend fails for 150 ms",
			phases: []phase{
				calm(),
				{kind: trouble, length: 150 * time.Millisecond, load: normal, step: down},
				{kind: after, length: 1500 * time.Millisecond, load: normal},
			},
		},
		overload("pulse", 200*time.Millisecond),
		overload("patient pulse", 0),
		{
			name: "random failures", what: "10 % of the requests fail",
			phases: []phase{calm(), {length: 6 * time.Second, load: normal, step: flaky}},
			target: target{success: 0.999},
		},
		{
			name: "one fails", what: "one backend of four fails at once",
			phases: []phase{calm(), {length: 8 * time.Second, load: normal, step: only(0, down)}},
			target: target{success: 0.995},
		},
		{
			name: "one hangs", what: "one backend of four never answers",
			phases:         []phase{calm(), {length: 6 * time.Second, load: normal, step: only(0, hangs)}},
			attemptTimeout: 100 * time.Millisecond,
			target:         target{success: 0.99},
		},
		{
			name: "outage", what: "every backend fails for 10 s",
			phases: []phase{calm(), {length: 10 * time.Second, load: normal, step: down}},
			target: target{perCall: 1.12},
		},
		{
			name: "slow tail", what: "1 % of the requests take 50 times as long",
			phases:         []phase{calm(), {length: 6 * time.Second, load: normal, step: slow}},
			attemptTimeout: 100 * time.Millisecond,
		},
		{
			name: "chain outage", what: "every backend of the last of three services fails for 3 s",
			phases: []phase{
				calm(),
				{kind: trouble, length: 3 * time.Second, load: normal, step: down},
				{kind: after, length: 2 * time.Second, load: normal},
			},
			services: 3, workers: 2, deadline: 3 * time.Second,
			target: target{perCall: 1.12},
		},
		{
			name: "chain pulse", what: "2.5 s of calls for 1.5 times the capacity of the last of three services",
			phases: []phase{
				calm(),
				{kind: trouble, length: 2500 * time.Millisecond, load: pulse},
				{kind: after, length: 4 * time.Second, load: normal},
			},
			services: 3, workers: 2, attemptTimeout: 200 * time.Millisecond,
			target: target{recovery: 2, share: 0.9}, // three hops send attempts beside slow ones
		},
	}
}

// lead is how long a client has run before the trouble: the window of the budget in the policy file,
// so that it has earned all that it can hold.
const lead = 5 * time.Second

func calm() phase { return phase{kind: leadIn, length: lead, load: normal} }

// overload is a pulse of calls, and what it leaves behind.
func overload(name string, attemptTimeout time.Duration) storm {
	return storm{
		name: name, what: "2.5 s of calls for 1.5 times the capacity",
		phases: []phase{
			calm(),
			{kind: trouble, length: 2500 * time.Millisecond, load: pulse},
			{kind: after, length: 4 * time.Second, load: normal},
		},
		attemptTimeout: attemptTimeout,
		target:         target{recovery: 1.5, share: 0.9},
	}
}

// down is a backend that fails at once, without any work.
func down(int, *testserver.Queue) testserver.Step {
	return testserver.Fail(codes.Unavailable, "the backend is down")
}

func hangs(int, *testserver.Queue) testserver.Step { return testserver.Hang() }

// flaky fails a tenth of the requests after the work on them.
func flaky(backend int, queue *testserver.Queue) testserver.Step {
	return testserver.Random(uint64(backend), 0.1, testserver.Fail(codes.Unavailable, "bad luck")).Through(queue) //nolint:gosec // counts from 0
}

// slow makes a hundredth of the requests wait for something else, which occupies no worker.
func slow(backend int, queue *testserver.Queue) testserver.Step {
	return testserver.Random(uint64(backend), 0.01, testserver.OK().Delay(49*serviceTime)).Through(queue) //nolint:gosec // counts from 0
}

// only lets s happen to one backend; the others are well.
func only(ill int, s step) step {
	return func(backend int, queue *testserver.Queue) testserver.Step {
		if backend == ill {
			return s(backend, queue)
		}
		return well(backend, queue)
	}
}
