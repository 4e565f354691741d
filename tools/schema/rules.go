// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/bounds"
	"github.com/stagger-go/stagger/internal/hooks/balancing"
	"github.com/stagger-go/stagger/internal/policyfile/header"
)

// rule adds to the schema of a field, a list or a message the rules that the proto has only in comments.
type rule func(*schema)

// rulesByName returns the ranges and conditions of fields and messages by name; a name with [] means a whole list. A test
// compares each with policy.Parse. No schema can express conditions on other entries, or decimals.
func rulesByName() map[protoreflect.FullName]rule {
	rules := map[protoreflect.FullName]rule{}
	for name, r := range map[protoreflect.FullName]rule{
		"PolicyFile.load_balancing_config": onePolicyEach,
		"PolicyFile.health_check_config":   func(s *schema) { s.Properties = map[string]*schema{"serviceName": stringOrNull(&schema{})} },
		"PolicyFile.max_waiting":           least(1),
		"PolicyFile.mode":                  falseIsOff,
		"PolicyFile.max_attempts_limit":    between(2, 100),

		"MethodConfig.mode":     falseIsOff,
		"MethodConfig":          func(s *schema) { when(s, "idempotency", "NONE", "idempotencyKey", never()) },
		"IdempotencyKey.header": idempotencyHeader,
		"Name":                  methodNeedsService,
		"Name.service":          both(pattern("^[^/]*$", "must be a full name without slashes"), func(s *schema) { stringOrNull(s) }),
		"Name.method":           both(pattern("^[^/]*$", "must be a name without slashes"), func(s *schema) { stringOrNull(s) }),

		"RetryPolicy":                          both(fixedIsOne, timeouts),
		"RetryPolicy.max_attempts":             least(2),
		"RetryPolicy.backoff_multiplier":       positive,
		"RetryPolicy.retryable_status_codes[]": notEmpty,
		"RetryPolicy.budget":                   notEmpty,

		"RetryPolicy.per_code[]": func(s *schema) { s.MaxItems = new(16) },

		"CodePolicy":                    fixedIsOne,
		"CodePolicy.codes[]":            notEmpty,
		"CodePolicy.max_attempts":       least(1),
		"CodePolicy.backoff_multiplier": positive,

		"HedgingPolicy.max_attempts":        least(2),
		"HedgingPolicy.hedging_delay":       zeroOrMore,
		"HedgingPolicy.max_connection_wait": zeroOrMore,
		"RetryPolicy.max_connection_wait":   zeroOrMore,
		"HedgingPolicy.budget":              notEmpty,
		"HedgingQuantile.quantile":          both(positive, func(s *schema) { s.ExclusiveMaximum = new(1.0) }),

		"Budget":      oneKind,
		"Budget.name": both(notEmpty, not("^"+foldCase("NONE")+"$", "must be a name, and not NONE, which means no budget")),
	} {
		rules["stagger.policy.v1."+name] = r
	}
	for _, b := range []struct {
		message  protoreflect.FullName
		config   budget.Config
		defaults bool // the config has the defaults
	}{
		{"RetryThrottling", budget.ThrottleConfig{MaxTokens: 1, TokenRatio: 1}, false},
		{"BucketBudget", budget.Default(), true},
	} {
		for _, f := range bounds.OfBudget(b.config) {
			r := within(f)
			if b.defaults {
				r = both(r, fallback(f))
			}
			rules["stagger.policy.v1."+b.message+"."+protoreflect.FullName(snake(f.Name))] = r
		}
	}
	return rules
}

// fallback adds the default of a budget's setting.
func fallback(f bounds.Field) rule {
	text := strconv.FormatFloat(f.Value, 'f', -1, 64)
	if f.Unit != "" {
		text = strconv.Quote(text + f.Unit)
	}
	return func(s *schema) { s.Default = json.RawMessage(text) }
}

// within adds the bounds of a budget's setting.
func within(f bounds.Field) rule {
	switch {
	case f.Unit == "s":
		return seconds(int(f.Low), int(f.High))
	case f.High == math.MaxFloat64:
		return least(f.Low)
	default:
		return between(f.Low, f.High)
	}
}

// seconds accepts durations between two whole numbers of seconds, both more than 0.
func seconds(low, high int) rule {
	var whole []string
	for n := low; n < high; n++ {
		whole = append(whole, strconv.Itoa(n))
	}
	return pattern(fmt.Sprintf(`^0*((%s)(\.[0-9]{1,9})?|%d(\.0{1,9})?)s$`, strings.Join(whole, "|"), high),
		fmt.Sprintf("must be %ds to %ds", low, high))
}

