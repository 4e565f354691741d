// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package sim plays fleets of clients, services and their troubles in virtual time, to try a retry policy
// on numbers of one's own before production does.
//
// # What is real, and what is a model
//
// Whether an attempt is followed by another one, when, beside what, and who pays for it, is said by the code
// that the interceptor runs: the engine of internal/attempts, [decision.Policy.Decide], the backoff, and the
// budgets of package budget, from a policy file. The rest is a model: calls arrive at times drawn from a seed, the network delays or loses messages,
// and a backend is some workers with a bounded queue before them, which goes on working for callers who
// have left. Nothing waits: an event leads to the next, so ten minutes of a million clients pass in about
// as many seconds as two million calls take.
//
// A [Scenario] comes from a file, see [Load]; [Scenario.Run] plays it once for each of its variants, and the
// [Result] says what became of the calls. One seed gives one result, on every machine.
//
// What the model leaves out: connections that break and come back, streams, circuit breakers, message sizes,
// the processor time of clients, and hedging by a latency quantile, which is refused.
package sim
