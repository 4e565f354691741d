// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"encoding/base64"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/stagger-go/stagger/internal/codename"
	"github.com/stagger-go/stagger/internal/document"
	faultserverv1 "github.com/stagger-go/stagger/proto/stagger/faultserver/v1"
	"github.com/stagger-go/stagger/testserver"
)

// script has the scripts of some methods; the zero script has none.
type script struct {
	steps  map[string][]testserver.Step // by the pattern of the methods
	queues map[string]namedQueue        // by name
}

// parse reads a script file in YAML or JSON, or a request with the same content. The error is a [document.Error] with all
// errors. The steps are for a server with the queues of before; with appending, they follow those of before.
func parse(file string, data []byte, known *registry, before script, appending bool) (script, error) {
	report := document.NewReport(file)
	root := document.Parse(report, data, document.Format{Name: "script file", Key: "scripts"})
	if root == nil {
		return script{}, report.Err()
	}
	decoder := document.Decoder{
		Report: report,
		Custom: func(field string, n *document.Node, fd protoreflect.FieldDescriptor) (protoreflect.Value, bool) {
			if fd.Message() == nil || fd.Message().FullName() != "google.protobuf.Any" {
				return protoreflect.Value{}, false
			}
			return readAny(report, known, field, n), true
		},
	}
	var decoded faultserverv1.ScriptFile
	decoder.Decode("", root, decoded.ProtoReflect())
	if err := report.Err(); err != nil {
		return script{}, err
	}
	b := builder{report: report, known: known, queues: maps.Clone(before.queues)}
	if b.queues == nil {
		b.queues = map[string]namedQueue{}
	}
	if !appending {
		before.steps = nil
	}
	steps := b.build(&decoded, before.steps)
	return script{steps, b.queues}, report.Err()
}

// readAny reads a message of a type that the file names and the API has.
func readAny(report *document.Report, known *registry, field string, n *document.Node) protoreflect.Value {
	const form = `must be a message with its "@type"`
	if n.Kind != document.Object {
		report.Misfit(field, n, form)
		return protoreflect.Value{}
	}
	var message anypb.Any
	text, ok := n.JSON(report, field)
	if !ok {
		return protoreflect.Value{}
	}
	if err := (protojson.UnmarshalOptions{Resolver: known}).Unmarshal(text, &message); err != nil {
		report.Misread(field, n, "%s: %s", form, detail(err))
		return protoreflect.Value{}
	}
	return protoreflect.ValueOfMessage(message.ProtoReflect())
}

// registry has the messages and methods of the services that a fault server simulates: those of its descriptor sets in
// order, then those linked into the program.
type registry struct {
	*protoregistry.Files
	*dynamicpb.Types

	services []string // of the descriptor sets
}

// newRegistry returns a registry of descriptor sets, possibly none.
func newRegistry(sets ...*protoregistry.Files) *registry {
	a := &registry{Files: new(protoregistry.Files)}
	for _, set := range append(slices.Clip(sets), protoregistry.GlobalFiles) {
		set.RangeFiles(func(f protoreflect.FileDescriptor) bool {
			if a.RegisterFile(f) != nil || set == protoregistry.GlobalFiles { // an error: an earlier set has it
				return true
			}
			for i := range f.Services().Len() {
				a.services = append(a.services, string(f.Services().Get(i).FullName()))
			}
			return true
		})
	}
	a.Types = dynamicpb.NewTypes(a.Files)
	return a
}

// reply returns the response type of "/package.Service/Method", or nil.
func (a *registry) reply(method string) protoreflect.MessageDescriptor {
	name := strings.ReplaceAll(strings.TrimPrefix(method, "/"), "/", ".")
	d, _ := a.FindDescriptorByName(protoreflect.FullName(name))
	if m, ok := d.(protoreflect.MethodDescriptor); ok {
		return m.Output()
	}
	return nil
}

// attempt is one request as the server received it, in JSON.
type attempt struct {
	Serial           int                 `json:"serial"` // among all that have arrived, from 1
	Method           string              `json:"method"`
	Number           int                 `json:"number"`     // among those of its method, from 1
	Connection       int                 `json:"connection"` // from 1
	StartTime        time.Time           `json:"startTime"`
	EndTime          *time.Time          `json:"endTime"`          // null while it runs
	TimeoutSeconds   float64             `json:"timeoutSeconds"`   // at its start, until the client's deadline; 0 without one
	PreviousAttempts int                 `json:"previousAttempts"` // as sent by the client (gRFC
	Metadata         map[string][]string `json:"metadata"`         // values of keys that end in -bin in base64
	MessagesReceived int                 `json:"messagesReceived"`
	BytesReceived    int                 `json:"bytesReceived"` // without gRPC's framing, after decompression
	HalfClosed       bool                `json:"halfClosed"`
	MessagesSent     int                 `json:"messagesSent"`
	Code             string              `json:"code"`      // empty while it runs
	Cancelled        bool                `json:"cancelled"` // by the client, its deadline or its connection
	Requests         [][]byte            `json:"requests,omitempty"`
}

// toJSON returns an attempt without requests.
func toJSON(a testserver.Attempt) attempt {
	j := attempt{
		Serial: a.Serial, Method: a.Method, Number: a.Number, Connection: a.Conn,
		StartTime: a.Time, TimeoutSeconds: a.Timeout.Seconds(),
		PreviousAttempts: previous(a.Metadata), Metadata: maps.Clone(a.Metadata),
		MessagesReceived: a.Received, BytesReceived: a.Bytes, HalfClosed: a.HalfClosed, MessagesSent: a.Sent,
		Cancelled: a.Cancelled,
	}
	if !a.End.IsZero() {
		j.EndTime, j.Code = &a.End, codename.Of(a.Code)
	}
	for key, values := range j.Metadata {
		if strings.HasSuffix(key, "-bin") {
			values = slices.Clone(values)
			for i, v := range values {
				values[i] = base64.StdEncoding.EncodeToString([]byte(v))
			}
			j.Metadata[key] = values
		}
	}
	return j
}

// previous returns the client's grpc-previous-rpc-attempts (gRFC A6), or 0 if it is invalid.
func previous(md metadata.MD) int {
	values := md.Get("grpc-previous-rpc-attempts")
	if len(values) != 1 {
		return 0
	}
	n, _ := strconv.ParseUint(values[0], 10, 31)
	return int(n)
}
