// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import "testing"

func TestLoadingWarnsOfWhatIsNotCarriedOut(t *testing.T) {
	t.Parallel()
	const (
		channel = " belongs to the channel and has no effect here: pass it to gRPC, with grpc.WithDefaultServiceConfig or from the resolver"
	)
	set := mustLoad(t, "all.yaml")
	wantWarnings(t, set, []string{
		"testdata/good/all.yaml:2:22: loadBalancingPolicy: round_robin:" + channel,
		"testdata/good/all.yaml:3:22: loadBalancingConfig:" + channel,
		"testdata/good/all.yaml:4:20: healthCheckConfig:" + channel,
		"testdata/good/all.yaml:5:20: connectionScaling:" + channel,
		`testdata/good/all.yaml:16:11: budgets[2].name: beside: no policy names this budget`,
		`testdata/good/all.yaml:18:11: budgets[3].name: refund: no policy names this budget`,
		`testdata/good/all.yaml:32:43: methodConfig[0].retryPolicy.retryableStatusCodes[1]: resource_exhausted: gRPC for Go refuses a service config with this spelling; write RESOURCE_EXHAUSTED`,
		`testdata/good/all.yaml:32:67: methodConfig[0].retryPolicy.retryableStatusCodes[3]: CANCELED: gRPC for Go refuses a service config with this spelling; write CANCELLED`,
	})
}

func TestWarningsOfTheCallerAreACopy(t *testing.T) {
	t.Parallel()
	set := mustParse(t, "f", "loadBalancingPolicy: pick_first")
	set.Warnings()[0].Message = "changed"
	if got := set.Warnings()[0].Message; got == "changed" {
		t.Error("a caller changed a warning of the set")
	}
}
