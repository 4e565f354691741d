// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"
)

func TestSentences(t *testing.T) {
	t.Parallel()
	page := "# What is here\n\nNobody asks. Who does, reads `beside` twice:\nhere. Is it nobody?\n\n> nobody\n\n```go\n// nobody\n```\n\n" +
		"| What | who |\n| --- | --- |\n| [a link beside](x.md) | \"nobody\" says. |\n"
	var got []string
	for _, s := range sentences([]byte(page)) {
		for range check(s.text) {
			got = append(got, s.text)
		}
	}
	want := []string{"Nobody asks.", "Who does, reads `…` twice: here.", "a link beside"}
	if !slices.Equal(got, want) {
		t.Errorf("%q; want %q", got, want)
	}
	if s := sentences([]byte(page)); s[0].line != 3 || s[1].line != 3 {
		t.Error(s)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, good := range []string{
		"It takes no more than a second.", "There is no budget.", "It is no longer read.", "Besides, whatever ends is released.", "Is that no failure?",
	} {
		if advice := check(good); advice != nil {
			t.Error(good, advice)
		}
	}
	for _, bad := range []string{
		"Calls end: what is leased is spent.", "That is no failure.", "It obeys the server's word.", "No more is to be done.", "A stream that is cut in mid-stream.",
		"Z, too.", "Of the three the strictest holds.", "It is sent once more.", "Who asks, waits.",
	} {
		if check(bad) == nil {
			t.Error(bad)
		}
	}
}
