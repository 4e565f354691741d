// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	reflectionv1alpha "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/stagger-go/stagger/internal/codename"
	"github.com/stagger-go/stagger/internal/document"
	"github.com/stagger-go/stagger/internal/steps"
	"github.com/stagger-go/stagger/internal/tools/moves"
	faultserverv1 "github.com/stagger-go/stagger/proto/stagger/faultserver/v1"
	"github.com/stagger-go/stagger/testserver"
)

const (
	maxSteps = 10_000
	maxDepth = 8 // of random steps
)

// builder turns a script file's steps into the test server's steps.
type builder struct {
	report   *document.Report
	known    *registry
	queues   map[string]namedQueue // by name: those of the server and of the file
	method   string                // method of the current script
	messages int                   // so far
	bytes    int                   // of them
}

// everything is the pattern for all methods without a script of their own.
const everything = "*"

// patternForm matches the patterns of [testserver.Server.On], and everything.
var patternForm = regexp.MustCompile(`^(\*|/[^/*]+/([^/*]+|\*))$`)

const patternWant = `must be "/package.Service/Method", "/package.Service/*" or "*"`

// own are the server's own services, which cannot be scripted.
var own = []string{
	healthv1.Health_ServiceDesc.ServiceName,
	reflectionv1.ServerReflection_ServiceDesc.ServiceName,
	reflectionv1alpha.ServerReflection_ServiceDesc.ServiceName,
}

// build returns the scripts of a file, which follow the steps of before.
func (b *builder) build(file *faultserverv1.ScriptFile, before map[string][]testserver.Step) map[string][]testserver.Step {
	for i, s := range file.GetScripts() {
		b.define(document.Item("scripts", i)+".steps", s.GetSteps())
	}
	all := map[string][]testserver.Step{}
	for i, s := range file.GetScripts() {
		path := document.Item("scripts", i)
		b.method = s.GetMethod()
		service, _, _ := strings.Cut(strings.TrimPrefix(b.method, "/"), "/")
		switch {
		case !patternForm.MatchString(b.method):
			b.report.Errorf(path+".method", b.method, patternWant)
		case slices.Contains(own, service):
			b.report.Errorf(path+".method", b.method, "is answered by the fault server itself: must be a method of another service")
		case all[b.method] != nil:
			b.report.Errorf(path+".method", b.method, "already has a script: must have only one")
		}
		path += ".steps"
		switch n := len(s.GetSteps()); {
		case n == 0:
			b.report.Errorf(path, nil, "must have at least one step, such as {ok: {}}")
		case n+len(before[b.method]) > maxSteps:
			b.report.Errorf(path, n, "must be at most %d steps, including the existing %d", maxSteps, len(before[b.method]))
		default:
			for i, step := range s.GetSteps() {
				all[b.method] = append(all[b.method], b.step(document.Item(path, i), step, 0))
			}
		}
	}
	return all
}

// step builds one step, depth deep in random ones. Errors that only the test server finds are reported for the whole step.
func (b *builder) step(path string, s *faultserverv1.Step, depth int) testserver.Step {
	before := b.report.ErrorCount()
	step := b.refined(path, s, b.ended(path, s, depth))
	switch times := s.GetTimes(); {
	case times > math.MaxInt32:
		b.report.Errorf(path+".times", times, "must be at most %d", math.MaxInt32)
	case times > 0 && depth > 0:
		b.report.Errorf(path+".times", times, "must be set at the step around random")
	case times > 0:
		step = step.Times(int(times))
	}
	if err := steps.Failure(step); err != nil && b.report.ErrorCount() == before {
		b.report.Errorf(path, nil, "%v", err)
	}
	return step
}

