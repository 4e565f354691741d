// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// unknownKey reports a key of n that its message does not have. If it can be told which was meant,
// that one is not reported as missing.
func unknownKey(ps *problems, path string, n *node, e entry, md protoreflect.MessageDescriptor) {
	keys := make([]string, md.Fields().Len())
	for i := range keys {
		keys[i] = md.Fields().Get(i).JSONName()
	}
	merge, near := e.key == "<<", nearest(e.key, keys)
	ps.at(e.at, under(path, e.key), "unknown key; %s", advice(func() string {
		if merge {
			return merging
		}
		return suggest(e.key, keys)
	}))
	ps.lose(under(path, e.key))
	for i, key := range keys {
		// A kind of budget that is not known is no missing kind.
		meant := merge || key == near || near == "" && md.Fields().Get(i).ContainingOneof() != nil
		if meant && n.get(key) == nil {
			ps.lose(under(path, key))
		}
	}
}

// advice is looked for only if it is shown.
type advice func() string

func (a advice) String() string { return a() }

// suggest names the word that was meant, or all of them.
func suggest(word string, words []string) string {
	if near := nearest(word, words); near != "" {
		return "did you mean " + near + "?"
	}
	return "must be " + oneOf(words)
}

// oneOf lists words: "A, B or C".
func oneOf(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// nearest is the word that was probably meant: the same in another spelling, else the first with
// the fewest letters changed; "" if none is near.
func nearest(word string, words []string) string {
	const longest = 64 // nobody's slip is longer
	if len(word) > longest {
		return ""
	}
	plain := strings.NewReplacer("_", "", "-", "", " ", "")
	word = strings.ToLower(plain.Replace(word))
	best, fewest := "", 3
	for _, w := range words {
		folded := strings.ToLower(plain.Replace(w))
		n := distance(word, folded)
		if sameLetters(word, folded) {
			n = 1
		}
		if n < fewest && n*3 <= len(folded)+1 {
			best, fewest = w, n
		}
	}
	return best
}

// sameLetters reports whether a is b with letters swapped, the most frequent slip of all.
func sameLetters(a, b string) bool {
	return len(a) == len(b) && slices.Equal(slices.Sorted(slices.Values([]byte(a))), slices.Sorted(slices.Values([]byte(b))))
}

// distance is how many letters must be added, dropped or replaced to turn a into b (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
