// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"strings"

	"pgregory.net/rapid"
)

// pair is a key of a drawn file with its value: a text, a list of texts or pairs.
type pair struct {
	key   string
	value any
}

// drawn is a policy file in a layout that somebody may have given it.
func drawn(t *rapid.T) string {
	some := func(list ...pair) []pair {
		var kept []pair
		for _, p := range rapid.Permutation(list).Draw(t, "order") {
			if p.value != nil {
				kept = append(kept, p)
			}
		}
		return kept
	}
	maybe := func(v any) any {
		if rapid.Bool().Draw(t, "there") {
			return v
		}
		return nil
	}
	of := func(list ...string) string { return rapid.SampledFrom(list).Draw(t, "value") }
	second := func() string { return of("0.050s", "1s", "01.50s", `"0.1s"`, "'2s'", "3.000000001s") }
	codes := func() []any {
		return []any{of("UNAVAILABLE", "unavailable", `"14"`[1:3]), of("ABORTED", `'aborted'`, "10")}
	}
	retry := func() []pair {
		return some(
			pair{"maxAttempts", of("2", "4")},
			pair{"initialBackoff", second()}, pair{"maxBackoff", second()},
			pair{"backoffMultiplier", of("2", "1.5", "2.0", "1e0")}, pair{"retryableStatusCodes", codes()},
			pair{"jitter", maybe(of("full", "EQUAL", `"none"`))}, pair{"perAttemptTimeout", maybe(second())},
			pair{"budget", maybe(of("b", "NONE", `"b"`))}, pair{"chain", maybe(of("once", "ALLOW"))},
			pair{"perCode", maybe([]any{some(pair{"codes", []any{"ABORTED"}}, pair{"costFactor", "2"})})},
			pair{"codeOverrides", maybe([]any{some(
				pair{"codes", []any{"UNKNOWN"}}, pair{"messageContains", of(`"a # b"`, `'yes'`, `"1e3"`, "it's", `"\u00e9\t: {"`)}, pair{"as", "aborted"},
			)})},
		)
	}
	var entries []any
	for i := range rapid.IntRange(1, 3).Draw(t, "entries") {
		name := some(pair{"service", of("a.B", `"a.B"`)}, pair{"method", "M" + string(rune('A'+i))})
		entries = append(entries, some(
			pair{"name", []any{name}}, pair{"timeout", maybe(second())}, pair{"retryPolicy", maybe(retry())},
			pair{"idempotency", maybe(of("assume", "NONE"))}, pair{"waitForReady", maybe("true")},
		))
	}
	p := printer{t: t}
	p.block(0, some(
		pair{"methodConfig", entries}, pair{"maxWaiting", maybe("10")}, pair{"idempotency", maybe("declared")},
		pair{"loadBalancingConfig", maybe([]any{[]pair{{"round_robin", []pair{}}}})},
		pair{"budgets", []any{some(pair{"name", "b"}, pair{"ratio", []pair{{"percent", "10.0"}}}, pair{"scope", maybe("process")})}},
	))
	return p.String()
}

// printer writes values in layouts that are drawn.
type printer struct {
	strings.Builder

	t *rapid.T
}

func (p *printer) chance(n int) bool { return rapid.IntRange(0, n).Draw(p.t, "layout") == 0 }

func (p *printer) pad(level int) { p.WriteString(strings.Repeat(" ", level)) }

// noise is what stands between two lines.
func (p *printer) noise(level int) {
	if p.chance(3) {
		p.WriteString("\n")
	}
	if p.chance(4) {
		p.pad(level)
		p.WriteString("# a comment of this line's\n")
	}
}

// end is that of a line.
func (p *printer) end() {
	if p.chance(6) {
		p.WriteString(" # said beside it")
	}
	p.WriteString("\n")
}

func (p *printer) block(level int, list []pair) {
	for i, one := range list {
		if i > 0 || level == 0 {
			p.noise(level)
			p.pad(level)
		}
		p.WriteString(one.key + ":")
		p.value(level, one.value)
	}
}

func (p *printer) value(level int, v any) {
	switch v := v.(type) {
	case string:
		p.WriteString(" " + v)
		p.end()
	case []pair:
		if len(v) == 0 || p.chance(1) {
			p.WriteString(" " + flow(v))
			p.end()
			return
		}
		p.end()
		p.noise(level + 2)
		p.pad(level + 2)
		p.block(level+2, v)
	case []any:
		if p.chance(1) {
			p.WriteString(" " + flow(v))
			p.end()
			return
		}
		p.end()
		for _, item := range v {
			p.noise(level + 2)
			p.pad(level + 2)
			p.WriteString("-")
			switch item := item.(type) {
			case []pair:
				p.WriteString(" ")
				p.block(level+4, item)
			default:
				p.value(level+4, item)
			}
		}
	}
}

// flow is a value in one line.
func flow(v any) string {
	var parts []string
	switch v := v.(type) {
	case []pair:
		for _, one := range v {
			parts = append(parts, one.key+": "+flow(one.value))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		for _, one := range v {
			parts = append(parts, flow(one))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	default:
		s, _ := v.(string)
		return s
	}
}
