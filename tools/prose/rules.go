// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"strings"
)

// rules are patterns of sentences that are read twice. A match that also matches except is none.
var rules = []struct {
	pattern, except string
	advice          string
}{
	{`(?i)\b(nobody|somebody)\b`, ``, "name the actor"},
	{`(^|[;:] )[Ww]hat\b`, ``, "a clause is the subject: use a noun"},
	{`(^|[;:] )([Ww]ho|[Ww]hoever|[Ww]hose)\b`, ``, "address the reader: If you …"},
	{`(?i)\bno( \w+)? more\b( than)?`, `than$`, "negate the verb: not … any more, nothing else"},
	{`(?i)\b(is|are|was|were|does|do) no\b( longer| more than)?`, `longer$|than$`, "negate the verb: isn't a, doesn't have a"},
	{`(?i)\bin mid-`, ``, "say during, in the middle of"},
	{`(?i)\b(server|caller|backend|peer|client)'s( own)? word\b|\bleave to (send|spend|go)\b`, ``, "use the field's term: pushback, permission"},
	{`(?i)\bbeside\b`, ``, "say next to, in parallel with, compared with"},
	{`(?i)\b(sent|send|sends|tried|asked|done) once more\b|\banew\b|\ball the same\b`, ``, "say again, retried, still"},
	{`(, |^)too[,.;]`, ``, "say also, or: as well"},
	{`^Of (a|an|the|these|those|all|its|two|three)\b`, ``, "put the subject first"},
	{`(?i)\blets no\b|\bnone of (which|whom)\b|\bsave (that|for)\b|\blest\b|\bhence\b|\bthereof\b`, ``, "say it in today's English"},
}

var (
	compiled = func() (list []rule) {
		for _, r := range rules {
			c := rule{pattern: regexp.MustCompile(r.pattern), advice: r.advice}
			if r.except != "" {
				c.except = regexp.MustCompile(r.except)
			}
			list = append(list, c)
		}
		return list
	}()
	quotation = regexp.MustCompile(`"[^"]*"|“[^”]*”`)
	thereIs   = regexp.MustCompile(`(?i)\bthere (is|are|was|were) no\b`)
)

type rule struct {
	pattern, except *regexp.Regexp
	advice          string
}

// check lists what is advised for a sentence.
func check(s string) (advice []string) {
	if strings.HasSuffix(s, "?") {
		return nil
	}
	s = quotation.ReplaceAllString(s, `"…"`)
	s = thereIs.ReplaceAllString(s, "…")
	for _, r := range compiled {
		for _, match := range r.pattern.FindAllString(s, -1) {
			if r.except == nil || !r.except.MatchString(match) {
				advice = append(advice, strings.TrimSpace(match)+": "+r.advice)
			}
		}
	}
	return advice
}
