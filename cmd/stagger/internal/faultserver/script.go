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
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/stagger-go/stagger/internal/codename"
	"github.com/stagger-go/stagger/internal/document"
	"github.com/stagger-go/stagger/internal/steps"
	"github.com/stagger-go/stagger/internal/tools/moves"
	"github.com/stagger-go/stagger/internal/tools/queue"
	faultserverv1 "github.com/stagger-go/stagger/proto/stagger/faultserver/v1"
	"github.com/stagger-go/stagger/testserver"
)

// Limits on all messages of a script file together, so that a typing error does not fill the memory.
const (
	maxMessages     = 100_000
	maxMessageBytes = 64 << 20
)

// parse reads a script file in YAML or JSON, and returns the steps by the pattern of their methods. The error is a
// [document.Error] with all errors.
func parse(file string, data []byte, known *protoregistry.Files) (map[string][]testserver.Step, error) {
	report := document.NewReport(file)
	root := document.Parse(report, data, document.Format{Name: "script file", Key: "scripts"})
	if root == nil {
		return nil, report.Err()
	}
	var decoded faultserverv1.ScriptFile
	document.Decoder{Report: report}.Decode("", root, decoded.ProtoReflect())
	if err := report.Err(); err != nil {
		return nil, err
	}
	b := builder{report: report, known: known}
	return b.build(&decoded), report.Err()
}

// allFiles returns the messages and methods of the services that a fault server simulates: those of its descriptor sets in
// order, then those linked into the program.
func allFiles(sets ...*protoregistry.Files) *protoregistry.Files {
	files := new(protoregistry.Files)
	for _, set := range append(slices.Clip(sets), protoregistry.GlobalFiles) {
		set.RangeFiles(func(f protoreflect.FileDescriptor) bool {
			_ = files.RegisterFile(f) // an error: an earlier set has it
			return true
		})
	}
	return files
}

// builder turns a script file's steps into the test server's steps.
type builder struct {
	report   *document.Report
	known    *protoregistry.Files
	method   string // method of the current script
	messages int    // so far
	bytes    int    // of them
}

// patternForm matches the patterns of [testserver.Server.On].
var patternForm = regexp.MustCompile(`^(\*|/[^/*]+/([^/*]+|\*))$`)

func (b *builder) build(file *faultserverv1.ScriptFile) map[string][]testserver.Step {
	all := map[string][]testserver.Step{}
	for i, s := range file.GetScripts() {
		path := document.Item("scripts", i)
		b.method = s.GetMethod()
		switch {
		case !patternForm.MatchString(b.method):
			b.report.Errorf(path+".method", b.method, `must be "/package.Service/Method", "/package.Service/*" or "*"`)
		case strings.HasPrefix(b.method, "/"+healthv1.Health_ServiceDesc.ServiceName+"/"):
			b.report.Errorf(path+".method", b.method, "is answered by the fault server itself: must be a method of another service")
		case all[b.method] != nil:
			b.report.Errorf(path+".method", b.method, "already has a script: must have only one")
		}
		if len(s.GetSteps()) == 0 {
			b.report.Errorf(path+".steps", nil, "must have at least one step, such as {ok: {}}")
		}
		for i, step := range s.GetSteps() {
			all[b.method] = append(all[b.method], b.step(document.Item(path+".steps", i), step, false))
		}
	}
	return all
}

// step builds one step; inner is that of a random one. Errors that only the test server finds are reported for the whole step.
func (b *builder) step(path string, s *faultserverv1.Step, inner bool) testserver.Step {
	before := b.report.ErrorCount()
	step := b.refined(path, s, b.ended(path, s))
	switch times := s.GetTimes(); {
	case times > math.MaxInt32:
		b.report.Errorf(path+".times", times, "must be at most %d", math.MaxInt32)
	case inner && (times > 0 || s.GetRandom() != nil):
		b.report.Errorf(path, nil, "must be without times and random: they belong to the step around it")
	case times > 0:
		step = step.Times(int(times))
	}
	if err := steps.Failure(step); err != nil && b.report.ErrorCount() == before {
		b.report.Errorf(path, nil, "%v", err)
	}
	return step
}

