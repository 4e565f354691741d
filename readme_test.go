// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package stagger_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
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

// The README explains every reason, and no page nor the schema names one that does not exist.
func TestReasonsInTexts(t *testing.T) {
	t.Parallel()
	section := regexp.MustCompile("(?s)\n## Why was this call not retried\\?\n(.*?)\n## ").FindStringSubmatch(read(t, "README.md"))
	if section == nil {
		t.Fatal("the README has no section on reasons")
	}
	var explained []policy.Reason
	for _, m := range regexp.MustCompile("(?m)^\\|.*\\| `([a-z_]+)` \\|$").FindAllStringSubmatch(section[1], -1) {
		explained = append(explained, policy.Reason(m[1]))
	}
	if want := policy.Reasons(); !slices.Equal(explained, want) {
		t.Errorf("the README explains %q\nwant %q", explained, want)
	}
	pages, err := filepath.Glob("docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal("no pages", err)
	}
	for _, page := range append(pages, "README.md", "schema/policy.json") {
		for _, m := range regexp.MustCompile("\\breasons? `?([a-z]+_[a-z_]+)`?").FindAllStringSubmatch(read(t, page), -1) {
			if !slices.Contains(policy.Reasons(), policy.Reason(m[1])) {
				t.Errorf("%s names the reason %s, which does not exist", page, m[1])
			}
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
