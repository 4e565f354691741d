// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/stagger-go/stagger/internal/balance"
	"github.com/stagger-go/stagger/internal/tried"
)

// stringOrNull takes a text, or what gRPC takes for none.
func stringOrNull(s *schema) *schema {
	s.Type, s.Types = "", []string{typeString, "null"}
	return s
}

// zeroOrMore takes a duration of nothing.
func zeroOrMore(s *schema) {
	s.Pattern, s.AllOf = `^(0*[0-9]{1,10}(\.[0-9]{1,9})?|-0+(\.0{1,9})?)s$`, nil
}

// when says what another key must be beside a key with a value, written in any case.
func when(s *schema, key, value, other string, then *schema) {
	is := &schema{Type: typeString, Pattern: "^" + foldCase(value) + "$"}
	s.AllOf = append(s.AllOf, &schema{
		If:   &schema{Required: []string{key}, Properties: map[string]*schema{key: is}},
		Then: &schema{Properties: map[string]*schema{other: then}},
	})
}

// processedNeedsInfo wants more than a code for what has not been processed.
func processedNeedsInfo(s *schema) {
	when(s, "processed", "NO", "errorInfo", &schema{Required: []string{"domain", "reason"}})
	s.AllOf[len(s.AllOf)-1].Then.Required = []string{"errorInfo"}
}

func fixedIsOne(s *schema) {
	when(s, "growth", "FIXED", "backoffMultiplier", &schema{Const: new(any(1))})
}

// timeouts allows one name for the timeout of an attempt, and none beside commitOn HEADERS.
func timeouts(s *schema) {
	const ours, grpcs = "perAttemptTimeout", "perAttemptRecvTimeout"
	for _, key := range []string{ours, grpcs} {
		when(s, "commitOn", "HEADERS", key, never())
	}
	s.AllOf = append(s.AllOf, &schema{
		If:   &schema{Required: []string{ours}},
		Then: &schema{Properties: map[string]*schema{grpcs: never()}},
	})
}

// fleetIsReserve allows no minPerSecond beside a fleet.
func fleetIsReserve(s *schema) {
	s.AllOf = append(s.AllOf, &schema{
		If:   &schema{Required: []string{"fleet"}, Properties: map[string]*schema{"fleet": {Type: "object"}}},
		Then: &schema{Properties: map[string]*schema{"minPerSecond": {Const: new(any(0))}}},
	})
}

func methodNeedsService(s *schema) {
	given := func(key string) *schema {
		is := &schema{Type: typeString, MinLength: new(1)}
		return &schema{Required: []string{key}, Properties: map[string]*schema{key: is}}
	}
	s.If, s.Then = given("method"), given("service")
}

// oneKind wants a budget to be of a kind. That it has no two is said of every oneof.
func oneKind(s *schema) {
	for _, key := range balance.Names() {
		s.AnyOf = append(s.AnyOf, &schema{Required: []string{key}})
	}
}

// oneStrategy wants a named policy to retry or to hedge.
func oneStrategy(s *schema) {
	for _, key := range []string{"retryPolicy", "hedgingPolicy"} {
		s.AnyOf = append(s.AnyOf, &schema{Required: []string{key}})
	}
}

// ownOrNamed lets an entry refer to a named policy, or have one of its own.
func ownOrNamed(s *schema) {
	s.AllOf = append(s.AllOf, &schema{
		If:   &schema{Required: []string{"policy"}},
		Then: &schema{Properties: map[string]*schema{"retryPolicy": never(), "hedgingPolicy": never()}},
	})
}

// onePolicyEach is a list of load balancing policies, each with its settings. Those of package balancer's are known: the
// policy that picks, inside of it.
func onePolicyEach(s *schema) {
	entry := func() *schema {
		return &schema{Type: typeObject, MinProperties: new(1), MaxProperties: new(1), AdditionalProperties: &schema{Type: typeObject}}
	}
	s.Items = entry()
	s.Items.Properties = map[string]*schema{tried.Balancer: {
		Type: typeObject, Required: []string{"childPolicy"},
		Properties: map[string]*schema{"childPolicy": {Type: typeArray, MinItems: new(1), Items: entry()}},
	}}
}
