// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"strings"
	"testing"

	"github.com/stagger-go/stagger/policy"
)

// TestOptionsCountLikeEntriesOfTheSameName has the rule BY_NAME and what overrides it.
func TestOptionsCountLikeEntriesOfTheSameName(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ file, want string }{
		{"{}", "GetParcel ListParcels"},
		{"idempotency: ASSUME", "GetParcel ListParcels SendParcel BurnParcel"},
		{"idempotency: DECLARED", "ListParcels"},
		{"idempotency: NONE", ""},
	} {
		t.Run(row.file, func(t *testing.T) {
			t.Parallel()
			set := mustDescribe(t, mustParse(t, "f", row.file), mustLoadDescriptors(t, parcels))
			var safe []string
			for _, name := range []string{"GetParcel", "ListParcels", "SendParcel", "BurnParcel"} {
				method := "/acme.parcels.v1.ParcelService/" + name
				if set.Safe(set.Lookup(method), method) {
					safe = append(safe, name)
				}
			}
			if got := strings.Join(safe, " "); got != row.want {
				t.Errorf("safe are %q; want %q", got, row.want)
			}
		})
	}
}

func TestAPolicyOnItsOwnAsksTheDescriptorsOfTheSet(t *testing.T) {
	t.Parallel()
	p, err := policy.New(policy.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	bare := mustParse(t, "f", "{}")
	set := mustDescribe(t, bare, mustLoadDescriptors(t, parcels))
	const list = "/acme.parcels.v1.ParcelService/ListParcels"
	if !set.Safe(p, list) || set.Safe(p, "/acme.parcels.v1.ParcelService/SendParcel") || !set.Safe(p, "/shop.Safe/Get") {
		t.Error("Safe does not say what the descriptors do, given ones or linked in")
	}
	if bare.Safe(p, list) || p.Safe(list) {
		t.Error("a set without the descriptors knows them")
	}
}

func TestWarningsNameTheMethodsOfGivenDescriptors(t *testing.T) {
	t.Parallel()
	set := mustParse(t, "f", `
budgets: [{name: used, ratio: {}}]
methodConfig:
- name: [{service: acme.parcels.v1.ParcelService}]
  retryPolicy: {maxAttempts: 3, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [14], budget: used}
`)
	wantWarnings(t, set, []string{`f:4:10: methodConfig[0].name[0]: "/acme.parcels.v1.ParcelService/": a method` + unsafe})
	wantWarnings(t, mustDescribe(t, set, mustLoadDescriptors(t, parcels)), []string{
		`f:4:10: methodConfig[0].name[0]: "/acme.parcels.v1.ParcelService/": ` +
			"/acme.parcels.v1.ParcelService/BurnParcel, /acme.parcels.v1.ParcelService/GetParcel, /acme.parcels.v1.ParcelService/SendParcel" + unsafe,
	})
}
