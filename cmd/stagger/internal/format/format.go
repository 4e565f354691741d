// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/stagger-go/stagger/policy"
	policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"
)

// format gives a policy file the canonical layout. A file with mistakes is refused with all of them.
func format(file string, data []byte) ([]byte, error) {
	before, err := policy.Parse(file, data)
	if err != nil {
		return nil, err
	}
	read, write := readYAML, writeYAML
	if isJSON(file, data) {
		read, write = readJSON, writeJSON
	}
	root, err := read(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	gaps := gapsOf(root, data)
	arrange(root.Content[0], new(policyv1.PolicyFile).ProtoReflect().Descriptor())
	reanchor(root, map[*yaml.Node]bool{})
	out, err := write(root, gaps)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if err := unchanged(file, before, data, out); err != nil {
		return nil, err
	}
	return out, nil
}

// isJSON is what [policy.Parse] takes for JSON.
func isJSON(file string, data []byte) bool {
	return strings.HasSuffix(file, ".json") || bytes.HasPrefix(bytes.TrimSpace(data), []byte("{"))
}

// comment is where a comment may begin. Texts are kept too, so that its number must be the same.
var comment = regexp.MustCompile(`(?m)(^|\s)#`)

// unchanged refuses a layout that means something else, or has lost a comment: a file is better left as it is.
func unchanged(file string, before *policy.Set, data, out []byte) error {
	after, err := policy.Parse(file, out)
	if err != nil || !same(before, after) {
		return errors.Join(fmt.Errorf("%s: left as it is: another layout would change its meaning", file), err)
	}
	if len(comment.FindAll(data, -1)) != len(comment.FindAll(out, -1)) {
		return fmt.Errorf("%s: left as it is: another layout would lose comments; put each on a line of its own", file)
	}
	return nil
}

// same reports whether two files say the same.
func same(a, b *policy.Set) bool {
	plainA, _ := a.ServiceConfig() // what is for gRPC alone
	plainB, _ := b.ServiceConfig()
	return bytes.Equal(plainA, plainB) && reflect.DeepEqual(said(a), said(b))
}

func said(s *policy.Set) []any {
	policies := s.Policies()
	list := make([]any, 0, 3+2*len(policies))
	list = append(list, s.Budgets(), s.Throttling(), s.MaxWaiting())
	for _, p := range policies {
		list = append(list, p.Name(), p.Spec())
	}
	return list
}
