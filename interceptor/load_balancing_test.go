// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"errors"
	"testing"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
)

// These tests do not import package elsewhere, and no test of this package may: its own tests have the Retrier with its policy.

const elsewhereFile = `
methodConfig:
- name: [{service: acme.orders.v1.OrderService, method: GetOrder}]
  retryPolicy: {maxAttempts: 4, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE]}
loadBalancingConfig:
`

// A program that does not import package elsewhere refuses a file that names its policy, and says what to import: a retry that quietly
// goes anywhere is what the file's author wanted to prevent.
func TestElsewhere_NotImported(t *testing.T) {
	t.Parallel()
	const says = ": the program does not have the load balancing policy stagger_retry_elsewhere; " +
		`add to its code: import _ "github.com/stagger-go/stagger/elsewhere"`
	for name, row := range map[string]struct{ config, want string }{
		"alone":           {"- stagger_retry_elsewhere: {childPolicy: [{round_robin: {}}]}", "retry.yaml:5:3: loadBalancingConfig[0]" + says},
		"with a fallback": {"- stagger_retry_elsewhere: {childPolicy: [{round_robin: {}}]}\n- round_robin: {}", "retry.yaml:5:3: loadBalancingConfig[0]" + says},
		"never reached":   {"- round_robin: {}\n- stagger_retry_elsewhere: {childPolicy: [{round_robin: {}}]}", "retry.yaml:6:3: loadBalancingConfig[1]" + says},
		"inside":          {"  [{outlier_detection_experimental: {childPolicy: [{stagger_retry_elsewhere: {}}]}}]", "retry.yaml:5:4: loadBalancingConfig[0]" + says},
		"another policy":  {"- round_robin: {}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := mustParse(t, elsewhereFile[1:]+row.config)
			retrier := mustNew(t, mustSet(t, config(plain())), quiet)
			_, err := interceptor.New(set, quiet)
			for _, err := range []error{err, retrier.Reload(set)} {
				if row.want == "" {
					if err != nil {
						t.Error(err)
					}
					continue
				}
				if wrong, ok := errors.AsType[*policy.Error](err); !ok || wrong.Error() != row.want {
					t.Errorf("%v; want %s", err, row.want)
				}
			}
		})
	}
}
