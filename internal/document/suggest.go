// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"slices"
	"strings"
)

// Lazy is a part of a message that is looked for only if it is shown.
type Lazy func() string

// String looks for it.
func (l Lazy) String() string { return l() }

// Suggest names the word that was meant, or all of them.
func Suggest(word string, words []string) string {
	if near := Nearest(word, words); near != "" {
		return "did you mean " + near + "?"
	}
	if len(words) == 0 {
		return "must be left out"
	}
	return "must be " + OneOf(words)
}

// OneOf lists words: "A, B or C".
func OneOf(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// Nearest is the word that was probably meant: the same in another spelling, else the first with
// the fewest letters changed, of a long one at most a fifth; "" if none is near.
func Nearest(word string, words []string) string {
	const longest = 64 // nobody's slip is longer
	if len(word) > longest {
		return ""
	}
	plain := strings.NewReplacer("_", "", "-", "", " ", "")
	word = strings.ToLower(plain.Replace(word))
	best, fewest := "", longest
	for _, w := range words {
		folded := strings.ToLower(plain.Replace(w))
		n := distance(word, folded)
		if sameLetters(word, folded) {
			n = 1
		}
		if n < fewest && n*3 <= len(folded)+1 && n <= max(2, len(folded)/5) {
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