// ended builds a step from its end and its moves.
func (b *builder) ended(path string, s *faultserverv1.Step) testserver.Step {
	var end testserver.Step
	switch e := s.GetEnd().(type) {
	case *faultserverv1.Step_Fail:
		end = b.fail(path+".fail", e.Fail)
	case *faultserverv1.Step_Hang:
		end = testserver.Hang()
	case *faultserverv1.Step_Drop:
		end = testserver.Drop()
	case *faultserverv1.Step_Random:
		p := e.Random.GetProbability()
		if p < 0 || p > 1 {
			b.report.Errorf(path+".random.probability", p, "must be 0 to 1")
			p = 0
		}
		end = testserver.Random(e.Random.GetSeed(), p, b.step(path+".random.step", e.Random.GetStep(), true))
	}
	if len(s.GetMoves()) == 0 {
		return end
	}
	list := make([]moves.Move, len(s.GetMoves()))
	for i, m := range s.GetMoves() {
		list[i] = b.move(document.Item(path+".moves", i), m)
	}
	play := moves.Play(list...)
	if s.GetEnd() != nil {
		play = play.Then(end)
	}
	return play
}

func (b *builder) move(path string, m *faultserverv1.Move) moves.Move {
	switch m := m.GetMove().(type) {
	case *faultserverv1.Move_Receive:
		if m.Receive > math.MaxInt32 { // fits an int on every platform
			b.report.Errorf(path+".receive", m.Receive, "must be at most %d", math.MaxInt32)
			m.Receive = 0
		}
		return moves.Receive(int(m.Receive))
	case *faultserverv1.Move_Send:
		return moves.SendRaw(b.message(path+".send", m.Send)...)
	case *faultserverv1.Move_Pause:
		return moves.Pause(b.wait(path+".pause", m.Pause))
	case *faultserverv1.Move_Cut:
		return moves.Cut()
	}
	b.report.Errorf(path, nil, "must be a move such as receive, send or cut")
	return moves.Pause(0)
}

