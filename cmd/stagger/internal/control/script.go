// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"errors"
	"maps"

	"github.com/stagger-go/stagger/internal/document"
	faultserverv1 "github.com/stagger-go/stagger/proto/stagger/faultserver/v1"
	"github.com/stagger-go/stagger/testserver"
)

// Check reports what is wrong with a script file.
func Check(report *document.Report, file *faultserverv1.ScriptFile, api *API) {
	build(report, file, api)
}

// build makes the scripts of a file, in its order, and the queues that they name.
func build(report *document.Report, file *faultserverv1.ScriptFile, api *API) ([][]testserver.Step, map[string]queue) {
	b := builder{report: report, api: api, queues: map[string]queue{}}
	for i, s := range file.GetScripts() {
		b.define(document.Item("scripts", i)+".steps", s.GetSteps())
	}
	all := make([][]testserver.Step, len(file.GetScripts()))
	seen := map[string]bool{}
	for i, s := range file.GetScripts() {
		path := document.Item("scripts", i)
		if b.pattern(path+".method", s.GetMethod()); seen[s.GetMethod()] {
			b.report.Errorf(path+".method", s.GetMethod(), "has a script before: must be one script")
		}
		seen[s.GetMethod()] = true
		b.method = s.GetMethod()
		if len(s.GetSteps()) == 0 {
			b.report.Errorf(path+".steps", nil, "must have at least one step, such as {ok: {}}")
		}
		all[i] = b.steps(path+".steps", s.GetSteps())
	}
	return all, b.queues
}

// restore makes the scripts those of the file; mu is held, or nobody else is there yet.
func (s *service) restore() error {
	var report document.Report
	all, queues := build(&report, s.settings.Script, s.settings.API)
	if err := report.Err(); err != nil {
		return err
	}
	var failed []error // none: all of it has been checked
	for pattern := range s.steps {
		failed = append(failed, s.server.Set(pattern))
	}
	s.queues, s.steps = queues, map[string]int{}
	for i, script := range s.settings.Script.GetScripts() {
		s.steps[script.GetMethod()] = len(all[i])
		failed = append(failed, s.server.Set(script.GetMethod(), all[i]...))
	}
	return errors.Join(failed...)
}

// SetScript implements the service's method of this name.
func (s *service) SetScript(_ context.Context, r *faultserverv1.SetScriptRequest) (*faultserverv1.SetScriptResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &faultserverv1.SetScriptResponse{}, s.change(r.GetMethod(), r.GetSteps(), 0, s.server.Set)
}

// AddSteps implements the service's method of this name.
func (s *service) AddSteps(_ context.Context, r *faultserverv1.AddStepsRequest) (*faultserverv1.AddStepsResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(r.GetSteps()) == 0 {
		var report document.Report
		report.Errorf("steps", nil, `must have at least one step, such as {"ok": {}}`)
		return nil, invalid(&report)
	}
	return &faultserverv1.AddStepsResponse{}, s.change(r.GetMethod(), r.GetSteps(), s.steps[r.GetMethod()], s.server.Add)
}

// change sets steps, or adds them to so many before; mu is held.
func (s *service) change(pattern string, list []*faultserverv1.Step, before int, how func(string, ...testserver.Step) error) error {
	b := builder{report: new(document.Report), api: s.settings.API, method: pattern, queues: maps.Clone(s.queues)}
	b.pattern("method", pattern)
	b.define("steps", list)
	steps := b.steps("steps", list)
	if n := before + len(steps); n > maxSteps {
		b.report.Errorf("steps", len(steps), "must be at most %d steps, with the %d that are there", maxSteps, before)
	}
	if b.report.ErrorCount() == 0 {
		if err := how(pattern, steps...); err != nil {
			b.report.Errorf("steps", nil, "%v", err) // cannot be: the pattern and each step have been checked
		}
	}
	if err := invalid(b.report); err != nil {
		return err
	}
	s.queues, s.steps[pattern] = b.queues, before+len(steps)
	return nil
}

// Reset implements the service's method of this name.
func (s *service) Reset(_ context.Context, r *faultserverv1.ResetRequest) (*faultserverv1.ResetResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.server.Reset()
	if r.GetKeepScripts() {
		return &faultserverv1.ResetResponse{}, nil
	}
	return &faultserverv1.ResetResponse{}, s.restore()
}
