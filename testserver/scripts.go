// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testserver

import (
	"errors"
	"slices"
	"strings"
	"sync"
)

// scripts says which script a method follows.
type scripts struct {
	mu        sync.Mutex
	byPattern map[string]*script // "/service/Method", "/service/*", "*"
	mistakes  error
}

// everything is the pattern of the script for all that have no other.
const everything = "*"

// script is a sequence of steps, and how far each method has come in it.
type script struct {
	steps []Step
	seen  map[string]int
}

// set is put for scripts in tests: from a mistake on, all calls are answered with it.
func (sc *scripts) set(pattern string, steps []Step, mistake error) error {
	mistake = errors.Join(mistake, checkSteps(pattern, steps))
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if mistake != nil {
		sc.mistakes = errors.Join(sc.mistakes, mistake)
		return mistake
	}
	sc.put(pattern, steps)
	return nil
}

// change is put or add, for scripts of others: a mistake changes nothing.
func (sc *scripts) change(pattern string, steps []Step, how func(string, []Step)) error {
	mistake := checkSteps(pattern, steps)
	if pattern != everything {
		mistake = errors.Join(checkPattern(pattern), mistake)
	}
	if mistake != nil {
		return mistake
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
	if sc.mistakes != nil {
		return broken(sc.mistakes), 0
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
