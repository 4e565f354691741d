// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"encoding/base64"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/stagger-go/stagger/internal/faults"
	"github.com/stagger-go/stagger/internal/policyfile/codename"
	"github.com/stagger-go/stagger/internal/policyfile/document"
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
	if err := report.Err(); err != nil {
		return nil, err
	}
	b := builder{report: report, known: known, all: map[string][]testserver.Step{}}
	report.Read("", root, func(f *document.Fields) { f.List("scripts", b.script) })
	return b.all, report.Err()
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

// builder turns a script file into the test server's steps.
type builder struct {
	report   *document.Report
	known    *protoregistry.Files
	all      map[string][]testserver.Step // by the pattern of their methods
	method   string                       // method of the current script
	messages int                          // so far
	bytes    int                          // of them
}

// patternForm matches the patterns of [testserver.Server.On].
var patternForm = regexp.MustCompile(`^(\*|/[^/*]+/([^/*]+|\*))$`)

func (b *builder) script(path string, n *document.Node) {
	b.report.Read(path, n, func(f *document.Fields) {
		var (
			method string
			list   []testserver.Step
		)
		f.Text("method", &method)
		b.method = ""
		if patternForm.MatchString(method) {
			b.method = method
		}
		again := b.all[method] != nil
		f.List("steps", func(path string, n *document.Node) {
			b.report.Read(path, n, func(f *document.Fields) { list = append(list, b.step(path, f, false)) })
		})
		f.Later(func() {
			switch {
			case !patternForm.MatchString(method):
				f.Errorf(path+".method", method, `must be "/package.Service/Method", "/package.Service/*" or "*"`)
			case strings.HasPrefix(method, "/"+healthv1.Health_ServiceDesc.ServiceName+"/"):
				f.Errorf(path+".method", method, "belongs to the fault server itself: must be a method of another service")
			case again:
				f.Errorf(path+".method", method, "already has a script: must have only one")
			}
			if len(list) == 0 {
				f.Errorf(path+".steps", nil, "must have at least one step, such as {ok: {}}")
			}
		})
		b.all[method] = append(b.all[method], list...)
	})
}

// step reads one step; inner is that of a random one. Errors that only the test server finds are reported for the whole step.
func (b *builder) step(path string, f *document.Fields, inner bool) testserver.Step {
	before, times := b.report.ErrorCount(), 0
	step := b.refined(path, f, b.ended(path, f))
	f.Int("times", &times)
	if times > 0 {
		step = step.Times(times)
	}
	f.Later(func() {
		switch {
		case inner && (times != 0 || f.Written(path+".random")):
			f.Errorf(path, nil, "must be without times and random: they belong to the step around it")
		case times < 0 || times == 0 && f.Written(path+".times"):
			f.Errorf(path+".times", times, "must be at least 1")
		}
		if err := step.Err(); err != nil && f.ErrorCount() == before {
			f.Errorf(path, nil, "%v", err)
		}
	})
	return step
}

func none(*document.Fields) {}

// ended reads the end of a step and its moves.
func (b *builder) ended(path string, f *document.Fields) testserver.Step {
	ends := map[string]testserver.Step{"hang": testserver.Hang(), "drop": testserver.Drop()}
	f.Object("ok", none)
	f.Object("fail", func(f *document.Fields) { ends["fail"] = b.fail(path+".fail", f) })
	f.Object("hang", none)
	f.Object("drop", none)
	f.Object("random", func(f *document.Fields) { ends["random"] = b.random(path+".random", f) })
	given := f.OneOf("", "ok", "fail", "hang", "drop", "random")
	var list []faults.Move
	f.List("moves", func(path string, n *document.Node) {
		b.report.Read(path, n, func(f *document.Fields) { list = append(list, b.move(path, f)) })
	})
	f.Later(func() { b.checkCuts(path, f, given, len(list)) })
	if len(list) == 0 {
		return ends[given]
	}
	play := faults.Play(list...)
	if given != "" {
		play = play.Then(ends[given])
	}
	return play
}

