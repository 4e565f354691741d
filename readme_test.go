// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package stagger_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stagger-go/stagger/policy"
)

// blocks returns the fenced blocks of the README that begin with the given words.
func blocks(t *testing.T, fence string) []string {
	t.Helper()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, m := range regexp.MustCompile("(?s)```"+fence+"\n(.*?)```").FindAllStringSubmatch(string(readme), -1) {
		list = append(list, m[1])
	}
	if len(list) == 0 {
		t.Fatalf("the README has no block ```%s", fence)
	}
	return list
}

func TestThePolicyFilesInTheREADMEAreValid(t *testing.T) {
	t.Parallel()
	for _, file := range blocks(t, "yaml") {
		if _, err := policy.Parse("README.md", []byte(file)); err != nil {
			t.Error(err)
		}
	}
}

func TestTheREADMEShowsWhatABadFileReallyGives(t *testing.T) {
	t.Parallel()
	_, err := policy.Parse("retry.yaml", []byte(blocks(t, "yaml bad")[0]))
	if err == nil {
		t.Fatal("the bad file is accepted")
	}
	if want := strings.TrimSpace(blocks(t, "text error")[0]); err.Error() != want {
		t.Errorf("the README shows\n%s\nit is\n%s", want, err)
	}
}

func TestTheREADMENamesEveryReason(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []policy.Reason{
		policy.ReasonFollowed, policy.ReasonChainStop, policy.ReasonBreakerOpen, policy.ReasonTooManyWaiting, policy.ReasonHedge,
		policy.ReasonNonRetryable, policy.ReasonCommitted, policy.ReasonAttemptsExhausted, policy.ReasonNotIdempotent, policy.ReasonPushbackStop,
		policy.ReasonDeadlineTooClose, policy.ReasonBudgetExhausted, policy.ReasonCancelled, policy.ReasonClosed,
	} {
		if !strings.Contains(string(readme), "`"+string(r)+"`") {
			t.Errorf("the README does not explain %s", r)
		}
	}
}
