// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package version is "stagger version": it shows the sources of the command.
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

const help = `Show the version of this command, the revision of its source, and the versions of Go,
the stagger library and gRPC that it was built with.

"(devel)" is a build from a working copy, not from a release. Unknown parts are left
out.`

const examples = `  stagger version
  stagger version --format json | jq -r .grpc
  stagger --version`

// Command returns "stagger version".
func Command() *cobra.Command {
	var format string
	c := &cobra.Command{
		Use:               "version",
		Short:             "Show the versions that this command was built with",
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
	cli.EnumFlag(c, &format, "format", "output format", "text", "json")
	return c
}

// Build has the versions that a program was built from; unknown ones are empty.
type Build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Time     string `json:"time,omitempty"`     // time of the revision, RFC
	Modified bool   `json:"modified,omitempty"` // the source differed from the revision
	Library  string `json:"library,omitempty"`
	GRPC     string `json:"grpc,omitempty"`
	Go       string `json:"go"`
}

// Read returns this program's build.
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

// String returns a line for each part.
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
