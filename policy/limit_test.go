// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"strings"
	"testing"

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

// TestNoFileIsTooMuch gives Parse what would take a naive reader's time or memory.
func TestNoFileIsTooMuch(t *testing.T) {
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
		{"1 MiB of nothing", strings.Repeat("#", 1<<20), "f:1:1: is empty; a policy file has keys such as methodConfig, or is {}"},
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
		{"an alias as its own key", "healthCheckConfig: &a {*a : 1}", "f:1:24: healthCheckConfig: a key must be a text"},
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

// TestAFileIsOneDocument has documents after what ends the first.
func TestAFileIsOneDocument(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"maxWaiting: 5\n---\nmaxWaiting: 6\n":                 "f:2:1: a second document begins here; a policy file is one",
		"maxWaiting: 5\n...\n---\nmaxWaiting: 6\n":            "f:3:1: a second document begins here; a policy file is one",
		"maxWaiting: 5\n...\nmaxWaiting: 6\n":                 "f:3:1: a second document begins here; a policy file is one",
		"maxWaiting: 5\n...\n%YAML 1.2\n---\nmaxWaiting: 6\n": "f:3:1: is not YAML: found incompatible YAML document",
		"---\n---\nmaxWaiting: 6\n":                           "f:2:1: a second document begins here; a policy file is one",
		"---\nmaxWaiting: 5\n...\n# the end\n":                "",
	} {
		_, err := policy.Parse("f", []byte(text))
		if got := fmt.Sprint(err); err == nil && want != "" || err != nil && got != want {
			t.Errorf("Parse(%q) = %v; want %q", text, err, want)
		}
	}
}

// TestManyMistakesStayShort has a file of a million bytes, all wrong.
func TestManyMistakesStayShort(t *testing.T) {
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
