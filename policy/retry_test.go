// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"
	"time"

	"github.com/stagger-go/stagger/policy"
)

func TestCommitOnHeadersRefusesPerAttemptTimeout(t *testing.T) {
	t.Parallel()
	retry := policy.DefaultRetry()
	retry.PerAttemptTimeout, retry.CommitOnHeaders = time.Second, true
	_, err := policy.New(policy.Spec{Retry: &retry})
	const want = "retryPolicy.perAttemptTimeout: 1s: must not stand beside commitOn HEADERS: " +
		"an attempt whose headers have arrived could be given up; leave one of them out"
	if err == nil || err.Error() != want {
		t.Errorf("error %v; want %s", err, want)
	}
}

func TestCommitOn(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"SEEN": false, "HEADERS": true} {
		set, err := policy.Parse("retry.yaml", []byte(`
methodConfig:
  - name: [{service: a.B, method: C}]
    retryPolicy: {maxAttempts: 2, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 1, retryableStatusCodes: [UNAVAILABLE], commitOn: `+text+`}
`))
		if err != nil {
			t.Fatal(err)
		}
		if p := set.Lookup("/a.B/C"); p.Spec().Retry.CommitOnHeaders != want {
			t.Errorf("commitOn %s is read as %v", text, p.Spec().Retry.CommitOnHeaders)
		}
	}
}
