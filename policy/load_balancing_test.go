// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"cmp"
	"testing"

	"github.com/stagger-go/stagger/internal/hooks/balancing"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
)

const elsewhere = `loadBalancingConfig: [{stagger_retry_elsewhere: {childPolicy: [{round_robin: {}}]}}, {round_robin: {}}]`

func TestLoadBalancing(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ text, want, field string }{
		"named":     {elsewhere, `[{"stagger_retry_elsewhere":{"childPolicy":[{"round_robin":{}}]}},{"round_robin":{}}]`, "loadBalancingConfig[0]"},
		"second":    {`loadBalancingConfig: [{a: {}}, {stagger_retry_elsewhere: {}}]`, `[{"a":{}},{"stagger_retry_elsewhere":{}}]`, "loadBalancingConfig[1]"},
		"inside":    {`loadBalancingConfig: [{outlier: {childPolicy: [{stagger_retry_elsewhere: {childPolicy: [{a: {}}]}}]}}]`, `[{"outlier":{"childPolicy":[{"stagger_retry_elsewhere":{"childPolicy":[{"a":{}}]}}]}}]`, "loadBalancingConfig[0]"},
		"another":   {`loadBalancingConfig: [{round_robin: {}}]`, "", ""},
		"a value":   {`loadBalancingConfig: [{round_robin: {name: stagger_retry_elsewhere}}]`, "", ""},
		"nothing":   {`maxWaiting: 3`, "", ""},
		"old style": {`loadBalancingPolicy: stagger_retry_elsewhere`, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := mustParse(t, "f", "# a comment\n"+row.text)
			channel, at := compiled.OfSet(set).Channel(), compiled.OfSet(set).ChannelAt[spec.BalancingKey]
			config := balancing.Config(channel)
			if field := compiled.OfSet(set).ElsewhereAt.Field; field != cmp.Or(row.field, "loadBalancingConfig") {
				t.Errorf("it stands in %s; want %s", field, row.field)
			}
			if config != row.want {
				t.Errorf("loadBalancingConfig = %s; want %s", config, row.want)
			}
			if config != "" && (at.File != "f" || at.Line != 2 || at.Field != "loadBalancingConfig") {
				t.Errorf("it stands at %v", at)
			}
			for _, w := range set.Warnings() { // DialOptions give it to connections
				t.Errorf("warning %s", w)
			}
		})
	}
}

// What gRPC itself implements is handed to it as it was read.
func TestChannel(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"maxWaiting: 3":                                             `{}`,
		"loadBalancingPolicy: pick_first":                           `{"loadBalancingPolicy":"pick_first"}`,
		"loadBalancingConfig: [{pick_first: {}}]":                   `{"loadBalancingConfig":[{"pick_first":{}}]}`,
		"healthCheckConfig: {serviceName: a.B}":                     `{"healthCheckConfig":{"serviceName":"a.B"}}`,
		"connectionScaling: {maxConnectionsPerSubchannel: 2}":       `{"connectionScaling":{"maxConnectionsPerSubchannel":2}}`,
		"healthCheckConfig: {}\nconnectionScaling: {}":              `{"healthCheckConfig":{}}`,
		"connectionScaling: {a: 1}\nhealthCheckConfig: {other: []}": `{"connectionScaling":{"a":1},"healthCheckConfig":{"other":[]}}`,
	} {
		if got := compiled.OfSet(mustParse(t, "f", text)).Channel(); got != want {
			t.Errorf("%s: %s; want %s", text, got, want)
		}
	}
}
