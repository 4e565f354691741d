// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package document

import "testing"

func TestNearest(t *testing.T) {
	t.Parallel()
	words := []string{"maxAttempts", "maxBackoff", "timeout", "name", "FULL", "acme.orders.v1.OrderService"}
	for word, want := range map[string]string{
		"maxAttempts":            "maxAttempts",
		"max_attempts":           "maxAttempts",
		"MAX-ATTEMPTS":           "maxAttempts",
		"maxAttempt":             "maxAttempts",
		"maxAtempt":              "maxAttempts",
		"backoff":                "", // ambiguous
		"tiemout":                "timeout",
		"naem":                   "name",
		"fuul":                   "FULL",
		"xyz":                    "",
		"":                       "",
		"orders.v1.OrderService": "acme.orders.v1.OrderService",
	} {
		if got := Nearest(word, words); got != want {
			t.Errorf("Nearest(%q) = %q; want %q", word, got, want)
		}
	}
}

func TestSuggest(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{"onne": "did you mean one?", "x": "must be one, two or three"} {
		if got := Suggest(word, []string{"one", "two", "three"}); got != want {
			t.Errorf("Suggest(%q) = %q; want %q", word, got, want)
		}
	}
	if got := Suggest("x", nil); got != "must be left out" {
		t.Errorf("Suggest without words = %q", got)
	}
}
