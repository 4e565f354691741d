// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/stagger-go/stagger/internal/tools/explain"
	"github.com/stagger-go/stagger/policy"
)

// API is what some descriptor sets describe; the zero API is none.
type API struct{ files []*protoregistry.Files }

// DescriptorsFlag adds --descriptors to c.
func DescriptorsFlag(c *cobra.Command, images *[]string) {
	c.Flags().StringArrayVar(images, "descriptors", nil,
		"descriptor set of the API, made by \"buf build -o `image.binpb`\"; may be repeated")
	_ = c.MarkFlagFilename("descriptors", "binpb", "pb", "desc", "protoset") // the flag is there
}

// LoadAPI reads descriptor sets.
func LoadAPI(images []string) (API, error) {
	var a API
	for _, image := range images {
		files, err := policy.LoadDescriptors(image)
		if err != nil {
			return API{}, err
		}
		a.files = append(a.files, files)
	}
	return a, nil
}

// Known reports whether there is any descriptor set.
func (a API) Known() bool { return len(a.files) > 0 }

// Files are the descriptor sets.
func (a API) Files() []*protoregistry.Files { return slices.Clone(a.files) }

// Join returns the set with what the API brings along ([policy.Set.WithDescriptors]).
func (a API) Join(set *policy.Set) (*policy.Set, error) {
	if !a.Known() {
		return set, nil
	}
	return set.WithDescriptors(a.files...)
}

// Services are the services, by name, each from the set that comes first.
func (a API) Services() []protoreflect.ServiceDescriptor {
	var list []protoreflect.ServiceDescriptor
	seen := map[protoreflect.FullName]bool{}
	for _, files := range a.files {
		files.RangeFiles(func(f protoreflect.FileDescriptor) bool {
			for i := range f.Services().Len() {
				if s := f.Services().Get(i); !seen[s.FullName()] {
					seen[s.FullName()] = true
					list = append(list, s)
				}
			}
			return true
		})
	}
	slices.SortFunc(list, func(a, b protoreflect.ServiceDescriptor) int {
		return strings.Compare(string(a.FullName()), string(b.FullName()))
	})
	return list
}

// Methods are the names of a service's methods, in the order of its file.
func Methods(s protoreflect.ServiceDescriptor) []string {
	list := make([]string, 0, s.Methods().Len())
	for i := range s.Methods().Len() {
		list = append(list, string(s.Methods().Get(i).Name()))
	}
	return list
}

// Level is the idempotency_level of "/service/method", such as IDEMPOTENT; "" if nobody knows the method.
func (a API) Level(method string) string {
	return explain.Level(method, append(slices.Clip(a.files), protoregistry.GlobalFiles)...)
}
