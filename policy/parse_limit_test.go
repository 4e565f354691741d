// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
)

// fill repeats a text up to just under 1 MiB.
func fill(text string) string { return strings.Repeat(text, (1<<20-100)/len(text)) }

// bomb is the billion laughs: nine levels of aliases to ten of the level before.
func bomb() string {
	var b strings.Builder
	b.WriteString("healthCheckConfig:\n  a: &a [x]\n")
	for c := 'b'; c <= 'j'; c++ {
		alias := fmt.Sprintf("*%c", c-1)
		fmt.Fprintf(&b, "  %c: &%c [%s]\n", c, c, strings.Join([]string{
			alias, alias, alias, alias, alias, alias, alias, alias, alias, alias,
		}, ", "))
	}
	return b.String()
}

// TestParseLimits has inputs that would exhaust the time or memory of a naive parser.
func TestParseLimits(t *testing.T) {
	t.Parallel()
	const (
		deep   = "nests deeper than 32 levels"
		values = "has more than 50000 values, aliases followed"
		bytes  = "has more than 1048576 bytes of text, aliases followed"
	)
	for _, row := range []struct {
		name, text, want string
	}{
		{"10 MiB", strings.Repeat(" ", 10<<20), "f: is larger than 1048576 bytes (1 MiB)"},
		{"1 MiB and a byte", strings.Repeat("#", 1<<20+1), "f: is larger than 1048576 bytes (1 MiB)"},
		{"1 MiB of nothing", strings.Repeat("#", 1<<20), "f:1:1: is empty; a policy file has keys such as methodConfig"},
		{"lists in lists in JSON", `{"a":` + fill("["), "f:1:10005: is not JSON: invalid character '[' exceeded max depth"},
		{"33 lists in JSON", `{"a":` + strings.Repeat("[", 33) + strings.Repeat("]", 33) + "}", "f:1:38: " + deep},
		{"33 lists in YAML", "a: " + strings.Repeat("[", 33) + strings.Repeat("]", 33), "f:1:36: " + deep},
		{"lists in lists in YAML", "a: " + fill("["), "f:1:10004: is not YAML: while increasing flow level: exceeded max depth of 10000"},
		{"many values in JSON", `{"a":[` + fill("1,") + "1]}", "f:1:100003: " + values},
		{"many values in YAML", "a: [" + strings.Repeat("1, ", 60_000) + "]", "f:1:149999: " + values},
		{"a bomb of values", bomb(), "f:2:6: " + values},
		{"a bomb of text", "a: &a " + strings.Repeat("x", 1000) + "\nb: [" + strings.Repeat("*a, ", 2000) + "]", "f:1:4: " + bytes},
		{"a bomb of keys", "a: &a " + strings.Repeat("x", 1000) + "\nb: [" + strings.Repeat("{*a : 1}, ", 2000) + "]", "f:2:10471: " + bytes},
		{"a loop", "a: &a\n  b: *a", "f:1:4: " + deep},
		{"an alias as its own key", "healthCheckConfig: &a {*a : 1}", "f:1:24: healthCheckConfig: a key must be a string"},
		{"NUL", "methodConfig: []\n# \x00", "f:2:3: holds the control character U+0000; remove it"},
		{"DEL", "größe: \x7f", "f:1:8: holds the control character U+007F; remove it"},
		{"not UTF-8", "methodConfig: []\n# gr\xf6\xdfe", "f:2:5: is not UTF-8: byte 0xf6"},
		{"UTF-16", "\xff\xfe{\x00}\x00", "f:1:1: is not UTF-8: byte 0xff"},
		{"a byte order mark before JSON", "\uFEFF{}", "f:1:1: begins with a byte order mark; save the file as UTF-8 without one"},
		{"a byte order mark before YAML", "\uFEFFmethodConfig: []", "f:1:1: begins with a byte order mark; save the file as UTF-8 without one"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if _, err := policy.Parse("f", []byte(row.text)); err == nil || firstLine(err) != row.want {
				t.Errorf("Parse = %v; want %s", err, row.want)
			}
		})
	}
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// TestParseOneDocument has further documents after the end of the first.
func TestParseOneDocument(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"maxWaiting: 5\n---\nmaxWaiting: 6\n":                 "f:2:1: a second document begins here; a policy file has only one",
		"maxWaiting: 5\n...\n---\nmaxWaiting: 6\n":            "f:3:1: a second document begins here; a policy file has only one",
		"maxWaiting: 5\n...\nmaxWaiting: 6\n":                 "f:3:1: a second document begins here; a policy file has only one",
		"maxWaiting: 5\n...\n%YAML 1.2\n---\nmaxWaiting: 6\n": "f:3:1: is not YAML: found incompatible YAML document",
		"---\n---\nmaxWaiting: 6\n":                           "f:2:1: a second document begins here; a policy file has only one",
		"---\nmaxWaiting: 5\n...\n# the end\n":                "",
	} {
		_, err := policy.Parse("f", []byte(text))
		if got := fmt.Sprint(err); err == nil && want != "" || err != nil && got != want {
			t.Errorf("Parse(%q) = %v; want %q", text, err, want)
		}
	}
}

