// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"crypto/sha256"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/stagger-go/stagger/internal/document"
	policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"
)

// Parse parses a policy file: a gRPC service config, in JSON or YAML, with stagger's own keys as well (proto/stagger/policy/v1
// lists them all).
//
// file is the name for diagnostics. It is not opened, so data may be embedded in the program. If the name ends in ".json", or
// the text begins with "{", the format is JSON, otherwise YAML. The error is an [*Error] with all errors in the file, each with
// line and column, the value, and the allowed values. Parse never skips or rounds anything silently: unknown keys, duplicate
// keys, and numbers in quotes are errors, as in gRFC A6. A file has at most 1 MiB, 50,000 values and 32 levels.
//
// [Set.Warnings] has warnings on valid settings. Parse is safe for concurrent use, and keeps no reference to data.
func Parse(file string, data []byte) (*Set, error) {
	report := document.NewReport(file)
	f := read(report, data)
	if f == nil {
		return nil, refusal(report)
	}
	warnSpelling(report, f)
	set, err := newSet(convert(report, f), report)
	if err == nil {
		set.source, set.digest = file, sha256.Sum256(data)
	}
	return set, err
}

// Load reads the policy file at path; see [Parse] for its format and its errors. If the file can't be read, the error is that
// of package os, with the path, and works with errors.Is and fs.ErrNotExist. Load stops reading at the limit of [Parse], even
// for an endless device. It reads a pipe to its end, so that a shell's <(…) works. A pipe without a writer is an error.
func Load(path string) (*Set, error) {
	data, err := document.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, data)
}

var fileFormat = document.Format{Name: "policy file", Key: "methodConfig", MayLack: true}

// read returns the readable parts of a file, or nil if the report has an error for all of it.
func read(report *document.Report, data []byte) *policyv1.PolicyFile {
	root := document.Parse(report, data, fileFormat)
	if root == nil || isObject(report, root) {
		return nil
	}
	var f policyv1.PolicyFile
	decoder := document.Decoder{
		Report: report,
		Custom: func(field string, n *document.Node, fd protoreflect.FieldDescriptor) (protoreflect.Value, bool) {
			return readCustom(report, field, n, fd)
		},
		Rivals: map[protoreflect.Name]string{"retry_or_hedging_policy": "; gRPC for Go would ignore hedgingPolicy"},
	}
	decoder.Decode("", root, f.ProtoReflect())
	return &f
}

// isObject reports a whole Kubernetes object: none of its keys is a policy file's.
func isObject(report *document.Report, root *document.Node) bool {
	kind := root.Get("kind")
	if kind == nil || root.Get("apiVersion") == nil || root.Get("methodConfig") != nil {
		return false
	}
	switch name := document.Shorten(kind.Text); name {
	case "ConfigMap", "Secret":
		report.ErrorAt(kind.At, "kind", "%s: is a whole Kubernetes object; the policy file is in its data: lint its data, "+
			"as with kubectl get %s NAME -o jsonpath='{.data.retry\\.yaml}' | stagger lint -", name, strings.ToLower(name))
	default:
		report.ErrorAt(kind.At, "kind", "%s: is a whole Kubernetes object, and no policy file, which has keys such as methodConfig; "+
			"lint its data, if that has one", name)
	}
	return true
}

// readCustom reads values with a format of their own.
func readCustom(report *document.Report, field string, n *document.Node, fd protoreflect.FieldDescriptor) (protoreflect.Value, bool) {
	switch {
	case n.Kind == document.Null && mayBeNull(fd):
		return protoreflect.Value{}, true
	case fd.Enum() != nil && isCode(fd.Enum()):
		return readCode(report, field, n, fd.Enum()), true
	case n.Kind == document.Object && fd.Name() == "budget":
		report.Misfit(field, n, `must be the name of a budget, which the file declares at its top: `+
			`budgets: [{name: orders, ratio: {percent: 10}}]; or NONE`)
		return protoreflect.Value{}, true
	case n.Kind == document.Text && fd.JSONName() == balancingKey:
		report.Misfit(field, n, "must be a list of policies, such as [{"+cmp.Or(n.Text, "round_robin")+": {}}]")
		return protoreflect.Value{}, true
	case n.Kind == document.Number && zeroIsWrong(fd):
		// The checks report 0, and so report a negative number as well, which the field can't hold.
		if v, err := strconv.Atoi(n.Text); err == nil && v < 0 {
			return protoreflect.ValueOfUint32(0), true
		}
	}
	return protoreflect.Value{}, false
}

// mayBeNull reports whether gRPC accepts null for an absent field (service_config.proto). Elsewhere a key without a value is
// probably a mistake.
func mayBeNull(fd protoreflect.FieldDescriptor) bool {
	return fd.FullName() == "stagger.policy.v1.Name.service" || fd.FullName() == "stagger.policy.v1.Name.method"
}

func zeroIsWrong(fd protoreflect.FieldDescriptor) bool {
	return fd.Name() == "max_attempts" || fd.Name() == "max_tokens" || fd.Name() == "max_waiting" || fd.Name() == "max_attempts_limit"
}
