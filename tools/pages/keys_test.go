// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package pages_test

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stagger-go/stagger/internal/testkit"
)

// TestKeysPage compares the table of keys with the comments of policy.proto; with -write it writes it.
func TestKeysPage(t *testing.T) {
	t.Parallel()
	var table, plain strings.Builder
	table.WriteString("\n| key | value | meaning |\n| --- | --- | --- |\n")
	rows := 0
	source := read(t, "proto/stagger/policy/v1/policy.proto")
	for _, message := range regexp.MustCompile(`(?ms)^message (\w+) \{\n(.*?)^\}`).FindAllStringSubmatch(source, -1) {
		table.WriteString(keysOf(source, message[1]))
		fmt.Fprintf(&plain, "\n%s\n", strings.Trim(strings.ReplaceAll(keysOf(source, message[1]), "`", ""), "|* \n"))
		for _, f := range keyFields.FindAllStringSubmatch(message[2], -1) {
			row := keyRow(source, strings.Join(strings.Fields(strings.ReplaceAll(f[1], "//", "")), " "), f[2], f[3], f[4])
			table.WriteString(row)
			plain.WriteString(plainRow(row))
			rows++
		}
	}
	if rows < 50 {
		t.Errorf("%d keys; want all", rows)
	}
	wantSection(t, keysPage, "keys", table.String()+"\n")
	const path = "cmd/stagger/keys.txt" // "stagger help keys" shows it
	if got := read(t, path); got != plain.String() && *write {
		testkit.NoError(t, os.WriteFile(path, []byte(plain.String()), 0o644))
	} else if got != plain.String() {
		t.Errorf("%s is not made of policy.proto: run make generate", path)
	}
}

// plainRow returns a row of the table as text of at most 100 columns.
func plainRow(row string) string {
	cells := strings.Split(strings.Trim(strings.ReplaceAll(row, "`", ""), "| \n"), " | ")
	text, meaning := "  "+cells[0]+"  "+cells[1]+"\n", cells[2]
	line := "     "
	for word := range strings.FieldsSeq(strings.Trim(meaning, " |")) {
		if len(line)+1+len(word) > 100 {
			text, line = text+line+"\n", "     "
		}
		line += " " + word
	}
	return text + line + "\n"
}

var keyFields = regexp.MustCompile(`(?m)((?:^ +//.*\n)+) +(repeated |optional )?([\w.]+) (\w+) = \d+;`)

// keysOf returns a row that names the keys whose values are such a message.
func keysOf(source, message string) string {
	var keys []string
	for _, f := range regexp.MustCompile(`(?m)^ +(?:repeated )?`+message+` (\w+) = `).FindAllStringSubmatch(source, -1) {
		keys = append(keys, "`"+keyName(f[1])+"`")
	}
	return fmt.Sprintf("| **%s** | | |\n", cmp.Or(strings.Join(keys, ", "), "the file"))
}

func keyName(field string) string {
	return regexp.MustCompile(`_[a-z]`).ReplaceAllStringFunc(field, func(s string) string { return strings.ToUpper(s[1:]) })
}

// keyRow returns a key's row: its type, default and range, the comment's first sentence, and who knows the key.
func keyRow(source, comment, repeated, kind, field string) string {
	sentences := split(strings.TrimPrefix(strings.TrimPrefix(comment, "stagger. "), "gRPC. "))
	var usual, bounds, grpc string
	for _, s := range sentences[1:] {
		if s = strings.Trim(s, " ."); keyBounds.MatchString(s) {
			bounds = strings.ToLower(s[:1]) + s[1:]
		}
	}
	if m := regexp.MustCompile(`[,;]? ?(\S+|no limit) when absent|^required(?:, )?|^absent: (.*)`).FindStringSubmatch(bounds); m != nil {
		usual, bounds = cmp.Or(m[1], m[2], "required"), strings.Replace(bounds, m[0], "", 1)
	}
	values := regexp.MustCompile(`(?s)enum ` + kind + ` \{\n(.*?)\n\}`).FindStringSubmatch(source)
	switch short, known := keyTypes[kind]; {
	case known:
		kind = short
	case values == nil:
		kind = "{…}"
	default:
		kind = ""
		for _, v := range regexp.MustCompile(`(?m)^  ([A-Z_]+) = [1-9]`).FindAllStringSubmatch(values[1], -1) {
			prefix := regexp.MustCompile(`([A-Z_]+_)UNSPECIFIED`).FindStringSubmatch(values[1])[1]
			kind += ", `" + strings.TrimPrefix(v[1], prefix) + "`"
		}
		kind = kind[2:]
		usual = cmp.Or(usual, strings.Trim(regexp.MustCompile(`// [A-Z_]+\.\n`).FindString(values[1]), "/ .\n"))
	}
	if repeated == "repeated " {
		kind = "[" + kind + "]"
	}
	if strings.HasPrefix(comment, "gRPC") {
		grpc = "gRPC"
	}
	bounds = regexp.MustCompile(`, at most \w+ decimals`).ReplaceAllString(bounds, "")
	says := regexp.MustCompile(` \([^)]*\)|, so that .*|: accepted with .*`).ReplaceAllString(strings.Trim(sentences[0], " ."), "")
	if usual != "" && usual != "required" {
		usual = "default " + usual
	}
	if kind == "seconds" && bounds == "more than 0" { // as the page says of all
		bounds = ""
	}
	facts := slices.DeleteFunc([]string{kind, usual, bounds, grpc}, func(f string) bool { return f == "" })
	return fmt.Sprintf("| `%s` | %s | %s |\n", keyName(field), strings.Join(facts, "; "), says)
}

var (
	keyTypes = map[string]string{
		"StatusCode": "code", "google.protobuf.Duration": "seconds", "google.protobuf.ListValue": "[…]", "google.protobuf.Struct": "{…}",
		"string": "string", "uint32": "integer", "double": "number", "bool": "boolean",
	}
	keyBounds = regexp.MustCompile(`^(Required|More than|At least|Not negative|Absent: the |[0-9.]+s? to |.*when absent)`)
)

// split splits a paragraph at full stops before a possible start of a sentence.
func split(paragraph string) []string {
	var list []string
	ends := regexp.MustCompile(`[.?!]\**\)? (\p{Lu}|\d|[*_(\[\x60]|stagger\b|gRPC\b)`).FindAllStringIndex(paragraph, -1)
	from := 0
	for _, e := range ends {
		list = append(list, paragraph[from:e[0]])
		from = e[0] + 1
	}
	return append(list, paragraph[from:])
}