// TestParseManyErrors has a file of a million bytes, all wrong.
func TestParseManyErrors(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	var b strings.Builder
	for i := range 14_000 {
		fmt.Fprintf(&b, "a%d: %s\n", i, strings.Repeat("x", 60))
	}
	_, err := policy.Parse("f", []byte(b.String()))
	if err == nil || len(err.Error()) > 256<<10 {
		t.Fatalf("Parse = an error of %d bytes", len(fmt.Sprint(err)))
	}
	if want := "f:1000:1: and 13000 more, which are not listed"; !strings.HasSuffix(err.Error(), "\n"+want) {
		t.Errorf("the error ends with %q; want %s", err.Error()[len(err.Error())-80:], want)
	}
}

// share is the size of the hostile files: with the race detector, 1 MiB each would take minutes.
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

// stairs returns nested maps, one level and one more space in each line.
func stairs(levels int) string {
	var b strings.Builder
	for i := range levels {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

// hostile returns files that cost a parser much time or memory. All are refused.
func hostile() map[string]string {
	entry := func(key, value string) string { return "methodConfig: [{name: [{}], " + key + ": " + value + "}]" }
	size := func(size string) string { return "budgets: [{name: a, bucket: {size: " + size + "}}]" }
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
		"huge decimals":                        size("0." + much("1")),
		"a huge exponent":                      size("1e" + much("9")),
		"a huge duration":                      entry("timeout", much("9")+"s"),
		"a duration of a huge number of parts": entry("timeout", much("1h")),
		"nothing but mistakes":                 entry("retryPolicy", "{retryableStatusCodes: ["+much("XUNAVAILABLE,")+"]}"),
		"nothing but slips in keys":            "budgets: [" + much("{xname: 1},") + "]",
		"nothing but missing keys":             entry("retryPolicy", "{perCode: ["+much("{},")+"]}"),
		"a map in a list":                      "loadBalancingConfig: [{" + much("a,") + "}]",
		"a list in a list":                     "loadBalancingConfig: [[" + much("a,") + "]]",
		"many keys":                            numbered("k%d: 1\n"),
		"many keys, JSON":                      "{" + numbered(`"k%d":1,`) + `"z":1}`,
		"many entries":                         "methodConfig:\n" + much("- {name: [{}]}\n"),
		"many values":                          "loadBalancingConfig: [" + much("1,") + "]",
	}
}

// TestParseMemory measures all allocations of Parse, though most are soon freed: the YAML parser copies its queue of tokens
// repeatedly. The test is not parallel, because it measures the whole process.
func TestParseMemory(t *testing.T) {
	testkit.Long(t)
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

func allocated(text string) (uint64, error) {
	data := []byte(text)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := policy.Parse("f", data)
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, err
}
