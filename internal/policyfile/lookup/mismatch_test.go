// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package lookup_test

import (
	"strings"
	"testing"

	"github.com/stagger-go/stagger/internal/policyfile/lookup"
)

func TestMismatch(t *testing.T) {
	t.Parallel()
	const (
		list    = `, and there are no lists of names in one; give each a map of its own: name: [{service: …, method: …}, {service: …, method: …}]`
		pattern = "there are no patterns; a service without a method stands for all its methods, and {} for everything"
		address = "it looks like an address, host:port; write the full name of the service, such as acme.orders.v1.OrderService"
	)
	for path, want := range map[string]string{
		"/ a.B/C":            "service: it begins with a blank; remove it",
		"/a.B  /C":           `service: it has a blank after "a.B"; remove it`,
		"/a.B /C":            "service: it ends with a blank; remove it",
		"/a.B/C\n":           "method: it ends with a line break; remove it",
		"/a.B/C\u00a0":       "method: it ends with a blank (U+00A0); remove it",
		"/a.B/rpc Get":       `method: it has a blank after "rpc", and a name is one word`,
		"/a.B\tC/":           `service: it has a tab after "a.B", and a name is one word`,
		"/a.B/Get,List":      `method: it has ',' after "Get"` + list,
		"/a.B/Get|List":      `method: it has '|' after "Get"` + list,
		"/a.B, a.C/":         `service: it has ',' after "a.B"` + list,
		"/a.B./C":            "service: it ends with a full stop; remove it",
		"/.a.B/C":            "service: it begins with a full stop; remove it",
		"/a..B/C":            "service: it has two full stops in a row; remove one",
		"/a.B/Get.":          "method: it ends with a full stop; remove it",
		"/“a.B”/C":           "service: it begins with the quotation mark “ (U+201C); remove it",
		"/a.B”/C":            "service: it ends with the quotation mark ” (U+201D); remove it",
		"/a.B/'Get'":         "method: it begins with the quotation mark ' (U+0027); remove it",
		"/a.B/„Get":          "method: it begins with the quotation mark „ (U+201E); remove it",
		"/orders:8080/":      "service: " + address,
		"/localhost:8080/C":  "service: " + address,
		"/a.B/Get\x00":       "method: it ends with the invisible character U+0000; remove it",
		"/a.B/Get\u200bA":    `method: it has the invisible character U+200B after "Get"; remove it`,
		"/a.B/Get\xff":       "method: it ends with the invisible character U+FFFD; remove it",
		"/\ufeffa.B/C":       "service: it begins with the invisible character U+FEFF; remove it",
		"/a.*/":              "service: " + pattern,
		"/a.B/Get?":          "method: " + pattern,
		"/а.B/C":             "service: it begins with а (U+0430), and names have only ASCII letters and digits",
		"/a.B/Schlüssel":     `method: it has ü (U+00FC) after "Schl", and names have only ASCII letters and digits`,
		"/a.B/Get()":         `method: it has '(' after "Get", which no name has`,
		"/${SERVICE}/":       `service: it has '{' after "$", which no name has`,
		"/<service>/":        "service: it begins with '<', which no name has",
		"/acme.orders.v1/":   "service: it is the name of a package; write the full name of a service, such as acme.orders.v1.OrderService",
		"/v1beta2/C":         "service: it is the name of a package; write the full name of a service, such as v1beta2.OrderService",
		"/a.B/a.B.Get":       "method: it repeats the name of the service; write Get",
		"/a.B/B.Get":         "method: it repeats the name of the service; write Get",
		"/":                  "",
		"/a.B/":              "",
		"/B/":                "",
		"/a.b-c.D-e/get-one": "",
		"/a_b.C1/x.y":        "",
		"/v1.Orders/Get":     "",
		"/a.B/Get$x+y@z!~":   "",
		"/a.B/v1":            "",
		"/a.v1x/":            "",
		"/a.B/B":             "",
	} {
		part, why := lookup.Mismatch(path)
		if got := strings.TrimPrefix(part+": "+why, ": "); got != want {
			t.Errorf("%q: %s; want %s", path, got, want)
		}
	}
}
