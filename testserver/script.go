// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testserver

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// On sets the script of a method ("/package.Service/Method") or of all methods of a service
// ("/package.Service/*"), or of all that have no other ("*"), and begins it anew. The k-th attempt of a method carries out step k, the
// last step repeats forever. Each method of a service goes through the script on its own; a
// method's script wins over its service's, and that over "*". On without steps takes the script
// away; a method without one answers OK with an empty message. Running calls are not affected.
//
// An error (a pattern that no method can match, a step with impossible values) fails the test
// that started the server; and since silence would be worse, from then on all calls are answered
// with INTERNAL and its text. Programs use [Server.Set], which returns the error.
func (s *Server) On(pattern string, steps ...Step) {
	if s.tb != nil {
		s.tb.Helper()
	}
	s.report(s.scripts.set(pattern, steps))
}

// Set is On for programs whose scripts come from others: an error is returned, in any of the steps or
// in the pattern, and changes nothing.
func (s *Server) Set(pattern string, steps ...Step) error {
	return s.scripts.change(pattern, steps, s.scripts.put)
}

// Add appends steps to the script of a pattern, and makes one if there is none. Its methods go on
// where they are; those that are repeating its last step take the first of the new ones next.
// Errors are those of [Server.Set].
func (s *Server) Add(pattern string, steps ...Step) error {
	return s.scripts.change(pattern, steps, s.scripts.add)
}

func (s *Server) report(err error) {
	if err != nil && s.tb != nil {
		s.tb.Helper()
		s.tb.Error(err)
	}
}

func checkPattern(pattern string) error {
	if pattern == everything {
		return nil
	}
	service, method, ok := strings.Cut(strings.TrimPrefix(pattern, "/"), "/")
	if !strings.HasPrefix(pattern, "/") || !ok || service == "" || method == "" || strings.Contains(service, "*") ||
		method != "*" && strings.ContainsAny(method, "*/") {
		return fmt.Errorf(`testserver: On(%q): want "/package.Service/Method", "/package.Service/*" or "*"`, pattern)
	}
	return nil
}

// checkSteps says which of the steps cannot be carried out.
func checkSteps(pattern string, steps []Step) error {
	var errs []error
	for i, step := range steps {
		if step.err != nil {
			errs = append(errs, fmt.Errorf("testserver: %s: step %d: %w", pattern, i+1, step.err))
		}
	}
	return errors.Join(errs...)
}

// scripts says which script a method follows.
type scripts struct {
	mu        sync.Mutex
	byPattern map[string]*script // "/service/Method", "/service/*", "*"
	err       error              // of all scripts that tests have set
}

// everything is the pattern of the script for all that have no other.
const everything = "*"

// script is a sequence of steps, and how far each method has come in it.
type script struct {
	steps []Step
	seen  map[string]int
}

// set is put for scripts in tests: from an error on, all calls are answered with it.
func (sc *scripts) set(pattern string, steps []Step) error {
	err := errors.Join(checkPattern(pattern), checkSteps(pattern, steps))
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if err != nil {
		sc.err = errors.Join(sc.err, err)
		return err
	}
	sc.put(pattern, steps)
	return nil
}

// change is put or add, for scripts of others: an error changes nothing.
func (sc *scripts) change(pattern string, steps []Step, how func(string, []Step)) error {
	if err := errors.Join(checkPattern(pattern), checkSteps(pattern, steps)); err != nil {
		return err
	}
	sc.mu.Lock()
	defer sc.mu.Unlock()
	how(pattern, steps)
	return nil
}

// put gives a pattern a script, or takes it away; mu is held.
func (sc *scripts) put(pattern string, steps []Step) {
	if len(steps) == 0 {
		delete(sc.byPattern, pattern)
		return
	}
	if sc.byPattern == nil {
		sc.byPattern = map[string]*script{}
	}
	sc.byPattern[pattern] = &script{steps: slices.Clone(steps), seen: map[string]int{}}
}

// add makes a script longer; mu is held.
func (sc *scripts) add(pattern string, steps []Step) {
	s := sc.byPattern[pattern]
	if s == nil {
		sc.put(pattern, steps)
		return
	}
	length := 0
	for _, step := range s.steps {
		length += max(1, step.times)
	}
	for method, k := range s.seen {
		s.seen[method] = min(k, length) // those that repeat the last step are done with it
	}
	s.steps = append(s.steps, steps...)
}

// next returns the step of a method's next attempt, and how many attempts came before it in the
// same script.
func (sc *scripts) next(method string) (Step, int) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if sc.err != nil {
		return errorStep(sc.err), 0
	}
	service := method[:strings.LastIndex(method, "/")+1]
	for _, pattern := range [...]string{method, service + "*", everything} {
		if s := sc.byPattern[pattern]; s != nil {
			k := s.seen[method]
			s.seen[method]++
			return s.at(k), k
		}
	}
	return OK(), 0
}

func (s *script) at(k int) Step {
	for _, step := range s.steps {
		if k -= max(1, step.times); k < 0 {
			return step
		}
	}
	return s.steps[len(s.steps)-1]
}

func (sc *scripts) rewind() {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	for _, s := range sc.byPattern {
		clear(s.seen)
	}
}
