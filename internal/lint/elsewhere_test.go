// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"fmt"
	"testing"
)

const (
	elsewhere = `loadBalancingConfig: [{stagger_retry_elsewhere: {childPolicy: [{round_robin: {}}]}}, {round_robin: {}}]`

	// imports is the note about each file that begins with a loadBalancingConfig that names the policy.
	imports = "note f:1:22: loadBalancingConfig: a program must import stagger_retry_elsewhere to read this file: " +
		`import _ "github.com/stagger-go/stagger/elsewhere"`
)

func TestLintElsewhereNeverReached(t *testing.T) {
	t.Parallel()
	const inner = "{stagger_retry_elsewhere: {childPolicy: [{round_robin: {}}]}}"
	wantLinted(t, "loadBalancingConfig: [{some_policy: {}}, {round_robin: {}}, "+inner+"]", imports, "warning f:1:42: loadBalancingConfig[1]: \"round_robin\": "+
		"gRPC takes the first policy of the list that it knows, and so never stagger_retry_elsewhere behind it; list that first")
	wantLinted(t, "loadBalancingConfig: [{some_policy: {}}, "+inner+", {round_robin: {}}]", imports)
}

// Without a policy that picks, gRPC refuses the config, and so does interceptor.New. Only lint says where in the file the mistake is.
func TestLintElsewhereWithoutChild(t *testing.T) {
	t.Parallel()
	const list = "must list the policy that picks, such as [{round_robin: {}}]; of several, gRPC takes the first that the program knows"
	const one = "must be a map with one key, a load balancing policy, such as {round_robin: {}}"
	wantLinted(t, `loadBalancingConfig:
  - stagger_retry_elsewhere: {}
  - stagger_retry_elsewhere: {childPolicy: round_robin}
  - stagger_retry_elsewhere: {childPolicy: [round_robin, {}, {round_robin: {}, pick_first: {}}]}
  - around: {childPolicy: [{stagger_retry_elsewhere: {childPolicy: []}}]}
`,
		`note f:2:3: loadBalancingConfig: a program must import stagger_retry_elsewhere to read this file: import _ "github.com/stagger-go/stagger/elsewhere"`,
		"error f:2:30: loadBalancingConfig[0].stagger_retry_elsewhere.childPolicy: is required; "+list,
		"error f:3:44: loadBalancingConfig[1].stagger_retry_elsewhere.childPolicy: round_robin: "+list,
		"error f:4:45: loadBalancingConfig[2].stagger_retry_elsewhere.childPolicy[0]: round_robin: "+one,
		"error f:4:58: loadBalancingConfig[2].stagger_retry_elsewhere.childPolicy[1]: "+one,
		"error f:4:62: loadBalancingConfig[2].stagger_retry_elsewhere.childPolicy[2]: "+one,
		"error f:5:68: loadBalancingConfig[3].around.childPolicy[0].stagger_retry_elsewhere.childPolicy: "+list,
	)
}

func TestLintBalancers(t *testing.T) {
	t.Parallel()
	const (
		must     = "note f:1:22: loadBalancingConfig: a program must have it: import _ "
		outliers = must + `"google.golang.org/grpc/xds" registers outlier_detection_experimental`
		weighted = must + `"google.golang.org/grpc/balancer/weightedroundrobin" registers weighted_round_robin`
	)
	wantLinted(t, "loadBalancingConfig: [{round_robin: {}}]")
	wantLinted(t, "loadBalancingConfig: [{no_such: {}}, {Round_Robin: {}}]")
	wantLinted(t, "loadBalancingPolicy: round_robin")
	wantLinted(t, "loadBalancingConfig: [{weighted_round_robin: {}}]", weighted)
	wantLinted(t, "loadBalancingConfig: [{outlier_detection_experimental: {childPolicy: [{round_robin: {}}]}}]", outliers)
	wantLinted(t, "loadBalancingConfig: [{outlier_detection_experimental: {childPolicy: [{stagger_retry_elsewhere: {childPolicy: [{weighted_round_robin: {}}]}}]}}]",
		imports, outliers, weighted)
	wantLinted(t, "loadBalancingConfig: [{stagger_retry_elsewhere: {childPolicy: [{weighted_round_robin: {}}, {round_robin: {}}]}}, {round_robin: {}}]",
		imports, weighted)
	wantLinted(t, "loadBalancingConfig: [{stagger_retry_elsewhere: {childPolicy: [{round_robin: {}}, {weighted_round_robin: {}}]}}]", imports)
	const unknown = "gRPC for Go has no policy %s: a program that doesn't register it leaves this out; "
	for text, want := range map[string]string{
		"loadBalancingConfig: [{no_such: {}}]":              "warning f:1:22: loadBalancingConfig: " + fmt.Sprintf(unknown, "no_such") + "import the package that registers it",
		"loadBalancingConfig: [{roundrobin: {}}]":           "warning f:1:22: loadBalancingConfig: " + fmt.Sprintf(unknown, "roundrobin") + "did you mean round_robin?",
		"loadBalancingConfig: [{one: {}}, {ring_hash: {}}]": "warning f:1:22: loadBalancingConfig: " + fmt.Sprintf(unknown, "one, ring_hash") + "did you mean ring_hash_experimental?",
		"loadBalancingPolicy: pickfirst":                    "warning f:1:22: loadBalancingPolicy: pickfirst: " + fmt.Sprintf(unknown, "pickfirst") + "did you mean pick_first?",
	} {
		wantLinted(t, text, want)
	}
	wantLinted(t, "loadBalancingConfig: [{least_request: {}}, {pick_first: {}}]",
		"warning f:1:23: loadBalancingConfig[0]: \"least_request\": gRPC for Go has no such policy; did you mean least_request_experimental?")
	wantLinted(t, "loadBalancingConfig: [{stagger_retry_elsewhere: {childPolicy: [{roundrobin: {}}]}}]", imports,
		`warning f:1:64: loadBalancingConfig[0].stagger_retry_elsewhere.childPolicy[0]: "roundrobin": gRPC for Go has no such policy; did you mean round_robin?`)
}
