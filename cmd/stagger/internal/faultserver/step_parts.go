// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"math"
	"regexp"
	"strings"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/stagger-go/stagger/internal/document"
	"github.com/stagger-go/stagger/internal/tools/moves"
	"github.com/stagger-go/stagger/internal/tools/queue"
	faultserverv1 "github.com/stagger-go/stagger/proto/stagger/faultserver/v1"
)

// Limits on all messages of a request or file together, so that a typing error does not fill the memory.
const (
	maxMessages     = 100_000
	maxMessageBytes = 64 << 20
)

// replies returns the messages of a step.
func (b *builder) replies(path string, messages []*faultserverv1.Message) [][]byte {
	list := make([][]byte, 0, len(messages))
	for i, m := range messages {
		list = append(list, b.message(document.Item(path, i), m)...)
	}
	return list
}

// message returns the encoded message, once for each time that it is sent.
func (b *builder) message(path string, m *faultserverv1.Message) [][]byte {
	raw := m.GetRaw()
	if v, ok := m.GetForm().(*faultserverv1.Message_Json); ok {
		raw = b.json(path+".json", v.Json)
	}
	times := max(1, int(m.GetTimes()))
	if times > maxMessages-b.messages {
		b.report.Errorf(path, nil, "all messages together must be at most %d", maxMessages)
		return nil
	}
	if len(raw) > (maxMessageBytes-b.bytes)/times {
		b.report.Errorf(path, nil, "all messages together must have at most %d bytes (64 MiB)", maxMessageBytes)
		return nil
	}
	b.messages += times
	b.bytes += times * len(raw)
	list := make([][]byte, times)
	for i := range list {
		list[i] = raw
	}
	return list
}

// json returns a response of the script's method.
func (b *builder) json(path string, v *structpb.Value) []byte {
	if strings.HasSuffix(b.method, "*") {
		b.report.Errorf(path, nil, "must be raw: only scripts of one method have a response type, and this one is for %s", document.Shorten(b.method))
		return nil
	}
	d := b.known.reply(b.method)
	if d == nil {
		b.report.Errorf(path, nil, "must be raw, or the server must be started with --descriptors: it does not know the method %s", document.Shorten(b.method))
		return nil
	}
	text, err := protojson.Marshal(v)
	if err != nil {
		b.report.Errorf(path, nil, "must be a JSON value: %s", detail(err))
		return nil
	}
	m := dynamicpb.NewMessage(d)
	if err := (protojson.UnmarshalOptions{Resolver: b.known}).Unmarshal(text, m); err != nil {
		b.report.Errorf(path, nil, "must be the JSON form of %s: %s", d.FullName(), detail(err))
		return nil
	}
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		b.report.Errorf(path, nil, "must be a whole %s: %s", d.FullName(), detail(err))
	}
	return raw
}

// mark matches the prefix of protobuf's errors: its name, a blank that varies, and a position in a text that users never
// see.
var mark = regexp.MustCompile(`^proto:[\s\x{a0}]*(?:syntax error )?(\(line \d+:\d+\): )?`)

// detail returns protobuf's error about a message in JSON without that prefix.
func detail(err error) string { return mark.ReplaceAllString(err.Error(), "") }

// metadata builds headers or trailers.
func (b *builder) metadata(path string, entries []*faultserverv1.Entry) metadata.MD {
	md := metadata.MD{}
	for i, e := range entries {
		value := e.GetValue()
		key := strings.ToLower(e.GetKey())
		switch binary := strings.HasSuffix(key, "-bin"); {
		case !keyForm.MatchString(key):
			b.report.Errorf(document.Item(path, i)+".key", e.GetKey(), "must be letters, digits, -, _ and .")
		case binary && value != "":
			b.report.Errorf(document.Item(path, i)+".value", value, "must be binary: the key ends in -bin")
		case binary:
			value = string(e.GetBinary())
		case len(e.GetBinary()) > 0:
			b.report.Errorf(document.Item(path, i)+".binary", e.GetBinary(), "must be value: the key does not end in -bin")
		default:
			b.ascii(document.Item(path, i)+".value", value)
		}
		md.Append(key, value)
	}
	return md
}

// The forms of metadata keys and values.
var (
	keyForm   = regexp.MustCompile(`^[0-9a-z_.-]+$`)
	valueForm = regexp.MustCompile(`^[ -~]*$`)
)