// refined adds delays, headers and the trailer.
func (b *builder) refined(path string, s *faultserverv1.Step, step testserver.Step) testserver.Step {
	if s.GetQueue() != nil {
		step = b.queued(path+".queue", s.GetQueue(), step)
	}
	if len(s.GetHeader()) > 0 {
		step = step.Header(b.metadata(path+".header", s.GetHeader()))
	}
	if s.GetDelay() != nil {
		step = step.Delay(b.wait(path+".delay", s.GetDelay()))
	}
	if len(s.GetReplies()) > 0 {
		raw := make([][]byte, 0, len(s.GetReplies()))
		for i, m := range s.GetReplies() {
			raw = append(raw, b.message(document.Item(path+".replies", i), m)...)
		}
		step, _ = steps.Raw(step, raw).(testserver.Step)
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

func (b *builder) queued(path string, q *faultserverv1.Queue, step testserver.Step) testserver.Step {
	service := q.GetServiceTime().AsDuration()
	if q.GetWorkers() < 1 {
		b.report.Errorf(path+".workers", q.GetWorkers(), "must be at least 1")
	}
	if service <= 0 {
		b.report.Errorf(path+".serviceTime", service, `must be more than 0, such as "0.05s"`)
	}
	if q.GetWorkers() < 1 || service <= 0 {
		return step
	}
	made, err := queue.New(queue.Config{Workers: int(q.GetWorkers()), Time: service, Length: int(q.GetLength())})
	if err != nil {
		b.report.Errorf(path, nil, "%v", err)
		return step
	}
	return made.Serve(step)
}

// fail returns the step that ends with an error.
func (b *builder) fail(path string, f *faultserverv1.Fail) testserver.Step {
	c, ok := codename.Parse(f.GetCode())
	if !ok {
		var given any
		if f.GetCode() != "" {
			given = f.GetCode()
		}
		b.report.Errorf(path+".code", given, "must be the name or the number of a status code, but not OK: UNAVAILABLE, 14")
		return testserver.Step{}
	}
	s := &spb.Status{Code: int32(c), Message: "scripted failure"}
	if f.Message != nil {
		s.Message = f.GetMessage()
	}
	if d := f.GetRetryInfo(); d != nil { // unchanged: a time.Duration has narrower bounds
		info, err := anypb.New(&errdetails.RetryInfo{RetryDelay: d})
		if err != nil {
			b.report.Errorf(path+".retryInfo", d, "%v", err)
		}
		s.Details = append(s.Details, info)
	}
	return testserver.FailStatus(status.FromProto(s))
}

// message returns the encoded message, once for each time that it is sent.
func (b *builder) message(path string, m *faultserverv1.Message) [][]byte {
	raw := m.GetRaw()
	if v, ok := m.GetForm().(*faultserverv1.Message_Json); ok {
		raw = b.json(path+".json", v.Json)
	}
	times := max(1, int(min(m.GetTimes(), maxMessages+1)))
	if times > maxMessages-b.messages || len(raw) > (maxMessageBytes-b.bytes)/times {
		b.report.Errorf(path, nil, "all messages together must be at most %d, and have at most 64 MiB", maxMessages)
		return nil
	}
	b.messages += times
	b.bytes += times * len(raw)
	return slices.Repeat([][]byte{raw}, times)
}

// json returns a response of the script's method.
func (b *builder) json(path string, v *structpb.Value) []byte {
	d, _ := b.known.FindDescriptorByName(protoreflect.FullName(strings.ReplaceAll(strings.TrimPrefix(b.method, "/"), "/", ".")))
	method, ok := d.(protoreflect.MethodDescriptor)
	if !ok {
		b.report.Errorf(path, nil, "must be raw: a response in JSON needs a script for one method, which the server knows by --descriptors, unlike %s",
			document.Shorten(b.method))
		return nil
	}
	text, err := protojson.Marshal(v)
	if err != nil {
		b.report.Errorf(path, nil, "must be a JSON value: %s", detail(err))
		return nil
	}
	m := dynamicpb.NewMessage(method.Output())
	if err := (protojson.UnmarshalOptions{Resolver: dynamicpb.NewTypes(b.known)}).Unmarshal(text, m); err != nil {
		b.report.Errorf(path, nil, "must be the JSON form of %s: %s", m.Descriptor().FullName(), detail(err))
		return nil
	}
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		b.report.Errorf(path, nil, "must be a whole %s: %s", m.Descriptor().FullName(), detail(err))
	}
	return raw
}

// mark matches the prefix of protobuf's errors: its name, a blank that varies, and a position in a text that users never
// see.
var mark = regexp.MustCompile(`^proto:[\s\x{a0}]*(?:syntax error )?(\(line \d+:\d+\): )?`)

// detail returns protobuf's error about a message in JSON without that prefix.
func detail(err error) string { return mark.ReplaceAllString(err.Error(), "") }

// The forms of metadata keys and values.
var (
	keyForm   = regexp.MustCompile(`^[0-9a-z_.-]+$`)
	valueForm = regexp.MustCompile(`^[ -~]*$`)
)

// metadata builds headers or trailers.
func (b *builder) metadata(path string, entries []*faultserverv1.Entry) metadata.MD {
	md := metadata.MD{}
	for i, e := range entries {
		item, value, key := document.Item(path, i), e.GetValue(), strings.ToLower(e.GetKey())
		switch binary := strings.HasSuffix(key, "-bin"); {
		case !keyForm.MatchString(key):
			b.report.Errorf(item+".key", e.GetKey(), "must be letters, digits, -, _ and .")
		case binary && value != "":
			b.report.Errorf(item+".value", value, "must be binary: the key ends in -bin")
		case binary:
			value = string(e.GetBinary())
		case len(e.GetBinary()) > 0:
			b.report.Errorf(item+".binary", e.GetBinary(), "must be value: the key does not end in -bin")
		default:
			b.ascii(item+".value", value)
		}
		md.Append(key, value)
	}
	return md
}

// ascii checks the value of a key that does not end in -bin.
func (b *builder) ascii(path, value string) {
	if !valueForm.MatchString(value) {
		b.report.Errorf(path, value, "must be printable ASCII; other bytes need a key that ends in -bin")
	}
}
