// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "google.golang.org/protobuf/reflect/protoreflect"

// rule adds to the schema of a field, a list or a message what the proto says in comments only.
type rule func(*schema)

// rulesByName are the ranges and conditions, by the fields and messages that they are for; a name with [] is
// that of a whole list. A test compares each with what policy.Parse does. What depends on other entries, and
// decimals, no schema can say.
func rulesByName() map[protoreflect.FullName]rule {
	rules := map[protoreflect.FullName]rule{}
	for name, r := range map[protoreflect.FullName]rule{
		"PolicyFile.load_balancing_config": onePolicyEach,
		"PolicyFile.health_check_config":   func(s *schema) { s.Properties = map[string]*schema{"serviceName": orNull(&schema{})} },
		"PolicyFile.max_waiting":           least(1),

		"MethodConfig":          func(s *schema) { when(s, "idempotency", "NONE", "idempotencyKey", never()) },
		"IdempotencyKey.header": both(pattern("^[a-z0-9_.-]+$", `must have only lower-case letters, digits, "-", "_" and "."`), not("^grpc-|-bin$", "must be a header that does not begin with grpc- nor end with -bin")),
		"Name":                  methodNeedsService,
		"Name.service":          both(pattern("^[^/]*$", "must be a full name without slashes"), func(s *schema) { orNull(s) }),
		"Name.method":           both(pattern("^[^/]*$", "must be a name without slashes"), func(s *schema) { orNull(s) }),

		"RetryPolicy":                          both(fixedIsOne, func(s *schema) { when(s, "commitOn", "HEADERS", "perAttemptTimeout", never()) }),
		"RetryPolicy.max_attempts":             least(2),
		"RetryPolicy.backoff_multiplier":       positive,
		"RetryPolicy.retryable_status_codes[]": notEmpty,
		"RetryPolicy.budget":                   notEmpty,

		"CodeOverride.codes[]": notEmpty,

		"CodePolicy":                    fixedIsOne,
		"CodePolicy.codes[]":            notEmpty,
		"CodePolicy.max_attempts":       least(1),
		"CodePolicy.backoff_multiplier": positive,
		"CodePolicy.cost_factor":        between(0.01, 100),

		"HedgingPolicy.max_attempts":  least(2),
		"HedgingPolicy.hedging_delay": zeroToo,
		"HedgingPolicy.budget":        notEmpty,
		"HedgingQuantile.quantile":    both(positive, func(s *schema) { s.ExclusiveMaximum = new(1.0) }),

		"RetryThrottling.max_tokens":  between(1, 1000),
		"RetryThrottling.token_ratio": least(0.001),

		"Budget":      oneKind,
		"Budget.name": both(notEmpty, not("^"+folded("NONE")+"$", "must be a name, and not NONE, which means no budget")),

		"RatioBudget.percent":        between(0.0001, 1000),
		"RatioBudget.min_per_second": between(0, 1e6),
		"RatioBudget.window":         pattern(`^0*(([1-9]|[1-5][0-9])(\.[0-9]{1,9})?|60(\.0{1,9})?)s$`, "must be 1s to 60s"),
		"RatioBudget.timeout_cost":   between(1, 1000),
		"RatioBudget.timeout_bonus":  between(0, 1000),

		"ConcurrentBudget.percent": between(0.0001, 1000),
		"ConcurrentBudget.min":     between(0, 1e6),

		"RefundBudget.capacity":     between(1, 1e6),
		"RefundBudget.retry_cost":   between(0.001, 1e6),
		"RefundBudget.timeout_cost": between(0.001, 1e6),
		"RefundBudget.success":      between(0, 1e6),
	} {
		rules["stagger.policy.v1."+name] = r
	}
	return rules
}

func both(one, other rule) rule { return func(s *schema) { one(s); other(s) } }

func least(low float64) rule { return func(s *schema) { s.Minimum = &low } }

func between(low, high float64) rule {
	return func(s *schema) { s.Minimum, s.Maximum = &low, &high }
}

func positive(s *schema) { s.ExclusiveMinimum = new(0.0) }

// notEmpty is for texts and lists.
func notEmpty(s *schema) {
	if s.Type == aText {
		s.MinLength = new(1)
	} else {
		s.MinItems = new(1)
	}
}

// pattern says in words, for editors, what it demands.
func pattern(expression, words string) rule {
	return func(s *schema) {
		s.Pattern = expression
		say(s, "patternErrorMessage", words)
	}
}

// not says in words what it demands instead; some editors show them for values of a wrong type too.
func not(expression, words string) rule {
	return func(s *schema) {
		s.Not = &schema{Pattern: expression}
		say(s, "errorMessage", words)
	}
}

// say adds a key that is for editors.
func say(s *schema, key, words string) {
	if s.Extra == nil {
		s.Extra = map[string]any{}
	}
	s.Extra[key] = words
}
