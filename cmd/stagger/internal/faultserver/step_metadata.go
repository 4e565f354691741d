// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"regexp"
	"strings"

	"google.golang.org/grpc/metadata"

	"github.com/stagger-go/stagger/internal/document"
	faultserverv1 "github.com/stagger-go/stagger/proto/stagger/faultserver/v1"
)

// metadata makes headers or trailers.
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

// What may be in metadata (gRPC over HTTP/2: Header-Name, ASCII-Value).
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
