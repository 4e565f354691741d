// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"
	"strings"
	"unicode"
)

// effects are verbs that say that a second run has a second effect: another thing, another entry, another message, money that
// moves again, a part of a supply that is taken again, a switch that goes back.
var effects = set(`
	add append backup clone collect copy create duplicate fork import ingest inject insert log mutate new record recreate report save
	snapshot track upload write

	announce broadcast deliver dispatch email emit enqueue invite notify post produce publish push send

	award bill book buy capture charge checkout credit debit deposit donate exchange grant invoice issue mint order pay payout place
	purchase redeem refund reserve sell settle spend tip topup transfer withdraw

	acquire allocate consume decr decrease decrement deduct dequeue draw incr increase increment lease pop pull receive take

	advance call exec execute extend failover fulfill instantiate invoke launch make perform process reboot rerun resend restart retry
	reverse rotate run schedule split submit switch switchover toggle train trigger
`)

// manners may stand before a verb.
var manners = set("async atomic batch bidi bulk direct do force multi stream streaming try")

// The verbs of running have no effect with an object of reading: RunReport, ExecuteQuery.
var (
	running = set("execute perform process run")
	reading = set("aggregation check queries query report reports search validation")
)

func set(list string) map[string]bool {
	all := map[string]bool{}
	for word := range strings.FieldsSeq(list) {
		all[word] = true
	}
	return all
}

// hasEffect reports whether the name of a method says that a second run has a second effect: it begins with such a verb, or has one
// after another verb, as CheckAndMutateRow.
func hasEffect(method string) bool {
	name := wordsOf(method)
	for len(name) > 1 && manners[name[0]] {
		name = name[1:]
	}
	for i, word := range name {
		if begins := i == 0 || name[i-1] == "and" || name[i-1] == "or"; begins && effects[word] {
			reads := running[word] && slices.ContainsFunc(name[i+1:], func(object string) bool { return reading[object] })
			return !reads
		}
	}
	return false
}

// wordsOf returns the words of a name in lower case: of CreateOrder, createOrder, create_order, and HTTPGet.
func wordsOf(name string) []string {
	var list []string
	letters := []rune(name)
	begin := 0
	end := func(i int) {
		if word := strings.ToLower(strings.Trim(string(letters[begin:i]), "_")); word != "" {
			list = append(list, word)
		}
		begin = i
	}
	for i := 1; i < len(letters); i++ {
		upper := unicode.IsUpper(letters[i])
		ofWord := !unicode.IsUpper(letters[i-1]) || i+1 < len(letters) && unicode.IsLower(letters[i+1])
		if letters[i] == '_' || upper && ofWord {
			end(i)
		}
	}
	end(len(letters))
	return list
}
