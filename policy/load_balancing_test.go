// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"strings"
	"testing"

	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/tried"
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
			config, at := decision.Compile(set).LoadBalancing()
			if config != row.want {
				t.Errorf("LoadBalancing = %s; want %s", config, row.want)
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

func TestLintElsewhereNeverReached(t *testing.T) {
	t.Parallel()
	const inner = "{stagger_retry_elsewhere: {childPolicy: [{round_robin: {}}]}}"
	wantLinted(t, "loadBalancingConfig: [{some_policy: {}}, {round_robin: {}}, "+inner+"]", "warning f:1:42: loadBalancingConfig[1]: \"round_robin\": "+
		"gRPC takes the first policy of the list that it knows, and so never stagger_retry_elsewhere behind it; list that first")
	wantLinted(t, "loadBalancingConfig: [{some_policy: {}}, "+inner+", {round_robin: {}}]")
}

func TestLintFirstRetry(t *testing.T) {
	t.Parallel()
	const (
		without = "warning f:4:131: methodConfig[0].retryPolicy.firstRetry: AT_ONCE: a retry at once may go to the backend that has just failed; " +
			"let it go to another one (loadBalancingConfig: [{stagger_retry_elsewhere: {childPolicy: [{round_robin: {}}]}}]), or remove it"
		advice = "note f:4:16: methodConfig[0].retryPolicy: retries go to another backend, so that the first need not wait: firstRetry AT_ONCE answers " +
			"calls sooner while one backend fails or hangs, and costs some success where all fail for a moment; BACKOFF keeps the wait, and says so"
	)
	wantLinted(t, "maxWaiting: 9"+onceMore+", firstRetry: AT_ONCE}", without)
	wantLinted(t, "maxWaiting: 9"+onceMore+", firstRetry: BACKOFF}")
	wantLinted(t, "maxWaiting: 9"+onceMore+"}")
	wantLinted(t, elsewhere+onceMore+", firstRetry: AT_ONCE}")
	wantLinted(t, elsewhere+onceMore+", firstRetry: BACKOFF}")
	wantLinted(t, elsewhere+onceMore+"}", advice)
}

func TestLintFirstRetryWaits(t *testing.T) {
	t.Parallel()
	text := strings.ReplaceAll(elsewhere+onceMore+", firstRetry: AT_ONCE}", "- name:", "- timeout: 1s\n  name:")
	wantLinted(t, text) // two attempts, and no wait of a second between them
}

func TestExportLoadBalancing(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		elsewhere: 0,
		"loadBalancingConfig: [{round_robin: {}}]":                                             0,
		"loadBalancingConfig: [{stagger_retry_elsewhere: {childPolicy: [{round_robin: {}}]}}]": 1,
	} {
		_, notes := mustParse(t, "f", text).ServiceConfig(false)
		if len(notes) != want || want == 1 && !strings.Contains(notes[0].Message, "list {round_robin: {}} behind "+tried.Balancer) {
			t.Errorf("%s: %v; want %d notes", text, notes, want)
		}
	}
}

const onceMore = `
methodConfig:
- name: [{service: a.B, method: C}]
  retryPolicy: {maxAttempts: 2, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [14]`
