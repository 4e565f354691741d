// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testserver

import (
	"errors"
	"fmt"
	"strings"
	"sync"
)

// scripts says which script a method follows.
type scripts struct {
	mu        sync.Mutex
	byPattern map[string]*script // "/service/Method", "/service/*", "*"
	mistakes  error
}

// script is a sequence of steps, and how far each method has come in it.
type script struct {
	steps []Step
	seen  map[string]int
}

// On sets the script of a method ("/package.Service/Method") or of all methods of a service
// ("/package.Service/*"), and begins it anew. The k-th attempt of a method carries out step k, the
// last step repeats forever. Each method of a service goes through the script on its own; a
// method's script wins over its service's, and that over [Server.Default]. On without steps takes
// the script away. Running calls are not affected.
//
// A mistake (a pattern that no method can match, a step with impossible values) fails the test
// that started the server; and since silence would be worse, from then on all calls are answered
// with INTERNAL and its text, which [Server.Err] returns.
func (s *Server) On(pattern string, steps ...Step) {
	if s.tb != nil {
		s.tb.Helper()
	}
	s.report(s.scripts.set(pattern, steps, checkPattern(pattern)))
}

// Default sets the script of all methods that have none by [Server.On], as On does. Without one
// they answer OK with an empty message.
func (s *Server) Default(steps ...Step) {
	if s.tb != nil {
		s.tb.Helper()
	}
	s.report(s.scripts.set("*", steps, nil))
}

// Err returns the mistakes in the scripts given to [Server.On] and [Server.Default], joined, or nil.
func (s *Server) Err() error {
	s.scripts.mu.Lock()
	defer s.scripts.mu.Unlock()
	return s.scripts.mistakes
}

func (s *Server) report(mistake error) {
	if mistake != nil && s.tb != nil {
		s.tb.Helper()
		s.tb.Error(mistake)
	}
}

func checkPattern(pattern string) error {
	service, method, ok := strings.Cut(strings.TrimPrefix(pattern, "/"), "/")
	if !strings.HasPrefix(pattern, "/") || !ok || service == "" || method == "" || strings.Contains(service, "*") ||
		method != "*" && strings.ContainsAny(method, "*/") {
		return fmt.Errorf(`testserver: On(%q): want "/package.Service/Method" or "/package.Service/*"; Default is for all`, pattern)
	}
	return nil
}

func (sc *scripts) set(pattern string, steps []Step, mistake error) error {
	mistakes := []error{mistake}
	for i, step := range steps {
		if step.mistake != nil {
			mistakes = append(mistakes, fmt.Errorf("testserver: %s: step %d: %w", pattern, i+1, step.mistake))
		}
	}
	mistake = errors.Join(mistakes...)
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if mistake != nil {
		sc.mistakes = errors.Join(sc.mistakes, mistake)
		return mistake
	}
	if len(steps) == 0 {
		delete(sc.byPattern, pattern)
		return nil
	}
	if sc.byPattern == nil {
		sc.byPattern = map[string]*script{}
	}
	sc.byPattern[pattern] = &script{steps: append([]Step(nil), steps...), seen: map[string]int{}}
	return nil
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
	for _, pattern := range [...]string{method, service + "*", "*"} {
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