// checkCuts reports what stands behind a cut, which ends a step: no connection is left.
func (b *builder) checkCuts(path string, f *document.Fields, end string, movesGiven int) {
	for i := range movesGiven {
		field := document.Item(path+".moves", i) + ".cut"
		switch {
		case !f.Written(field):
		case i < movesGiven-1:
			f.Errorf(field, nil, "must be the last move: the connection is gone then")
		case end != "":
			f.Errorf(path+"."+end, nil, "must be left out: the moves end with a cut, and then the connection is gone")
		case f.Written(path + ".replies"):
			f.Errorf(path+".replies", nil, "must be left out: the moves end with a cut, and then the connection is gone; "+
				"send messages before it")
		}
	}
}

func notNegative(f *document.Fields, path string, d time.Duration) {
	if d < 0 {
		f.Errorf(path, d, "must be at least 0s")
	}
}

func (b *builder) random(path string, f *document.Fields) (step testserver.Step) {
	var (
		p    float64
		seed int
	)
	f.Number("probability", &p)
	f.Int("seed", &seed)
	f.Object("step", func(f *document.Fields) { step = b.step(path+".step", f, true) })
	f.Later(func() {
		if p < 0 || p > 1 {
			f.Errorf(path+".probability", p, "must be at least 0 and at most 1")
		}
	})
	return testserver.Random(uint64(seed), p, step)
}

func (b *builder) move(path string, f *document.Fields) (m faults.Move) {
	var (
		receive int
		pause   time.Duration
	)
	f.Int("receive", &receive)
	f.Object("send", func(f *document.Fields) { m = faults.SendRaw(b.message(path+".send", f)...) })
	f.Duration("pause", &pause)
	f.Object("cut", none)
	f.Later(func() {
		if receive < 0 {
			f.Errorf(path+".receive", receive, "must be at least 0")
		}
		notNegative(f, path+".pause", pause)
	})
	switch f.OneOf("", "receive", "send", "pause", "cut") {
	case "send":
		return m
	case "receive":
		return faults.Receive(receive)
	case "cut":
		return faults.Cut()
	case "":
		f.Later(func() {
			if f.Whole(path) {
				f.Errorf(path, nil, "must be a move such as receive, send or cut")
			}
		})
	}
	return faults.Pause(pause)
}

// refined adds delays, headers and the trailer.
func (b *builder) refined(path string, f *document.Fields, step testserver.Step) testserver.Step {
	var delay time.Duration
	f.Duration("delay", &delay)
	f.Later(func() { notNegative(f, path+".delay", delay) })
	f.Object("queue", func(f *document.Fields) { step = b.queued(path+".queue", f, step) })
	if md := b.metadata(f, "header"); len(md) > 0 {
		step = step.Header(md)
	}
	trailer := b.metadata(f, "trailer")
	var pushback []string
	var form []string
	if n, _ := f.Value("pushback"); n != nil && (n.Kind == document.Number || n.Kind == document.Text) {
		form = append(form, strconv.Quote(n.Text))
	}
	f.List("pushback", func(path string, n *document.Node) {
		if n.Kind != document.Text {
			b.report.Misfit(path, n, "must be a string; put it in quotes")
			return
		}
		b.ascii(path, n.Text)
		pushback = append(pushback, n.Text)
	}, form...)
	step = step.Delay(delay)
	var raw [][]byte
	f.List("replies", func(path string, n *document.Node) {
		b.report.Read(path, n, func(f *document.Fields) { raw = append(raw, b.message(path, f)...) })
	})
	if f.Written(path + ".replies") {
		step = step.RawReplies(raw...)
	}
	if len(trailer) > 0 {
		step = step.Trailer(trailer)
	}
	if len(pushback) > 0 {
		step = step.Pushback(pushback...)
	}
	return step
}

func (b *builder) queued(path string, f *document.Fields, step testserver.Step) testserver.Step {
	var c faults.QueueConfig
	f.Int("workers", &c.Workers)
	f.Duration("serviceTime", &c.Time)
	f.Int("length", &c.Length)
	f.Later(func() {
		if c.Workers < 1 {
			f.Errorf(path+".workers", c.Workers, "must be at least 1")
		}
		if c.Time <= 0 {
			f.Errorf(path+".serviceTime", c.Time, "must be more than 0s")
		}
		if c.Length < 0 {
			f.Errorf(path+".length", c.Length, "must be at least 0")
		}
	})
	made, err := faults.NewQueue(c)
	if err != nil {
		return step // which is reported
	}
	return made.Serve(step)
}

