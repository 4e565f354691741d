// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"encoding/json"
	"strings"
	"testing"
)

const retry = "retryPolicy: {maxAttempts: 3, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE]}"

// shownMethod is a method in the JSON output.
type shownMethod struct {
	Method   string `json:"method"`
	Strategy string `json:"strategy"`
	Because  string `json:"because"`
	Budget   string `json:"budget"`
	Entry    string `json:"entry"`
	Attempts int    `json:"attempts"`
	Safe     bool   `json:"safe"`
}

// shownName is a name without a method in the JSON output.
type shownName struct {
	File    string `json:"file"`
	Field   string `json:"field"`
	Name    string `json:"name"`
	Message string `json:"message"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
}

// runAll returns the output of --all in JSON.
func runAll(t *testing.T, text string, args ...string) (list []shownMethod, unmatched []shownName) {
	t.Helper()
	out, err := run(t, text, append(args, "-", "--all", "--format", "json")...)
	if err != nil {
		t.Fatal(err)
	}
	var whole struct {
		Methods   []shownMethod `json:"methods"`
		Unmatched []shownName   `json:"unmatched"`
	}
	if err := json.Unmarshal([]byte(out), &whole); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return whole.Methods, whole.Unmatched
}

// TestAll has every way in which a method is retried or not.
func TestAll(t *testing.T) {
	t.Parallel()
	const service = "/acme.orders.v1.OrderService/"
	for _, one := range []struct {
		file, method string
		want         shownMethod
	}{
		{"{}", "GetOrder", shownMethod{Strategy: "neither", Attempts: 1, Because: "no entry names it, its service or everything", Entry: "none"}},
		{
			"methodConfig: [{name: [{service: acme.orders.v1.OrderService}], timeout: 1s}]", "CancelOrder",
			shownMethod{Strategy: "neither", Attempts: 1, Safe: true, Because: "the entry has no retryPolicy or hedgingPolicy", Entry: service},
		},
		{
			"methodConfig: [{name: [{service: acme.orders.v1.OrderService, method: GetOrder}], " + retry + "}]", "GetOrder",
			shownMethod{Strategy: "retried", Attempts: 3, Safe: true, Because: "the entry names the method", Budget: "default", Entry: service + "GetOrder"},
		},
		{
			"methodConfig: [{name: [{service: acme.orders.v1.OrderService}], " + retry + "}]", "GetOrder",
			shownMethod{Strategy: "only if never sent", Attempts: 3, Because: "nothing declares it idempotent", Budget: "default", Entry: service},
		},
		{
			"methodConfig: [{name: [{service: acme.orders.v1.OrderService}], " + retry + "}]", "CancelOrder",
			shownMethod{Strategy: "retried", Attempts: 3, Safe: true, Because: "idempotency_level is IDEMPOTENT", Budget: "default", Entry: service},
		},
		{
			"methodConfig: [{name: [{}], idempotency: ASSUME, " + retry + "}]\nretryThrottling: {maxTokens: 10, tokenRatio: 0.1}", "CreateOrder",
			shownMethod{Strategy: "retried", Attempts: 3, Safe: true, Because: "idempotency is ASSUME", Budget: "retryThrottling", Entry: "{}"},
		},
		{
			"methodConfig: [{name: [{}], idempotency: NONE, " + retry + "}]", "CancelOrder",
			shownMethod{Strategy: "only if never sent", Attempts: 3, Because: "idempotency is NONE", Budget: "default", Entry: "{}"},
		},
		{
			"methodConfig: [{name: [{}], idempotencyKey: {header: x-key}, " + retry + "}]", "CreateOrder",
			shownMethod{Strategy: "retried", Attempts: 3, Safe: true, Because: "sends an idempotency key, x-key", Budget: "default", Entry: "{}"},
		},
		{
			"methodConfig: [{name: [{service: acme.orders.v1.OrderService, method: GetOrder}], hedgingPolicy: {maxAttempts: 9, hedgingDelay: 1s, budget: NONE}}]",
			"GetOrder",
			shownMethod{Strategy: "hedged", Attempts: 5, Safe: true, Because: "the entry names the method", Budget: "none", Entry: service + "GetOrder"},
		},
	} {
		one.want.Method = service + one.method
		list, _ := runAll(t, one.file, "--descriptors", image)
		found := false
		for _, got := range list {
			if got.Method == one.want.Method {
				found = true
				if got != one.want {
					t.Errorf("%s\n%+v; want\n%+v", one.file, got, one.want)
				}
			}
		}
		if !found || len(list) != 4 {
			t.Errorf("%s: %d methods", one.file, len(list))
		}
	}
}

const misspelt = `methodConfig:
  - name:
      - {service: acme.orders.v1.OrderService, method: GetOrdr}
      - {service: acme.orders.v1.OrderService, method: GetOrder}
      - &other {service: acme.orders.v1.OrderServise}
  - name: [{service: some.other.Api, method: Get}, {}, {service: "orders:80"}]
`

func TestAllNamesThatMatchNothing(t *testing.T) {
	t.Parallel()
	_, unmatched := runAll(t, misspelt, "--descriptors", image)
	const (
		file    = "<stdin>"
		address = "it looks like an address, host:port; write the full name of the service, such as acme.orders.v1.OrderService"
	)
	want := []shownName{
		{file, "methodConfig[0].name[0]", "/acme.orders.v1.OrderService/GetOrdr", "the service has no such method; did you mean GetOrder?", 3, 9},
		{file, "methodConfig[0].name[2]", "/acme.orders.v1.OrderServise/", "the API has no such service; did you mean acme.orders.v1.OrderService?", 5, 9},
		{file, "methodConfig[1].name[0]", "/some.other.Api/Get", "the API has no such service", 6, 12},
		{file, "methodConfig[1].name[2]", "/orders:80/", address, 6, 56},
	}
	if len(unmatched) != len(want) {
		t.Fatalf("%+v", unmatched)
	}
	for i := range want {
		if unmatched[i] != want[i] {
			t.Errorf("%+v; want\n%+v", unmatched[i], want[i])
		}
	}
	last := "the API has no such service\nwarning: <stdin>:6:56: methodConfig[1].name[2]: /orders:80/: " + address + "\n"
	out, err := run(t, misspelt, "-", "--all", "--descriptors", image)
	if err != nil || !strings.HasSuffix(out, last) ||
		!strings.Contains(out, "\nwarning: <stdin>:3:9: methodConfig[0].name[0]: /acme.orders.v1.OrderService/GetOrdr: the service has no") {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := run(t, misspelt, "-", "--all", "--descriptors", image, "--strict"); err == nil || !strings.HasPrefix(err.Error(), "4 of") {
		t.Errorf("--strict: %v", err)
	}
	const right = "methodConfig: [{name: [{service: acme.orders.v1.OrderService, method: GetOrder}]}]"
	if _, err := run(t, right, "-", "--all", "--descriptors", image, "--strict"); err != nil {
		t.Errorf("--strict refuses what is right: %v", err)
	}
}

func TestAllWithoutDescriptors(t *testing.T) {
	t.Parallel()
	const file = "methodConfig:\n" +
		"- {name: [{}], " + retry + "}\n" +
		"- {name: [{service: a.B}, {service: a.C, method: X}], " + retry + "}\n" +
		"- {name: [{service: a.B, method: Y}], idempotency: NONE, " + retry + "}\n"
	list, _ := runAll(t, file)
	var got []string
	for _, v := range list {
		got = append(got, v.Method+" "+v.Strategy+": "+v.Because)
	}
	want := []string{
		"/a.B/Y only if never sent: idempotency is NONE",
		"/a.B/(others) only if never sent: unless its idempotency_level declares it idempotent",
		"/a.C/X retried: the entry names the method",
		"/(others)/(others) only if never sent: unless its idempotency_level declares it idempotent",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if out, err := run(t, "{}", "-", "--all"); err != nil || out != "no methods\n" {
		t.Errorf("%v\n%s", err, out)
	}
}
