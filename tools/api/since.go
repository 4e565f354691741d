// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"

	"golang.org/x/exp/apidiff"
	"golang.org/x/tools/go/packages"
)

// printIncompatible prints which changes from old to new packages break programs, and fails if there are any.
func printIncompatible(old, current []*packages.Package) {
	now := map[string]*packages.Package{}
	for _, p := range current {
		now[p.PkgPath] = p
	}
	broken := false
	for _, before := range old {
		p := now[before.PkgPath]
		if p == nil {
			broken = true
			fmt.Printf("%s: package removed\n", before.PkgPath)
			continue
		}
		for _, c := range apidiff.Changes(before.Types, p.Types).Changes {
			if !c.Compatible {
				broken = true
				fmt.Printf("%s: %s\n", p.PkgPath, c.Message)
			}
		}
	}
	if broken {
		os.Exit(1)
	}
}