// fail returns the step that ends with an error.
func (b *builder) fail(path string, f *document.Fields) testserver.Step {
	const want = "must be the name or the number of a status code, but not OK: UNAVAILABLE, 14"
	var (
		text  = "scripted failure"
		delay time.Duration
	)
	name, _ := f.TextOrNumber("code", want)
	f.Text("message", &text)
	f.Duration("retryInfo", &delay)
	c, ok := codename.Parse(name)
	if !ok {
		f.Later(func() { f.Errorf(path+".code", name, want) })
		return testserver.Step{}
	}
	step := testserver.Fail(c, text)
	if f.Written(path + ".retryInfo") {
		step = step.RetryInfo(delay)
	}
	return step
}

// message returns the encoded message, once for each time that it is sent.
func (b *builder) message(path string, f *document.Fields) [][]byte {
	var times int
	raw := b.binary(f, "raw", path)
	if n, path := f.Value("json"); n != nil {
		raw = b.json(path, n)
	}
	f.OneOf("", "raw", "json")
	if f.Int("times", &times); times < 0 {
		f.Errorf(path+".times", times, "must be at least 0")
	}
	times = max(1, times)
	if times > maxMessages-b.messages || len(raw) > (maxMessageBytes-b.bytes)/times {
		f.Errorf(path, nil, "all messages together must be at most %d, and have at most 64 MiB", maxMessages)
		return nil
	}
	b.messages += times
	b.bytes += times * len(raw)
	return slices.Repeat([][]byte{raw}, times)
}

// binary reads base64 in either alphabet, with or without padding, as protojson does.
func (b *builder) binary(f *document.Fields, key, path string) []byte {
	var text string
	f.Text(key, &text)
	raw, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(strings.NewReplacer("-", "+", "_", "/").Replace(text), "="))
	if err != nil {
		f.Errorf(path+"."+key, text, "must be bytes in base64")
	}
	return raw
}

// json returns a response of the script's method.
func (b *builder) json(path string, n *document.Node) []byte {
	if b.method == "" {
		return nil // which is reported
	}
	d, _ := b.known.FindDescriptorByName(protoreflect.FullName(strings.ReplaceAll(strings.TrimPrefix(b.method, "/"), "/", ".")))
	method, ok := d.(protoreflect.MethodDescriptor)
	if !ok {
		b.report.Errorf(path, nil, "must be raw: a response in JSON needs a script for one method, "+
			"which the server knows by --descriptors, unlike %s", document.Shorten(b.method))
		return nil
	}
	text := object(b.report.Plain(path, n))
	m := dynamicpb.NewMessage(method.Output())
	if err := (protojson.UnmarshalOptions{Resolver: dynamicpb.NewTypes(b.known)}).Unmarshal([]byte(text), m); err != nil {
		b.report.Errorf(path, nil, "must be the JSON form of %s: %s", m.Descriptor().FullName(), detail(err))
		return nil
	}
	raw, _ := proto.MarshalOptions{Deterministic: true}.Marshal(m) // it is whole, or Unmarshal had refused it
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

// metadata reads headers or trailers.
func (b *builder) metadata(f *document.Fields, key string) metadata.MD {
	md := metadata.MD{}
	f.List(key, func(item string, n *document.Node) {
		b.report.Read(item, n, func(f *document.Fields) {
			var given, value string
			f.Text("key", &given)
			f.Text("value", &value)
			bytes := b.binary(f, "binary", item)
			key := strings.ToLower(given)
			binary := strings.HasSuffix(key, "-bin")
			f.Later(func() {
				switch {
				case !keyForm.MatchString(key):
					f.Errorf(item+".key", given, "must be letters, digits, -, _ and .")
				case testserver.OK().Header(metadata.Pairs(key, "")).Err() != nil:
					f.Errorf(item+".key", given, "is written by gRPC itself; must be another")
				case binary && value != "":
					f.Errorf(item+".value", value, "must be binary: the key ends in -bin")
				case binary:
				case len(bytes) > 0:
					f.Errorf(item+".binary", bytes, "must be value: the key does not end in -bin")
				default:
					b.ascii(item+".value", value)
				}
			})
			if binary {
				md.Append(key, string(bytes))
			} else {
				md.Append(key, value)
			}
		})
	})
	return md
}

// ascii checks the value of a key that does not end in -bin.
func (b *builder) ascii(path, value string) {
	if !valueForm.MatchString(value) {
		b.report.Errorf(path, value, "must be printable ASCII; other bytes need a key that ends in -bin")
	}
}
