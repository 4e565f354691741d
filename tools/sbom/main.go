// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Command sbom lists the modules that programs were built from, as the Go linker has recorded them, in CycloneDX's JSON: those
// of all platforms in one list.
//
//	sbom VERSION PROGRAM…
package main

import (
	"cmp"
	"debug/buildinfo"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: sbom VERSION PROGRAM…")
		os.Exit(2)
	}
	if err := write(os.Stdout, os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// write writes the list of the modules of some programs, which are one program for several platforms.
func write(w io.Writer, version string, programs []string) error {
	modules := map[string]cdx.Component{}
	var program cdx.Component
	for _, file := range programs {
		info, err := buildinfo.ReadFile(file)
		if err != nil {
			return err
		}
		program = component(cdx.ComponentTypeApplication, info.Main.Path, version)
		std := component(cdx.ComponentTypeLibrary, "std", info.GoVersion)
		modules[std.BOMRef] = std
		for _, m := range info.Deps {
			if m.Replace != nil {
				return fmt.Errorf("%s: %s is replaced by %s, which no user can get", file, m.Path, m.Replace.Path)
			}
			c := component(cdx.ComponentTypeLibrary, m.Path, m.Version)
			modules[c.BOMRef] = c
		}
	}
	list := slices.SortedFunc(maps.Values(modules), func(a, b cdx.Component) int { return cmp.Compare(a.BOMRef, b.BOMRef) })
	refs := slices.Sorted(maps.Keys(modules))
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Component: &program}
	bom.Components = &list
	bom.Dependencies = &[]cdx.Dependency{{Ref: program.BOMRef, Dependencies: &refs}}
	return cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
}

func component(kind cdx.ComponentType, path, version string) cdx.Component {
	url := "pkg:golang/" + path + "@" + version
	return cdx.Component{Type: kind, Name: path, Version: version, PackageURL: url, BOMRef: url}
}
