// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Printable returns a text with Go's escapes in place of characters that are not printable: a name in a file, or of a method that
// a caller has chosen, must not move a terminal's cursor, or begin a line of its own in a log.
func Printable(text string) string {
	if printable(text) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		char, size := utf8.DecodeRuneInString(text)
		switch {
		case char == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case unicode.IsPrint(char):
			b.WriteString(text[:size])
		default:
			quoted := strconv.QuoteRune(char)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		text = text[size:]
	}
	return b.String()
}

func printable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(char rune) bool { return !unicode.IsPrint(char) })
}

// PrintableJSON returns JSON with escapes in place of characters in strings that are not printable. encoding/json escapes
// only those below U+0020, and U+2028 and U+2029.
func PrintableJSON(data []byte) []byte {
	text := string(data)
	if !strings.ContainsFunc(text, hidden) {
		return data
	}
	var b strings.Builder
	for _, char := range text {
		switch {
		case !hidden(char):
			b.WriteRune(char)
		case char > 0xffff:
			high, low := utf16.EncodeRune(char)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, char)
		}
	}
	return []byte(b.String())
}

// hidden reports whether a character can only stand in JSON's strings, and is not printable.
func hidden(char rune) bool { return char > '~' && !unicode.IsPrint(char) }

// Bounded returns an error's text as valid UTF-8 of at most so many bytes. The end of a longer one says how long it is.
func Bounded(text string, most int) string {
	valid := strings.ToValidUTF8(text[:min(len(text), most)], "\uFFFD")
	if len(text) <= most && len(valid) <= most {
		return valid
	}
	end := fmt.Sprintf("… (%d bytes)", len(text))
	n := min(max(most-len(end), 0), len(valid))
	for n > 0 && n < len(valid) && !utf8.RuneStart(valid[n]) {
		n--
	}
	return valid[:n] + end
}
