// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stagger-go/stagger/internal/testkit"
)

func TestEffect_Names(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"CreateOrder":       true,
		"createOrder":       true,
		"create_order":      true,
		"create":            true,
		"PLACE_ORDER":       true,
		"BatchCreateOrders": true,
		"BulkInsert":        true,
		"SubmitOrder":       true,
		"AppendRows":        true,
		"Publish":           true,
		"refund":            true,
		"RefundPayment":     true,
		"withdrawFunds":     true,
		"PlaceOrder":        true,
		"CapturePayment":    true,
		"GetOrCreateUser":   true,
		"CheckAndMutateRow": true,
		"RunJob":            true,
		"TopUp":             false, // two words for one verb
		"SubmitReport":      true,
		"RunReport":         false,
		"ExecuteQuery":      false,
		"BatchGetOrders":    false,
		"BatchDelete":       false,
		"GetOrder":          false,
		"Address":           false,
		"AddressOf":         false,
		"Payload":           false,
		"PostalCode":        false,
		"Sender":            false,
		"Batch":             false,
		"ListCreated":       false,
		"":                  false,
	} {
		if got := hasEffect(name); got != want {
			t.Errorf("hasEffect(%q) = %t", name, got)
		}
	}
}

// The verbs find nearly all names that a person finds, and few others. Names are a hint, and no proof: lint only warns.
func TestEffect_Googleapis(t *testing.T) {
	t.Parallel()
	var marked, others, missed, alarms []string
	for line := range strings.Lines(string(testkit.Must(os.ReadFile("testdata/methods.txt"))(t))) {
		mark, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch mark {
		case "+":
			marked = append(marked, name)
		case "-":
			others = append(others, name)
		}
	}
	missed = slices.DeleteFunc(slices.Clone(marked), hasEffect)
	alarms = slices.DeleteFunc(slices.Clone(others), func(name string) bool { return !hasEffect(name) })
	t.Logf("%d of %d found; missed: %s", len(marked)-len(missed), len(marked), missed)
	t.Logf("%d of %d others warned of: %s", len(alarms), len(others), alarms)
	if 100*len(missed) > 5*len(marked) || 100*len(alarms) > 5*len(others) {
		t.Error("want 5% at most of each")
	}
}
