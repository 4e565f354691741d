// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"strings"
	"testing"

	"github.com/stagger-go/stagger/internal/balancing"
	"github.com/stagger-go/stagger/internal/inside"
)

const elsewhere = `loadBalancingConfig: [{stagger_retry_elsewhere: {childPolicy: [{round_robin: {}}]}}, {round_robin: {}}]`

func TestLoadBalancing(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ text, want string }{
		"named":     {elsewhere, `[{"stagger_retry_elsewhere":{"childPolicy":[{"round_robin":{}}]}},{"round_robin":{}}]`},
		"inside":    {`loadBalancingConfig: [{outlier: {childPolicy: [{stagger_retry_elsewhere: {childPolicy: [{a: {}}]}}]}}]`, `[{"outlier":{"childPolicy":[{"stagger_retry_elsewhere":{"childPolicy":[{"a":{}}]}}]}}]`},
		"another":   {`loadBalancingConfig: [{round_robin: {}}]`, ""},
		"a value":   {`loadBalancingConfig: [{round_robin: {name: stagger_retry_elsewhere}}]`, ""},
		"nothing":   {`maxWaiting: 3`, ""},
		"old style": {`loadBalancingPolicy: stagger_retry_elsewhere`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := mustParse(t, "f", "# a comment\n"+row.text)
			channel, at := inside.Channel(set)
			config := balancing.Config(channel)
			if config != row.want {
				t.Errorf("loadBalancingConfig = %s; want %s", config, row.want)
			}
			if config != "" && (at.File != "f" || at.Line != 2 || at.Field != "loadBalancingConfig") {
				t.Errorf("it stands at %v", at)
			}
			warned := false
			for _, w := range set.Warnings() {
				warned = warned || strings.Contains(w.Message, "belongs to the channel")
			}
			if config != "" && warned {
				t.Error("it is brought, and a warning says that it has no effect")
			}
			if config == "" && !warned && row.text != "maxWaiting: 3" {
				t.Error("it is not brought, and nothing says so")
			}
		})
	}
}