// snake returns the name of a field in the proto: max_tokens of MaxTokens.
func snake(name string) string {
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

func both(one, other rule) rule { return func(s *schema) { one(s); other(s) } }

func least(low float64) rule { return func(s *schema) { s.Minimum = &low } }

func between(low, high float64) rule {
	return func(s *schema) { s.Minimum, s.Maximum = &low, &high }
}

func positive(s *schema) { s.ExclusiveMinimum = new(0.0) }

// notEmpty is for strings and lists.
func notEmpty(s *schema) {
	if s.Type == typeString {
		s.MinLength = new(1)
	} else {
		s.MinItems = new(1)
	}
}

// pattern requires a match; words is the message for editors.
func pattern(expression, words string) rule {
	return func(s *schema) {
		s.Pattern = expression
		addExtra(s, "patternErrorMessage", words)
	}
}

// not forbids a match; words is the message. Some editors also show it for values of a wrong type.
func not(expression, words string) rule {
	return func(s *schema) {
		s.Not = &schema{Pattern: expression}
		addExtra(s, "errorMessage", words)
	}
}

// addExtra adds a key for editors.
func addExtra(s *schema, key, words string) {
	if s.Extra == nil {
		s.Extra = map[string]any{}
	}
	s.Extra[key] = words
}

// stringOrNull accepts a string, or null, which gRPC treats as absent.
func stringOrNull(s *schema) *schema {
	s.Type, s.Types = "", []string{typeString, "null"}
	return s
}

// zeroOrMore also accepts a duration of zero.
func zeroOrMore(s *schema) {
	s.Pattern, s.AllOf = `^(0*[0-9]{1,10}(\.[0-9]{1,9})?|-0+(\.0{1,9})?)s$`, nil
}

// when applies a schema to another key if a key has a value, in any case.
func when(s *schema, key, value, other string, then *schema) {
	is := &schema{Type: typeString, Pattern: "^" + foldCase(value) + "$"}
	s.AllOf = append(s.AllOf, &schema{
		If:   &schema{Required: []string{key}, Properties: map[string]*schema{key: is}},
		Then: &schema{Properties: map[string]*schema{other: then}},
	})
}

func fixedIsOne(s *schema) {
	when(s, "growth", "FIXED", "backoffMultiplier", &schema{Const: new(any(1))})
}

// timeouts allows one name for the attempt timeout.
func timeouts(s *schema) {
	const ours, grpcs = "perAttemptTimeout", "perAttemptRecvTimeout"
	s.AllOf = append(s.AllOf, &schema{
		If:   &schema{Required: []string{ours}},
		Then: &schema{Properties: map[string]*schema{grpcs: never()}},
	})
}

// idempotencyHeader requires a header in which servers get a key.
func idempotencyHeader(s *schema) {
	pattern("^[a-z0-9_.-]+$", `must have only lower-case letters, digits, "-", "_" and "."`)(s)
	lost := make([]string, 0, len(header.Lost))
	for _, name := range header.Lost {
		lost = append(lost, regexp.QuoteMeta(name))
	}
	not(fmt.Sprintf("^%s|%s$|^(%s)$", header.Prefix, header.BinarySuffix, strings.Join(lost, "|")),
		fmt.Sprintf("must be a header in which servers get a key: none that begins with %s or ends with %s, "+
			"and none of gRPC's or HTTP/2's own, such as %s", header.Prefix, header.BinarySuffix, header.Lost[len(header.Lost)-1]))(s)
}

// falseIsOff accepts what tools that read YAML 1.1 write for OFF.
func falseIsOff(s *schema) {
	s.AnyOf = append(s.AnyOf, &schema{Const: new(any(false))}, &schema{Type: typeString, Pattern: "^" + foldCase("false") + "$"})
}

func methodNeedsService(s *schema) {
	given := func(key string) *schema {
		is := &schema{Type: typeString, MinLength: new(1)}
		return &schema{Required: []string{key}, Properties: map[string]*schema{key: is}}
	}
	s.If, s.Then = given("method"), given("service")
}

// oneKind requires a budget to have a kind. Each oneof already forbids two.
func oneKind(s *schema) {
	for _, key := range []string{"bucket", "throttle"} {
		s.AnyOf = append(s.AnyOf, &schema{Required: []string{key}})
	}
}

// onePolicyEach requires a list of load balancing policies, each with its settings. That of package elsewhere is known:
// it contains the policy that picks.
func onePolicyEach(s *schema) {
	entry := func() *schema {
		return &schema{Type: typeObject, MinProperties: new(1), MaxProperties: new(1), AdditionalProperties: &schema{Type: typeObject}}
	}
	s.MinItems, s.Items = new(1), entry() // gRPC refuses a file with an empty list
	s.Items.Properties = map[string]*schema{balancing.Policy: {
		Type: typeObject, Required: []string{"childPolicy"},
		Properties: map[string]*schema{"childPolicy": {Type: typeArray, MinItems: new(1), Items: entry()}},
	}}
}
