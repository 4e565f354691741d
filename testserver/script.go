// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testserver

import (
	"errors"
	"fmt"
	"strings"
)

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

// Set is On for programs whose scripts come from others: a mistake is returned, in any of the steps or
// in the pattern, and changes nothing. The pattern "*" is for all methods that have no other script,
// as [Server.Default].
func (s *Server) Set(pattern string, steps ...Step) error {
	return s.scripts.change(pattern, steps, s.scripts.put)
}

// Add appends steps to the script of a pattern, and makes one if there is none. Its methods go on
// where they are; those that are repeating its last step take the first of the new ones next.
// Mistakes are those of [Server.Set].
func (s *Server) Add(pattern string, steps ...Step) error {
	return s.scripts.change(pattern, steps, s.scripts.add)
}

// Default sets the script of all methods that have none by [Server.On], as On does. Without one
// they answer OK with an empty message.
func (s *Server) Default(steps ...Step) {
	if s.tb != nil {
		s.tb.Helper()
	}
	s.report(s.scripts.set(everything, steps, nil))
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

// checkSteps says which of the steps cannot be carried out.
func checkSteps(pattern string, steps []Step) error {
	var mistakes []error
	for i, step := range steps {
		if step.mistake != nil {
			mistakes = append(mistakes, fmt.Errorf("testserver: %s: step %d: %w", pattern, i+1, step.mistake))
		}
	}
	return errors.Join(mistakes...)
}
