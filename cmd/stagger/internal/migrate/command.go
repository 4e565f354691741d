// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package migrate is "stagger migrate": it turns a gRPC service config, or a proxy's configuration, into a policy file with
// a comment on each decision.
package migrate

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stagger-go/stagger/cmd/stagger/internal/cli"
	"github.com/stagger-go/stagger/internal/document"
	"github.com/stagger-go/stagger/policy"
	policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"
)

const help = `Write a policy file from a gRPC service config, or from a DNS TXT record that has one
(grpc_config=[{"serviceConfig": …}], bare or in quotes as dig prints it). The policies
don't change. Comments above the lines explain where stagger differs from gRPC, and what
to decide: which methods are idempotent, which jitter, which budget. Spellings that only
gRPC for Go accepts (keys in another case, keys with null, ".5s") become those of a
policy file.

It also reads the configuration of proxies, in YAML or JSON: Envoy's retry_policy and
retry_budget, Istio's VirtualService and DestinationRule, the Gateway API's
BackendTrafficPolicy, and Linkerd's ServiceProfile and annotations. Comments name the
settings that a policy file cannot express.

The file goes to the standard output, or to a file (--output). With --descriptors,
comments name the methods that the API doesn't declare idempotent.`

const examples = `  stagger migrate service-config.json > retry.yaml
  dig +short TXT _grpc_config.orders.example.com | stagger migrate -
  kubectl get virtualservice orders -o yaml | stagger migrate -
  stagger migrate service-config.json --descriptors image.binpb --output retry.yaml`

// Command returns "stagger migrate".
func Command() *cobra.Command {
	var (
		output string
		images []string
	)
	c := &cobra.Command{
		Use:               "migrate FILE",
		Short:             "Write a policy file from a gRPC service config",
		Long:              help,
		Example:           examples,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cli.CompleteFile,
		RunE: func(c *cobra.Command, args []string) error {
			known, err := cli.LoadAPI(images)
			if err != nil {
				return err
			}
			data, err := cli.ReadFile(c, args[0])
			if err != nil {
				return err
			}
			name := cli.FileName(args[0])
			switch file, err := fromMesh(name, data); {
			case err != nil:
				return err
			case file != nil:
				if _, err := policy.Parse(name, file); err != nil {
					return fmt.Errorf("the proxy's settings do not make a valid policy file: %w\n%s", err, file)
				}
				return cli.WriteFile(c, output, file)
			}
			data, head, err := fromRecord(data)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			format := document.Format{Name: "service config", Key: "methodConfig", MayLack: true}
			if data, err = document.RespelledLikeGRPC(name, data, format, (*policyv1.PolicyFile)(nil).ProtoReflect().Descriptor()); err != nil {
				return err
			}
			set, err := policy.Parse(name, data) // reports errors, with their lines
			if err != nil {
				return err
			}
			file, err := commented(data, head, set, known)
			if err != nil {
				return err
			}
			return cli.WriteFile(c, output, file)
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "", "`file` to write to instead of the standard output")
	_ = c.MarkFlagFilename("output", "yaml", "yml") // the flag is there
	cli.DescriptorsFlag(c, &images)
	return c
}