// ascii checks the value of a key that does not end in -bin.
func (b *builder) ascii(path, value string) {
	if !valueForm.MatchString(value) {
		b.report.Errorf(path, value, "must be printable ASCII; other bytes need a key that ends in -bin")
	}
}

func (b *builder) moves(path string, from []*faultserverv1.Move) []moves.Move {
	list := make([]moves.Move, len(from))
	for i, m := range from {
		list[i] = b.move(document.Item(path, i), m)
	}
	return list
}

func (b *builder) move(path string, m *faultserverv1.Move) moves.Move {
	switch m := m.GetMove().(type) {
	case *faultserverv1.Move_Receive:
		return moves.Receive(b.atLeastOne(path+".receive", m.Receive))
	case *faultserverv1.Move_ReceiveAll:
		return moves.Receive(0)
	case *faultserverv1.Move_SendHeader:
		return moves.SendHeader(b.metadata(path+".sendHeader.entries", m.SendHeader.GetEntries()))
	case *faultserverv1.Move_Send:
		return moves.SendRaw(b.message(path+".send", m.Send)...)
	case *faultserverv1.Move_Echo:
		return moves.Echo(b.atLeastOne(path+".echo", m.Echo))
	case *faultserverv1.Move_EchoAll:
		return moves.Echo(0)
	case *faultserverv1.Move_Pause:
		return moves.Pause(b.wait(path+".pause", m.Pause))
	case *faultserverv1.Move_Cut:
		return moves.Cut()
	}
	b.report.Errorf(path, nil, "must be a move such as receive, send or cut")
	return moves.Pause(0)
}

func (b *builder) atLeastOne(path string, n uint32) int {
	if n < 1 || n > math.MaxInt32 { // fits an int on every
		b.report.Errorf(path, n, "must be 1 to %d", math.MaxInt32)
		return 1
	}
	return int(n)
}

// namedQueue is a queue with a name.
type namedQueue struct {
	settings *faultserverv1.Queue
	it       *queue.Queue
}

// onlyName reports whether q has only a name.
func onlyName(q *faultserverv1.Queue) bool {
	return q.GetName() != "" && proto.Equal(q, &faultserverv1.Queue{Name: q.GetName()})
}

// define creates the queues that steps name and describe, so that other steps may refer to them, before or after.
func (b *builder) define(path string, steps []*faultserverv1.Step) {
	for i, s := range steps {
		here := document.Item(path, i)
		for depth := 0; s != nil && depth <= maxDepth; depth++ {
			if q := s.GetQueue(); q.GetName() != "" && !onlyName(q) {
				b.defineQueue(here+".queue", q)
			}
			s = s.GetRandom().GetStep()
			here += ".random.step"
		}
	}
}

func (b *builder) defineQueue(path string, q *faultserverv1.Queue) {
	if known, ok := b.queues[q.GetName()]; ok {
		if !proto.Equal(known.settings, q) {
			b.report.Errorf(path+".name", q.GetName(),
				"there is a queue of this name with other settings: give the same settings, only the name, or another name")
		}
		return
	}
	b.queues[q.GetName()] = namedQueue{q, b.newQueue(path, q)}
}

// queue returns the queue of a step, or nil after an error.
func (b *builder) queue(path string, q *faultserverv1.Queue) *queue.Queue {
	if q.GetName() == "" {
		return b.newQueue(path, q)
	}
	known, ok := b.queues[q.GetName()]
	if !ok {
		b.report.Errorf(path+".name", q.GetName(), "there is no queue of this name: some step must give its workers and serviceTime")
	}
	return known.it
}

func (b *builder) newQueue(path string, q *faultserverv1.Queue) *queue.Queue {
	before, service := b.report.ErrorCount(), q.GetServiceTime().AsDuration()
	if q.GetWorkers() < 1 {
		b.report.Errorf(path+".workers", q.GetWorkers(), "must be at least 1")
	}
	if service <= 0 {
		b.report.Errorf(path+".serviceTime", service, `must be more than 0, such as "0.05s"`)
	}
	config := queue.Config{
		Workers: int(q.GetWorkers()), Time: service, Length: int(q.GetLength()), DropAbandoned: q.GetDropAbandoned(),
	}
	if name := q.GetRefuseWith(); name != "" {
		config.Refuse, _ = b.code(path+".refuseWith", name)
	}
	if b.report.ErrorCount() > before {
		return nil
	}
	made, err := queue.New(config)
	if err != nil {
		b.report.Errorf(path, nil, "%v", err)
	}
	return made
}
