// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package export is "stagger export": a policy file as a plain gRPC service config.
package export

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stagger-go/stagger/cmd/stagger/internal/cli"
	"github.com/stagger-go/stagger/internal/tools/report/terminal"
)

const help = `Write a policy file as a plain gRPC service config: JSON with the keys of gRPC's own
service_config.proto and no others, for clients that load it strictly, for a DNS TXT
record (--txt) or an xDS control plane. A policy file itself is a service config already, but
some readers refuse keys that they do not know.

Plain gRPC does not ask whether a method is safe to repeat. So the policies of methods
that stagger would repeat only if they never left the client are left out, and so are
those of methods that an idempotency key makes safe, since gRPC sends none. With
--assume-idempotent all methods keep their policies.

The JSON goes to the standard output, or to a file (--output). What is left out, and
what plain gRPC will not do of the policy, or do otherwise, is listed on the standard
error: no budget, another jitter. --descriptors reads which methods the API declares
safe, and the policies that it brings along.`

const examples = `  stagger export retry.yaml
  stagger export retry.yaml --output service-config.json
  stagger export retry.yaml --descriptors image.binpb  # with what the API declares safe
  stagger export retry.yaml --txt                      # for _grpc_config.orders.example.com`

// Command is "stagger export".
func Command() *cobra.Command {
	var (
		output string
		images []string
		assume bool
		txt    bool
	)
	c := &cobra.Command{
		Use:               "export FILE",
		Short:             "Write a policy file as a plain gRPC service config",
		Long:              help,
		Example:           examples,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cli.CompleteFile,
		RunE: func(c *cobra.Command, args []string) error {
			_, set, _, err := cli.Load(c, args[0], images)
			if err != nil {
				return err
			}
			config, notes := set.ServiceConfig(assume)
			if txt {
				config = record(config)
			}
			if err := cli.WriteFile(c, output, config); err != nil {
				return err
			}
			label := terminal.StyleOf(c.ErrOrStderr()).Warning("not in plain gRPC:")
			for _, n := range notes {
				n.File = cli.FileName(args[0])
				fmt.Fprintln(c.ErrOrStderr(), label, n)
			}
			return nil
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "", "`file` to write to instead of the standard output")
	c.Flags().BoolVar(&assume, "assume-idempotent", false, "keep the policies of methods that are not declared idempotent")
	c.Flags().BoolVar(&txt, "txt", false, "write the text of a DNS TXT record, grpc_config=[…], in one line")
	_ = c.MarkFlagFilename("output", "json") // the flag is there
	cli.DescriptorsFlag(c, &images)
	return c
}

// record is a service config as the text of a TXT record (gRFC A2), for all clients.
func record(config []byte) []byte {
	var text bytes.Buffer
	text.WriteString(`grpc_config=[{"serviceConfig":`)
	_ = json.Compact(&text, config) // it is JSON
	text.WriteString("}]\n")
	return text.Bytes()
}
