// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"strings"
	"testing"

	"github.com/stagger-go/stagger/policy"
)

// TestConfigRules has the points in which implementations of gRPC read a service config
// differently (D33 to D43 of the project's notes), and what is decided here. @ stands for the
// required keys of a retry policy but the codes and the attempts.
func TestConfigRules(t *testing.T) {
	t.Parallel()
	const rest = `"initialBackoff": "1s", "maxBackoff": "1s", "backoffMultiplier": 1`
	entry := func(fields string) string { return `{"methodConfig": [{"name": [{}], ` + fields + `}]}` }
	retry := func(fields string) string { return entry(`"retryPolicy": {` + rest + `, ` + fields + `}`) }
	code := func(list string) string { return retry(`"maxAttempts": 2, "retryableStatusCodes": ` + list) }
	attempts := func(n string) string { return retry(`"retryableStatusCodes": [14], "maxAttempts": ` + n) }
	duration := func(d string) string { return entry(`"timeout": "` + d + `"`) }
	for _, row := range []struct {
		rule, text string
		ok         bool
	}{
		{"D33 upper case", code(`["UNAVAILABLE"]`), true},
		{"D33 lower and mixed case", code(`["unavailable", "Aborted"]`), true},
		{"D33 both spellings", code(`["CANCELLED", "CANCELED", "canceled"]`), true},
		{"D33 numbers", code(`[1, 16]`), true},
		{"D33 twice", code(`[14, 14, "UNAVAILABLE"]`), true},
		{"D33 OK", code(`["OK"]`), false},
		{"D33 0", code(`[0]`), false},
		{"D33 17", code(`[17]`), false},
		{"D33 none", code(`[]`), false},
		{"D34 more than 5", attempts("100"), true},
		{"D35 2", attempts("2"), true},
		{"D35 1", attempts("1"), false},
		{"D35 0", attempts("0"), false},
		{"D36 both policies", entry(`"retryPolicy": {"maxAttempts": 2, "retryableStatusCodes": [14], ` + rest + `}, "hedgingPolicy": {"maxAttempts": 2}`), false},
		{"D36 one policy", entry(`"hedgingPolicy": {"maxAttempts": 2}`), true},
		{"D37 unknown at the top", `{"retry": {}}`, false},
		{"D37 unknown below", entry(`"retry": {}`), false},
		{"D37 gRPC's other keys", `{"loadBalancingPolicy": "x", "loadBalancingConfig": [], "healthCheckConfig": {}, "connectionScaling": {}}`, true},
		{"D37 gRPC's other keys of an entry", entry(`"timeout": "1s", "waitForReady": true, "maxRequestMessageBytes": 1, "maxResponseMessageBytes": 1`), true},
		{"D38 twice", `{"methodConfig": [], "methodConfig": []}`, false},
		{"D39 decimals", duration("0.123456789s"), true},
		{"D39 more zeros", duration("001.50s"), true},
		{"D39 ten decimals", duration("0.1234567890s"), false},
		{"D39 no digit before the point", duration(".5s"), false},
		{"D39 no digit after the point", duration("1.s"), false},
		{"D39 plus", duration("+1s"), false},
		{"D39 exponent", duration("1e1s"), false},
		{"D39 milliseconds", duration("100ms"), false},
		{"D39 minus", duration("-1s"), false},
		{"D39 nothing", duration("0s"), false},
		{"D39 minus nothing", duration("-0s"), false},
		{"D39 292 years", duration("9223372035.999999999s"), true},
		{"D39 10000 years, gRPC's most", duration("315576000000s"), false},
		{"D40 comment", `{} // none`, false},
		{"D40 byte order mark", "\uFEFF{}", false},
		{"D40 trailing data", `{} {}`, false},
		{"D40 trailing space", "{} \r\n\t", true},
		{"D41 a number in quotes", entry(`"maxRequestMessageBytes": "10"`), false},
		{"D42 no names", `{"methodConfig": [{"name": []}]}`, true},
		{"D42 a name twice", `{"methodConfig": [{"name": [{}, {}]}]}`, false},
		{"D42 a method without service", `{"methodConfig": [{"name": [{"method": "M"}]}]}`, false},
	} {
		set, err := policy.Parse("f.json", []byte(row.text))
		if (err == nil) != row.ok {
			t.Errorf("%s: Parse(%s) = %v; want ok: %v", row.rule, row.text, err, row.ok)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: one mistake gives more than one problem:\n%v", row.rule, err)
		}
		if err == nil && strings.HasPrefix(row.rule, "D34") && set.Lookup("/a/b").MaxAttempts() != 100 {
			t.Errorf("%s: %d attempts; the cap is the Retrier's business", row.rule, set.Lookup("/a/b").MaxAttempts())
		}
	}
}
