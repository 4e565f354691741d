// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package version is "stagger version": what the command was built from.
package version

import (
	"fmt"
	"io"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stagger-go/stagger/cmd/stagger/internal/cli"
)

const help = `Show what this command was built from: its version, the revision of its source, and
the versions of Go, of the stagger library and of gRPC in it.

"(devel)" is a build from a working copy, not from a release. What a build does not
say is left out.`

const examples = `  stagger version
  stagger version --format json | jq -r .grpc
  stagger --version`

// Command is "stagger version".
func Command() *cobra.Command {
	var format string
	c := &cobra.Command{
		Use:               "version",
		Short:             "Show what this command was built from",
		Long:              help,
		Example:           examples,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			if format == "json" {
				return cli.WriteJSON(c.OutOrStdout(), Read())
			}
			_, err := io.WriteString(c.OutOrStdout(), Read().String())
			return err
		},
	}
	cli.EnumFlag(c, &format, "format", "how the answer is written", "text", "json")
	return c
}

// Build is what a program was built from; what it does not know is empty.
type Build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Time     string `json:"time,omitempty"`     // of the revision, RFC 3339
	Modified bool   `json:"modified,omitempty"` // the source was not that of the revision
	Library  string `json:"library,omitempty"`
	GRPC     string `json:"grpc,omitempty"`
	Go       string `json:"go"`
}

// Read is this program's build.
func Read() Build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return Build{Version: "unknown", Go: "unknown"}
	}
	return of(info)
}

func of(info *debug.BuildInfo) Build {
	b := Build{Version: info.Main.Version, Go: info.GoVersion}
	if b.Version == "" {
		b.Version = "(devel)"
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	for _, m := range info.Deps {
		version := m.Version
		switch r := m.Replace; {
		case r == nil:
		case strings.HasPrefix(r.Path, ".") || filepath.IsAbs(r.Path):
			version = "(devel)" // from a folder
		default:
			version = r.Path + " " + r.Version
		}
		switch m.Path {
		case "github.com/stagger-go/stagger":
			b.Library = version
		case "google.golang.org/grpc":
			b.GRPC = version
		}
	}
	return b
}

// String is a line for each part.
func (b Build) String() string {
	var out strings.Builder
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&out, "%-9s %s\n", name, value)
		}
	}
	revision := b.Revision
	if b.Time != "" {
		revision += " of " + b.Time
	}
	if b.Modified {
		revision += ", modified"
	}
	line("stagger", b.Version)
	line("revision", revision)
	line("library", b.Library)
	line("grpc", b.GRPC)
	line("go", b.Go)
	return out.String()
}
