// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/stagger-go/stagger/cmd/stagger/internal/api"
	"github.com/stagger-go/stagger/cmd/stagger/internal/policyfile"
	"github.com/stagger-go/stagger/policy"
)

// complete completes a policy file, then the methods that it or its API names. What cannot be read completes
// nothing: the command itself says why.
func complete(c *cobra.Command, args []string, word string, images []string) ([]string, cobra.ShellCompDirective) {
	if len(args) != 1 {
		return policyfile.CompleteOne(c, args, word)
	}
	known, set, err := load(c, args[0], images)
	if err != nil || args[0] == "-" {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var list []string
	add := func(n policy.Name) {
		path := n.String()
		if !strings.HasPrefix(word, "/") {
			path = path[1:]
		}
		if n.Method != "" && strings.HasPrefix(path, word) {
			list = append(list, path)
		}
	}
	for _, p := range set.Policies() {
		if set.Configured(p) {
			add(p.Name())
		}
	}
	for _, s := range known.Services() {
		for _, method := range api.Methods(s) {
			add(policy.Name{Service: string(s.FullName()), Method: method})
		}
	}
	return list, cobra.ShellCompDirectiveNoFileComp
}
