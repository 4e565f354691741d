// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"regexp"
	"slices"
	"testing"

	"github.com/stagger-go/stagger/policy"
)

// unsaid are the errors of policy.Parse that a schema cannot express.
var unsaid = []*regexp.Regexp{
	regexp.MustCompile(`: must have at most [234] decimals`),
	regexp.MustCompile(`: must be a whole number, written without point`),
	regexp.MustCompile(`: must be a status code's name such as UNAVAILABLE, or its number`), // 14.0
	regexp.MustCompile(`: must be at most 9223372036s`),
	regexp.MustCompile(`: no budget has that name`),
	regexp.MustCompile(`: another budget has that name`),
	regexp.MustCompile(`: is named by .* too`),
	regexp.MustCompile(`: must also be in retryableStatusCodes`),
	regexp.MustCompile(`: is in another perCode entry`),
	regexp.MustCompile(`perCode\[\d\]\.maxAttempts: .* must be 1 to the policy's maxAttempts`),
	regexp.MustCompile(`perCode\[\d\].backoffMultiplier: .* must be 1 with growth FIXED`), // the policy's own
	regexp.MustCompile(`hedgingQuantile.max: .* must be at least min`),
}

// Values that are valid for some keys and not for others, as JSON: for every key, and for those whose value is a string, a
// number or a list.
var (
	anywhere = []string{"null", "true", "false", "1", `"1"`, `"x"`, "[]", "{}", "[{}]", `[""]`, `{"a": 1}`}
	texts    = []string{
		`""`, `"x y"`, `"a/b"`, `"X"`, `"grpc-x"`, `"x-bin"`, `"x-grpc-"`, `"-bin-x"`,
		`"user-agent"`, `"te"`, `"tea"`, `"x-te"`, `"content-length"`, `"False"`, `"none"`, `"OK"`, `"shared"`,
		`"0s"`, `"-0s"`, `"-0.0s"`, `"0.000000000s"`, `"0.000000001s"`, `"1s"`, `"-1s"`, `"0.5s"`, `"01.5s"`, `"60s"`, `"60.000s"`, `"60.000000001s"`,
		`"59.999999999s"`, `"1.0000000001s"`, `"00000000000001s"`, `"9223372035s"`, `"9223372037s"`, `"10ms"`, `"1m"`, `"1 s"`, `".5s"`, `"1.s"`,
		`"aſsume"`, `"Declared"`, `"NONE"`, `"suppress"`, `"SUPPRESS"`, `"CHAIN_SUPPRESS"`, `"EXPONENTIAL"`, `"FIXED"`, `"FULL"`, `"Equal"`, `"RETRY"`,
		`"PROCESS"`, `"TARGET"`, `"service"`, `"UNSPECIFIED"`, `"UNAVAILABLE"`, `"resource_exhausted"`, `"STATUS_CODE_UNAVAILABLE"`, `"CANCELED"`, "14", "17",
	}
	numbers = []string{
		"-1", "-0.5", "0", "0.00001", "0.0001", "0.001", "0.005", "0.01", "0.5", "0.9999", "1.0", "1.5", "2", "2.345", "3", "6", "8", "14", "14.0", "16", "17",
		"100", "100.5", "1000", "1000.5", "1001", "1000000", "1000001", "4294967295", "4294967296", "1e1", "1e300",
	}
	lists = []string{
		"[null]", `[{"a": {}}]`, `[{"a": {}, "b": {}}]`, `[{"a": 1}]`, `["UNAVAILABLE"]`, `["ABORTED", 8, "CANCELED"]`, "[14, 8, 10, 1]", "[0]", "[17]", "[1.5]", `["14"]`, `["OK"]`,
		`[{"service": "a.B"}]`, `[{"method": "C"}]`, `[{"service": "", "method": "C"}]`, `[{"service": null, "method": ""}]`, `[{"service": "a.B", "method": "D"}]`,
	}
)

// candidates returns values to try instead of a value.
func candidates(t testing.TB, now any) []any {
	list := anywhere
	switch now.(type) {
	case string:
		list = slices.Concat(list, texts)
	case json.Number:
		list = slices.Concat(list, numbers)
	case []any:
		list = slices.Concat(list, lists)
	}
	values := []any{gone{}}
	for _, c := range list {
		values = append(values, fromJSON(t, []byte(c)))
	}
	return values
}

// TestSchemaAgreesWithParse tries every candidate for every value, one at a time. The schema must accept what policy.Parse
// accepts, and refuse what it refuses, except for rules that no schema can express.
func TestSchemaAgreesWithParse(t *testing.T) {
	t.Parallel()
	schema, all := compiled(t), whole(t)
	hit := make([]bool, len(unsaid))
	var taken, refused int
	for _, p := range all.places() {
		part := all.around(t, p)
		for _, v := range candidates(t, p.now) {
			d := part.with(p.path, v)
			_, parseErr := policy.Parse("f.json", d.text(t))
			schemaErr := schema.Validate(d.root)
			switch {
			case parseErr == nil && schemaErr == nil:
				taken++
			case parseErr != nil && schemaErr != nil:
				refused++
			case parseErr == nil:
				t.Errorf("%v: %v: policy.Parse takes it; the schema: %v", p, v, schemaErr)
			default:
				i := slices.IndexFunc(unsaid, func(r *regexp.Regexp) bool { return r.MatchString(parseErr.Error()) })
				if i < 0 {
					t.Errorf("%v: %v: the schema takes it; policy.Parse: %v", p, v, parseErr)
					continue
				}
				hit[i] = true
			}
		}
	}
	for i, r := range unsaid {
		if !hit[i] {
			t.Errorf("nothing is refused for %s alone", r)
		}
	}
	t.Logf("%d documents taken by both, %d refused by both", taken, refused)
	if taken < 500 || refused < 2000 {
		t.Errorf("%d documents taken by both, %d refused by both; want many of each", taken, refused)
	}
}
