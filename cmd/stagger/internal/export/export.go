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
	"github.com/stagger-go/stagger/internal/lint"
	"github.com/stagger-go/stagger/internal/report/terminal"
)

const help = `Write a policy file as a plain gRPC service config: JSON with the keys of gRPC's own
service_config.proto and no others, for clients that load it strictly, for a DNS TXT
record (--txt) or an xDS control plane. A policy file is already a service config, but
some readers refuse unknown keys.

Plain gRPC does not check whether a method is idempotent. So the command leaves out the
policies of methods that stagger would retry only if they never left the client, and of
those that are idempotent because of an idempotency key, since gRPC sends none. With
--assume-idempotent, all methods keep their policies.

The JSON goes to the standard output, or to a file (--output). The command lists on the
standard error what it leaves out, and what plain gRPC does differently: no budget, another
jitter. With --descriptors, it knows which methods the API declares idempotent.`

const examples = `  stagger export retry.yaml
  stagger export retry.yaml --output service-config.json
  stagger export retry.yaml --descriptors image.binpb  # with the API's idempotent methods
  stagger export retry.yaml --txt                      # for _grpc_config.orders.example.com`

// Command returns "stagger export".
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
			_, set, err := cli.Load(c, args[0], images)
			if err != nil {
				return err
			}
			config, notes := lint.Export(set, assume)
			if txt {
				if config, err = record(cli.FileName(args[0]), config); err != nil {
					return err
				}
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

// The sizes of a TXT record's data: strings of at most 255 bytes, each behind a byte with its length (RFC 1035).
const (
	mostOfRecord = 65_535
	mostOfString = 255
)

// record returns a service config as the text of a TXT record (gRFC A2), for all clients. It returns an error if a record
// cannot hold that.
func record(file string, config []byte) ([]byte, error) {
	var text bytes.Buffer
	text.WriteString(`grpc_config=[{"serviceConfig":`)
	_ = json.Compact(&text, config) // config is valid JSON
	text.WriteString("}]")
	stored := text.Len() + (text.Len()+mostOfString-1)/mostOfString
	if stored > mostOfRecord {
		return nil, fmt.Errorf("%s: --txt: takes %d bytes in a DNS TXT record, which holds at most %d: "+
			"write fewer entries, or let an xDS control plane serve the file", file, stored, mostOfRecord)
	}
	text.WriteByte('\n')
	return text.Bytes(), nil
}