// ended builds a step from its end and its moves.
func (b *builder) ended(path string, s *faultserverv1.Step, depth int) testserver.Step {
	var end testserver.Step
	switch e := s.GetEnd().(type) {
	case *faultserverv1.Step_Fail:
		end = b.fail(path+".fail", e.Fail)
	case *faultserverv1.Step_Hang:
		end = testserver.Hang()
	case *faultserverv1.Step_Drop:
		end = testserver.Drop()
	case *faultserverv1.Step_Random:
		end = b.random(path+".random", e.Random, depth)
	}
	if len(s.GetMoves()) == 0 {
		return end
	}
	play := moves.Play(b.moves(path+".moves", s.GetMoves())...)
	if s.GetEnd() != nil {
		play = play.Then(end)
	}
	return play
}

// refined adds delays, headers and the trailer.
func (b *builder) refined(path string, s *faultserverv1.Step, step testserver.Step) testserver.Step {
	if s.GetQueue() != nil {
		if q := b.queue(path+".queue", s.GetQueue()); q != nil {
			step = q.Serve(step)
		}
	}
	if len(s.GetHeader()) > 0 {
		step = step.Header(b.metadata(path+".header", s.GetHeader()))
	}
	if s.GetDelay() != nil {
		step = step.Delay(b.wait(path+".delay", s.GetDelay()))
	}
	if len(s.GetReplies()) > 0 {
		step, _ = steps.Raw(step, b.replies(path+".replies", s.GetReplies())).(testserver.Step)
	}
	if len(s.GetTrailer()) > 0 {
		step = step.Trailer(b.metadata(path+".trailer", s.GetTrailer()))
	}
	if len(s.GetPushback()) > 0 {
		for i, value := range s.GetPushback() {
			b.ascii(document.Item(path+".pushback", i), value)
		}
		step = step.Pushback(s.GetPushback()...)
	}
	if s.GetRetryAfter() != "" {
		b.ascii(path+".retryAfter", s.GetRetryAfter())
		step = step.Trailer(metadata.Pairs("retry-after", s.GetRetryAfter()))
	}
	return step
}

// wait returns a duration that a test server can wait.
func (b *builder) wait(path string, d *durationpb.Duration) time.Duration {
	t := d.AsDuration()
	if t < 0 {
		b.report.Errorf(path, t, "must be 0 or more")
	}
	return max(t, 0)
}

func (b *builder) random(path string, r *faultserverv1.Random, depth int) testserver.Step {
	p := r.GetProbability()
	if p < 0 || p > 1 {
		b.report.Errorf(path+".probability", p, "must be 0 to 1")
		p = 0
	}
	if depth >= maxDepth {
		b.report.Errorf(path+".step", nil, "must not be more than %d deep", maxDepth)
		return testserver.Step{}
	}
	return testserver.Random(r.GetSeed(), p, b.step(path+".step", r.GetStep(), depth+1))
}

// fail returns the step that ends with an error.
func (b *builder) fail(path string, f *faultserverv1.Fail) testserver.Step {
	c, ok := b.code(path+".code", f.GetCode())
	if !ok {
		return testserver.Step{}
	}
	text := "scripted failure"
	if f.Message != nil {
		text = f.GetMessage()
	}
	details := slices.Clone(f.GetDetails())
	if d := f.GetRetryInfo(); d != nil { // unchanged: a time.Duration cannot
		info, err := anypb.New(&errdetails.RetryInfo{RetryDelay: d})
		if err != nil {
			b.report.Errorf(path+".retryInfo", d, "%v", err)
		}
		details = append(details, info)
	}
	return testserver.FailStatus(status.FromProto(&spb.Status{Code: int32(c), Message: text, Details: details}))
}

// code returns the code of a failure.
func (b *builder) code(path, name string) (codes.Code, bool) {
	const want = "must be the name or the number of a status code, but not OK: UNAVAILABLE, 14"
	c, ok := codename.Parse(name)
	switch {
	case name == "":
		b.report.Errorf(path, nil, want)
	case !ok:
		b.report.Errorf(path, name, want)
	default:
		return c, true
	}
	return c, false
}
