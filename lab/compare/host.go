// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// host is what the figures were taken on.
type host struct {
	Go       string   `json:"go"`
	Platform string   `json:"platform"`
	CPUs     int      `json:"cpus"` // that Go uses
	Modules  []string `json:"modules"`
}

// compared are the modules whose versions matter.
var compared = []string{"google.golang.org/grpc", "github.com/grpc-ecosystem/go-grpc-middleware/v2", "github.com/failsafe-go/failsafe-go"}

func thisHost() host {
	h := host{Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, CPUs: runtime.GOMAXPROCS(0)}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return h
	}
	for _, path := range compared {
		for _, m := range build.Deps {
			if m.Path == path {
				h.Modules = append(h.Modules, m.Path+" "+m.Version)
			}
		}
	}
	return h
}

func (h host) String() string {
	return fmt.Sprintf("%s, %s, %d CPUs; %s", h.Go, h.Platform, h.CPUs, strings.Join(h.Modules, ", "))
}
