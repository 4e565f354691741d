// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	_ "embed" // for help topics
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stagger-go/stagger/cmd/stagger/internal/cli"
	"github.com/stagger-go/stagger/internal/report/terminal"
)

const about = `stagger gives gRPC clients retries whose load is bounded in an outage. This command
is for its policy files: it checks them (lint), shows what they do (explain),
converts them for other gRPC implementations (export, migrate), and simulates
failures to test them (simulate, demo).

"stagger help policy" shows such a file, and "stagger help keys" all its keys.`

const examples = `  stagger lint retry.yaml
  stagger explain retry.yaml acme.orders.v1.OrderService/GetOrder --code UNAVAILABLE
  stagger explain retry.yaml --all --descriptors image.binpb
  source <(stagger completion bash)`

const exitCodes = `
Exit codes:
  0  success
  1  an error was found, or a file cannot be read or written
  2  usage error
`

func root() *cobra.Command {
	return &cobra.Command{
		Use:          "stagger",
		Short:        "Retries for gRPC clients, bounded in an outage",
		Long:         about,
		Example:      examples,
		Version:      versionOf(buildInfo(), ""),
		SilenceUsage: true, // the usage is for usage errors
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknown(c, args[0])
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
}

func buildInfo() *debug.BuildInfo {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return new(debug.BuildInfo)
	}
	return info
}

// versionOf returns the version of a module in the build, or of the program itself for "".
func versionOf(info *debug.BuildInfo, module string) string {
	m := &info.Main
	if i := slices.IndexFunc(info.Deps, func(m *debug.Module) bool { return m.Path == module }); i >= 0 {
		m = info.Deps[i]
	}
	if m.Replace != nil {
		m = m.Replace
	}
	return cmp.Or(m.Version, "(devel)")
}

// versions returns what "stagger version" and "stagger --version" print.
func versions(info *debug.BuildInfo) string {
	return fmt.Sprintf("stagger   %s\nlibrary   %s\ngrpc      %s\ngo        %s\n", versionOf(info, ""),
		versionOf(info, "github.com/stagger-go/stagger"), versionOf(info, "google.golang.org/grpc"), info.GoVersion)
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the versions that this command was built with",
		Long: `Show the versions of this command, the stagger library, gRPC and Go that it was built
with. "(devel)" is a build from a working copy, not from a release.`,
		Example:           "  stagger version",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := io.WriteString(c.OutOrStdout(), versions(buildInfo()))
			return err
		},
	}
}

func unknown(root *cobra.Command, name string) error {
	hint := ""
	if near := root.SuggestionsFor(name); len(near) > 0 {
		hint = "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return cli.UsageErrorf("unknown command %q%s", name, hint)
}

// finished adds what concerns all commands: topics, exit codes, and the marking of usage errors.
func finished(root *cobra.Command) *cobra.Command {
	root.SuggestionsMinimumDistance = 2
	root.SetVersionTemplate(versions(buildInfo()))
	root.SetUsageTemplate(root.UsageTemplate() + exitCodes)
	root.AddCommand(topic(), keysTopic())
	colourFlag(root)
	root.InitDefaultVersionFlag()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			c.RunE = helpOn(c.Run)
		case "completion":
			c.RunE = root.RunE
		}
	}
	cli.MarkErrors(root)
	return root
}

// helpOn returns an error for unknown help topics.
func helpOn(run func(*cobra.Command, []string)) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		if _, rest, err := c.Root().Find(args); err != nil || len(rest) > 0 {
			return unknown(c.Root(), strings.Join(args, " "))
		}
		run(c, args)
		return nil
	}
}

// colourFlag adds --color to all commands.
func colourFlag(root *cobra.Command) {
	var when string
	cli.EnumFlag(root, &when, "color", "whether texts have colours; auto: on a terminal, unless NO_COLOR is set", "auto", "always", "never")
	root.PersistentFlags().AddFlag(root.Flags().Lookup("color"))
	root.PersistentPreRun = func(c *cobra.Command, _ []string) {
		if when != "auto" {
			c.SetOut(terminal.Forced{Writer: c.OutOrStdout(), Colours: when == "always"})
			c.SetErr(terminal.Forced{Writer: c.ErrOrStderr(), Colours: when == "always"})
		}
	}
}

// keysTopic returns "stagger help keys".
func keysTopic() *cobra.Command {
	return &cobra.Command{
		Use:   "keys",
		Short: "All keys of a policy file",
		Long: `All keys of a policy file, each with its values, default and range. "gRPC" marks those that
other gRPC clients know as well. Seconds are more than 0 unless the key says otherwise.
` + keys,
	}
}

// keys is written from policy.proto by "make generate".
//
//go:embed keys.txt
var keys string

// policyFile is a copy of examples/orders/retry.yaml, which is in another module.
//
//go:embed policy.yaml
var policyFile string

// topic returns "stagger help policy".
func topic() *cobra.Command {
	return &cobra.Command{
		Use:   "policy",
		Short: "What a policy file looks like",
		Long: `A policy file is a gRPC service config, in YAML or JSON, with stagger's keys next to
gRPC's own. A method uses the entry that names it, else the one for its service, else
the one for everything ({}); entries are not merged. "stagger help keys" lists all keys,
with their ranges and defaults.

An example:

    ` + strings.ReplaceAll(strings.TrimSpace(policyFile), "\n", "\n    "),
	}
}
