// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stagger-go/stagger/policy"
)

// share is how large the hostile files are: with the race detector, 1 MiB each takes minutes.
const share = 128 << 10

// much repeats a text up to a share.
func much(text string) string { return strings.Repeat(text, share/len(text)) }

// numbered repeats a text with a number in it up to a share.
func numbered(text string) string {
	var b strings.Builder
	for i := 0; b.Len() < share; i++ {
		fmt.Fprintf(&b, text, i)
	}
	return b.String()
}

// stairs are maps in maps, one level and one blank deeper in each line.
func stairs(levels int) string {
	var b strings.Builder
	for i := range levels {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

// hostile are files that are made to cost a reader time or memory. All are refused.
func hostile() map[string]string {
	entry := func(key, value string) string { return "methodConfig: [{name: [{}], " + key + ": " + value + "}]" }
	ratio := func(percent string) string { return "budgets: [{name: a, ratio: {percent: " + percent + "}}]" }
	return map[string]string{
		"blanks": much(" "), "tabs": much("\t"), "empty lines": much("\n"), "returns": much("\r"), "comments": much("#\n"), "one comment": much("#"),
		"a bomb of values":      bomb(),
		"a bomb of text":        "a: &a " + strings.Repeat("x", 60_000) + "\nb: [" + strings.Repeat("*a,", 20_000) + "]",
		"many aliases":          "a: &a 1\nb: [" + strings.Repeat("*a,", 40_000) + "1]",
		"a loop":                "a: &a [*a, *a, *a, *a, *a, *a, *a, *a]",
		"a loop through a map":  "a: &a {b: *a, c: *a, d: {e: *a}}",
		"anchors before a text": much("&a "), "anchors": "a: [" + much("&a 1,") + "1]", "anchors of many names": "a: [" + numbered("&a%d 1,") + "1]",
		"tags": "a: " + much("!a "), "tag directives": numbered("%%TAG !a%d! tag:a\n"), "documents": much("---\n"), "documents with values": much("--- a\n"),
		"lists in lists":         much("["),
		"lists in lists by dash": much("- "), "keys in keys": much("? "), "values of values": much(": "), "maps in maps": "a: " + much("{a: "),
		"maps in maps by line":                 stairs(500),
		"lists in lists, JSON":                 `{"a":` + much("["),
		"maps in maps, JSON":                   much(`{"a":`),
		"a huge text":                          entry("timeout", much("x")),
		"a huge text of words":                 entry("timeout", much("x ")),
		"a huge quoted text":                   entry("timeout", `"`+much("x")+`"`),
		"a huge escaped text":                  entry("timeout", `"`+much(`\n`)+`"`),
		"a huge literal text":                  "loadBalancingConfig: |\n" + much(" x\n"),
		"a huge folded text":                   "loadBalancingConfig: >\n x\n" + much("\n") + " y",
		"a text without an end":                `a: "` + much("x\n"),
		"a huge key":                           much("k") + ": 1",
		"a huge key, JSON":                     `{"` + much(`\u0041`) + `": 1}`,
		"a huge whole number":                  "maxWaiting: " + much("9"),
		"a huge whole number, JSON":            `{"maxWaiting": ` + much("9") + "}",
		"huge decimals":                        ratio("0." + much("1")),
		"a huge exponent":                      ratio("1e" + much("9")),
		"a huge duration":                      entry("timeout", much("9")+"s"),
		"a duration of a huge number of parts": entry("timeout", much("1h")),
		"nothing but mistakes":                 entry("retryPolicy", "{retryableStatusCodes: ["+much("XUNAVAILABLE,")+"]}"),
		"nothing but slips in keys":            "budgets: [" + much("{xname: 1},") + "]",
		"nothing but missing keys":             entry("retryPolicy", "{codeOverrides: ["+much("{},")+"]}"),
		"a map in a list":                      "loadBalancingConfig: [{" + much("a,") + "}]",
		"a list in a list":                     "loadBalancingConfig: [[" + much("a,") + "]]",
		"many keys":                            numbered("k%d: 1\n"),
		"many keys, JSON":                      "{" + numbered(`"k%d":1,`) + `"z":1}`,
		"many entries":                         "methodConfig:\n" + much("- {name: [{}]}\n"),
		"many values":                          "loadBalancingConfig: [" + much("1,") + "]",
	}
}

// TestNoFileTakesMuchMemory measures all that Parse allocates, though most of it is gone soon: the YAML reader
// copies its queue of tokens again and again. It is not parallel: the measure is of the process.
func TestNoFileTakesMuchMemory(t *testing.T) {
	const perByte, mistakes = 1200, 16 << 20
	for name, text := range hostile() {
		taken, err := allocated(text)
		if err == nil {
			t.Errorf("%s: is no mistake", name)
		}
		if most := uint64(len(text)*perByte + mistakes); taken > most {
			t.Errorf("%s: %d bytes made Parse allocate %d; want at most %d", name, len(text), taken, most)
		}
		if len(fmt.Sprint(err)) > 256<<10 {
			t.Errorf("%s: the error has %d bytes", name, len(err.Error()))
		}
	}
}

func TestAFileThatIsTooLargeIsNotLookedAt(t *testing.T) {
	for name, text := range map[string]string{
		"10 MiB of nothing": strings.Repeat(" ", 10<<20), "10 MiB of a bomb": strings.Repeat("- &a [*a, *a]\n", 10<<20/14), "10 MiB of JSON": strings.Repeat(`{"a":`, 2<<20),
	} {
		taken, err := allocated(text)
		if err == nil || err.Error() != "f: is larger than 1048576 bytes (1 MiB)" {
			t.Errorf("%s: %v", name, err)
		}
		if taken > 64<<10 {
			t.Errorf("%s: Parse allocated %d bytes", name, taken)
		}
	}
}

func allocated(text string) (uint64, error) {
	data := []byte(text)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := policy.Parse("f", data)
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, err
}
