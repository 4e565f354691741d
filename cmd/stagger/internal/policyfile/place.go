// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policyfile

import "github.com/stagger-go/stagger/internal/document"

// Place is where a name stands in a policy file, and its field.
type Place struct {
	document.Position

	Entry, Name int // methodConfig[Entry].name[Name]
}

// Places finds the names of a file that is known to be a policy file, in its order: that of
// [policy.Set.Policies].
func Places(file string, data []byte) []Place {
	root := document.Parse(document.NewReport(file), data, document.Format{Name: "policy file", Key: "methodConfig"})
	if root == nil || root.Get("methodConfig") == nil {
		return nil
	}
	var list []Place
	for i, entry := range root.Get("methodConfig").Items {
		if names := entry.Get("name"); names != nil {
			for j, name := range names.Items {
				list = append(list, Place{name.At, i, j})
			}
		}
	}
	return list
}
