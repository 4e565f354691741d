// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package elsewhere

import (
	"encoding/json"
	"strings"
	"testing"

	"google.golang.org/grpc/balancer"
	_ "google.golang.org/grpc/balancer/leastrequest" // the policy least_request_experimental
	_ "google.golang.org/grpc/balancer/roundrobin"   // the policy round_robin, which package grpc brings
)

// The names of policies that the core module can't import. Only the names matter here.
func init() {
	for _, name := range []string{"outlier_detection_experimental", "cds_experimental", "test_around"} {
		balancer.Register(stubBuilder{name: name})
	}
}

func TestParseConfig(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ config, child, err string }{
		"round_robin":     {config: `{"childPolicy": [{"round_robin": {}}]}`, child: "round_robin"},
		"least_request":   {config: `{"childPolicy": [{"least_request_experimental": {"choiceCount": 3}}]}`, child: "least_request_experimental"},
		"the first known": {config: `{"childPolicy": [{"not_linked": {}}, {"round_robin": {}}, {"pick_first": {}}]}`, child: "round_robin"},

		"nothing":           {config: ``, err: `want {"childPolicy": [{"round_robin": {}}]}`},
		"null":              {config: `null`, err: `childPolicy is missing; want {"childPolicy": [{"round_robin": {}}]}`},
		"not a list":        {config: `{"childPolicy": {"round_robin": {}}}`, err: `want {"childPolicy": [{"round_robin": {}}]}`},
		"two in an entry":   {config: `{"childPolicy": [{"not_linked": {}}, {"round_robin": {}, "pick_first": {}}]}`, err: `childPolicy[1] has 2 keys; want one, the name of a policy`},
		"none known":        {config: `{"childPolicy": [{"one": {}}, {"two": {}}]}`, err: `childPolicy: the program has no policy one, two; import the package`},
		"bad child config":  {config: `{"childPolicy": [{"not_linked": {}}, {"least_request_experimental": {"choiceCount": 1}}]}`, err: `childPolicy[1].least_request_experimental: least-request: lbConfig.choiceCount: 1`},
		"outlier detection": {config: `{"childPolicy": [{"outlier_detection_experimental": {"childPolicy": [{"round_robin": {}}]}}]}`, err: `childPolicy[0]: outlier_detection_experimental must not be inside of stagger_retry_elsewhere: it would count the picks that a retry passes over as successes, and eject no backend; put stagger_retry_elsewhere inside of it, around the leaf policy`},
		"no leaf by name":   {config: `{"childPolicy": [{"cds_experimental": {"cluster": "orders"}}]}`, err: `childPolicy[0]: cds_experimental must not be inside of stagger_retry_elsewhere: it is a policy around other policies`},
		"no leaf by key":    {config: `{"childPolicy": [{"test_around": {"targets": {"a": [{"childpolicy": []}]}}}]}`, err: `childPolicy[0]: test_around must not be inside of stagger_retry_elsewhere: it is a policy around other policies`},
		"twice":             {config: `{"childPolicy": [{"stagger_retry_elsewhere": {"childPolicy": [{"round_robin": {}}]}}]}`, err: `stagger_retry_elsewhere must not be inside of stagger_retry_elsewhere`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parser, ok := balancer.Get(Name).(balancer.ConfigParser)
			if !ok {
				t.Fatal("the policy is not registered")
			}
			parsed, err := parser.ParseConfig(json.RawMessage(tc.config))
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("error %v, want %q in it", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if cfg := parsed.(*config); cfg.child.Name() != tc.child {
				t.Errorf("child %s, want %s", cfg.child.Name(), tc.child)
			}
		})
	}
}
