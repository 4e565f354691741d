// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/stagger-go/stagger/policy"
)

// BenchmarkWithDescriptors is the start of a program with a thousand services of three methods, each with a
// policy: what New does once.
func BenchmarkWithDescriptors(b *testing.B) {
	one := apiSet(nil, map[string]*descriptorpb.MethodOptions{
		"Create": with(goodRetry(nil)), "Get": with(goodRetry(nil)), "List": with(goodRetry(nil)),
	})
	api := apiOf(one)
	for i := range 999 {
		more := proto.CloneOf(api.GetService()[0])
		more.Name = new(fmt.Sprintf("Orders%d", i))
		api.Service = append(api.Service, more)
	}
	files, err := policy.ParseDescriptors("api.binpb", marshal(b, one))
	if err != nil {
		b.Fatal(err)
	}
	set := mustParse(b, "f", "{}")
	for b.Loop() {
		if _, err := set.WithDescriptors(files); err != nil {
			b.Fatal(err)
		}
	}
}
