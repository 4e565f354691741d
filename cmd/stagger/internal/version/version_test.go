// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package version

import (
	"encoding/json"
	"runtime/debug"
	"strings"
	"testing"
)

func TestBuild(t *testing.T) {
	t.Parallel()
	b := of(&debug.BuildInfo{
		GoVersion: "go1.26.8",
		Main:      debug.Module{Version: "v1.2.3"},
		Deps: []*debug.Module{
			{Path: "github.com/stagger-go/stagger", Version: "v0.0.0", Replace: &debug.Module{Path: "../..", Version: "(devel)"}},
			{Path: "google.golang.org/grpc", Version: "v1.85.0"},
		},
		Settings: []debug.BuildSetting{
			{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.time", Value: "2026-01-02T03:04:05Z"}, {Key: "vcs.modified", Value: "true"},
		},
	})
	const want = `stagger   v1.2.3
revision  abc of 2026-01-02T03:04:05Z, modified
library   (devel)
grpc      v1.85.0
go        go1.26.8
`
	if got := b.String(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

func TestBuildWithGaps(t *testing.T) {
	t.Parallel()
	b := of(&debug.BuildInfo{GoVersion: "go1.26", Deps: []*debug.Module{
		{Path: "google.golang.org/grpc", Version: "v1.85.0", Replace: &debug.Module{Path: "example.com/grpc", Version: "v1.99.0"}},
	}})
	if got, want := b.String(), "stagger   (devel)\ngrpc      example.com/grpc v1.99.0\ngo        go1.26\n"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

func TestFormatJSON(t *testing.T) {
	t.Parallel()
	for format, valid := range map[string]bool{"json": true, "text": false} {
		var out strings.Builder
		c := Command()
		c.SetArgs([]string{"--format", format})
		c.SetOut(&out)
		var b Build
		if err := c.Execute(); err != nil || (json.Unmarshal([]byte(out.String()), &b) == nil) != valid {
			t.Errorf("%s: %v\n%s", format, err, out.String())
		}
		if valid && !strings.HasPrefix(b.Go, "go1.") {
			t.Errorf("%+v", b)
		}
	}
}
