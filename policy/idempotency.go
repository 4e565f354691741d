// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/stagger-go/stagger/internal/defaults"
	"github.com/stagger-go/stagger/internal/document"
)

// Idempotency says whether a method may be repeated when an earlier attempt may have taken effect. "" goes by the entry's
// names: a name with a method means [IdempotencyAssume], any other [IdempotencyDeclared].
type Idempotency string

// What a policy can say of idempotency.
const (
	IdempotencyAssume   Idempotency = "ASSUME"   // safe: what gRPC takes for granted
	IdempotencyDeclared Idempotency = "DECLARED" // safe if the descriptor's idempotency_level says so
	IdempotencyNone     Idempotency = "NONE"     // not safe, whatever the descriptor says
)

// resolve settles an idempotency that is left to the name. Nobody who names a whole service thinks
// of each of its methods, so only a name with a method declares it safe.
func resolve(entry, file Idempotency, name string) Idempotency {
	switch {
	case cmp.Or(entry, file) != "":
		return cmp.Or(entry, file)
	case namesMethod(name):
		return IdempotencyAssume
	default:
		return IdempotencyDeclared
	}
}

// declaresSafe reports whether an entry of a config declares all its methods safe to repeat; false if it names none.
func (m *MethodConfig) declaresSafe(file Idempotency) bool {
	undeclared := func(n string) bool { return resolve(m.Idempotency, file, n) != IdempotencyAssume }
	return len(m.Names) > 0 && (m.IdempotencyKey != "" || !slices.ContainsFunc(m.Names, undeclared))
}

// safe reads the idempotency_level of a method's descriptor.
func (d descriptors) safe(method string) bool {
	m := d.method(method)
	return m != nil && safeLevel(m)
}

func safeLevel(m protoreflect.MethodDescriptor) bool {
	l := level(m)
	return l != nil && *l != descriptorpb.MethodOptions_IDEMPOTENCY_UNKNOWN
}

// checkIdempotencyKey checks the header that carries a key. gRPC would refuse every call that sets one
// which HTTP/2 does not allow.
func checkIdempotencyKey(report *document.Report, prefix string, s Spec) {
	header, field := s.IdempotencyKey, prefix+"idempotencyKey.header"
	switch {
	case header == "" && report.Written(field):
		report.Errorf(field, "", "must be a header, such as %s", defaults.IdempotencyHeader)
		return
	case header == "":
		return
	case strings.Trim(header, "abcdefghijklmnopqrstuvwxyz0123456789-_.") != "":
		report.Errorf(field, header, "must have only lower-case letters, digits, \"-\", \"_\" and \".\"")
	case strings.HasPrefix(header, "grpc-"):
		report.Errorf(field, header, "must not begin with grpc-, which gRPC keeps for itself")
	case strings.HasSuffix(header, "-bin"):
		report.Errorf(field, header, "must not end with -bin: the key is text")
	}
	if s.Idempotency == IdempotencyNone {
		report.Errorf(prefix+"idempotencyKey", nil, "cannot be combined with idempotency NONE: a key declares the methods idempotent")
	}
}
