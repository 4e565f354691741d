// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"strings"

	"github.com/agnivade/levenshtein"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// suggest names the key that was meant, or all of them.
func suggest(key string, d protoreflect.MessageDescriptor) string {
	best, least := "", len(key)/3+2 // so many letters are another word
	keys := make([]string, d.Fields().Len())
	for i := range keys {
		keys[i] = d.Fields().Get(i).JSONName()
		if n := levenshtein.ComputeDistance(key, keys[i]); n < least {
			best, least = keys[i], n
		}
	}
	if best != "" {
		return "did you mean " + best + "?"
	}
	return "must be one of " + strings.Join(keys, ", ")
}

func join(path, key string) string {
	key = shorten(key)
	if path == "" {
		return key
	}
	return path + "." + key
}

// shorten keeps a text from filling the screen.
func shorten(s string) string {
	const most = 64
	if r := []rune(s[:min(len(s), 4*most+4)]); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
