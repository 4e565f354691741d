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

// On sets the script of a method ("/package.Service/Method"), of all methods of a service ("/package.Service/*"), or of all methods without
// another script ("*"), and starts it. The k-th attempt of a method gets step k; the last step repeats forever. Each method of a service
// has a position in the script. A method's script overrides its service's, and that overrides "*". On without steps removes the script. A
// method without a script responds with OK and an empty message. Running calls are not affected.
//
// An error (a pattern that no method can match, a step with invalid values) fails the test that started the server. From then on, all calls
// end with INTERNAL and the error's text.
func (s *Server) On(pattern string, steps ...Step) {
	if s.tb != nil {
		s.tb.Helper()
	}
	s.report(s.scripts.put(pattern, steps))
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

// checkSteps returns an error for an invalid step.
func checkSteps(pattern string, steps []Step) error {
	var errs []error
	for i, step := range steps {
		if step.err != nil {
			errs = append(errs, fmt.Errorf("testserver: %s: step %d: %w", pattern, i+1, step.err))
		}
	}
	return errors.Join(errs...)
}

// scripts has the scripts of all methods.
type scripts struct {
	mu        sync.Mutex
	byPattern map[string]*script // "/service/Method", "/service/*", "*"
	err       error              // of their patterns and steps
}

// everything is the pattern for methods without another script.
const everything = "*"

// script is a sequence of steps, and the position of each method in it.
type script struct {
	steps []Step
	seen  map[string]int
}

// put sets or removes the script of a pattern. After an error, all calls are answered with it.
func (sc *scripts) put(pattern string, steps []Step) error {
	err := errors.Join(checkPattern(pattern), checkSteps(pattern, steps))
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if err != nil {
		sc.err = errors.Join(sc.err, err)
		return err
	}
	if len(steps) == 0 {
		delete(sc.byPattern, pattern)
		return nil
	}
	if sc.byPattern == nil {
		sc.byPattern = map[string]*script{}
	}
	sc.byPattern[pattern] = &script{steps: slices.Clone(steps), seen: map[string]int{}}
	return nil
}

// Replace sets the scripts of all patterns ([Server.On] has their form), removes all other scripts, and drops all attempts and counts, as
// [Server.Reset] does. It does so in one step: a call that begins meanwhile has the scripts and the record of before, or those of after.
// The error says what is wrong with a pattern or a step. After an error, nothing has changed.
func (s *Server) Replace(scripts map[string][]Step) error {
	errs := make([]error, 0, 2*len(scripts))
	byPattern := map[string]*script{}
	for pattern, steps := range scripts {
		errs = append(errs, checkPattern(pattern), checkSteps(pattern, steps))
		byPattern[pattern] = &script{steps: slices.Clone(steps), seen: map[string]int{}}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	s.begins.Lock()
	defer s.begins.Unlock()
	s.scripts.set(byPattern)
	s.record.reset()
	return nil
}

func (sc *scripts) set(byPattern map[string]*script) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.byPattern = byPattern
}

// next returns the step of a method's next attempt, and the number of previous attempts in the
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
