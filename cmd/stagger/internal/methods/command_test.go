// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package methods_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stagger-go/stagger/cmd/stagger/internal/methods"
	"github.com/stagger-go/stagger/policy"
)

const (
	parcels = "../../../../policy/testdata/descriptors/parcels.binpb"
	orders  = "../../../../examples/orders/orders.binpb"
	retry   = "retryPolicy: {maxAttempts: 3, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE]}"
)

// run is the command's output and error, for a file with the given text.
func run(t *testing.T, text string, args ...string) (string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "retry.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	c := methods.Command()
	c.SetArgs(append(args, file))
	c.SetOut(&out)
	c.SetErr(&out)
	c.SilenceUsage, c.SilenceErrors = true, true
	err := c.Execute()
	return strings.ReplaceAll(out.String(), file, "retry.yaml"), err
}

type verdict struct {
	Method   string `json:"method"`
	Deed     string `json:"deed"`
	Because  string `json:"because"`
	Budget   string `json:"budget"`
	Entry    string `json:"entry"`
	Attempts int    `json:"attempts"`
	Safe     bool   `json:"safe"`
}

type stray struct {
	File    string `json:"file"`
	Field   string `json:"field"`
	Name    string `json:"name"`
	Message string `json:"message"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
}

// answer is the command's answer in JSON.
func answer(t *testing.T, text string, args ...string) (list []verdict, strays []stray) {
	t.Helper()
	out, err := run(t, text, append(args, "--format", "json")...)
	if err != nil {
		t.Fatal(err)
	}
	var whole struct {
		Methods []verdict `json:"methods"`
		Strays  []stray   `json:"strays"`
	}
	if err := json.Unmarshal([]byte(out), &whole); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return whole.Methods, whole.Strays
}

// TestEachMethodHasItsReason has every way to be retried or not.
func TestEachMethodHasItsReason(t *testing.T) {
	t.Parallel()
	const service = "/acme.orders.v1.OrderService/"
	for _, one := range []struct {
		file, method string
		want         verdict
	}{
		{"{}", "GetOrder", verdict{Deed: "neither", Attempts: 1, Because: "no entry names it, its service or everything", Entry: "none"}},
		{
			"methodConfig: [{name: [{service: acme.orders.v1.OrderService}], timeout: 1s}]", "CancelOrder",
			verdict{Deed: "neither", Attempts: 1, Safe: true, Because: "the entry has no retryPolicy or hedgingPolicy", Entry: service},
		},
		{
			"methodConfig: [{name: [{service: acme.orders.v1.OrderService, method: GetOrder}], " + retry + "}]", "GetOrder",
			verdict{Deed: "retried", Attempts: 3, Safe: true, Because: "the entry names the method", Budget: "default", Entry: service + "GetOrder"},
		},
		{
			"methodConfig: [{name: [{service: acme.orders.v1.OrderService}], " + retry + "}]", "GetOrder",
			verdict{Deed: "only if never sent", Attempts: 3, Because: "nothing declares it safe to repeat", Budget: "default", Entry: service},
		},
		{
			"methodConfig: [{name: [{service: acme.orders.v1.OrderService}], " + retry + "}]", "CancelOrder",
			verdict{Deed: "retried", Attempts: 3, Safe: true, Because: "idempotency_level is IDEMPOTENT", Budget: "default", Entry: service},
		},
		{
			"methodConfig: [{name: [{}], idempotency: ASSUME, " + retry + "}]\nretryThrottling: {maxTokens: 10, tokenRatio: 0.1}", "CreateOrder",
			verdict{Deed: "retried", Attempts: 3, Safe: true, Because: "idempotency is ASSUME", Budget: "retryThrottling", Entry: "{}"},
		},
		{
			"methodConfig: [{name: [{}], idempotency: NONE, " + retry + "}]", "CancelOrder",
			verdict{Deed: "only if never sent", Attempts: 3, Because: "idempotency is NONE", Budget: "default", Entry: "{}"},
		},
		{
			"methodConfig: [{name: [{}], idempotencyKey: {header: x-key}, " + retry + "}]", "CreateOrder",
			verdict{Deed: "retried", Attempts: 3, Safe: true, Because: "sends an idempotency key, x-key", Budget: "default", Entry: "{}"},
		},
		{
			"methodConfig: [{name: [{service: acme.orders.v1.OrderService, method: GetOrder}], hedgingPolicy: {maxAttempts: 9, hedgingDelay: 1s, budget: NONE}}]",
			"GetOrder",
			verdict{Deed: "hedged", Attempts: 5, Safe: true, Because: "the entry names the method", Budget: "none", Entry: service + "GetOrder"},
		},
	} {
		one.want.Method = service + one.method
		list, _ := answer(t, one.file, "--descriptors", orders)
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

func TestPoliciesThatComeWithTheAPIAreTold(t *testing.T) {
	t.Parallel()
	list, strays := answer(t, "{}", "--descriptors", parcels)
	var got []string
	for _, v := range list {
		got = append(got, strings.TrimPrefix(v.Method, "/acme.parcels.v1.ParcelService/")+": "+v.Deed+", "+v.Entry+", "+v.Because)
	}
	want := []string{
		"GetParcel: retried, the method's option in its .proto, the .proto gives the method a policy",
		"ListParcels: retried, the service's option in its .proto, idempotency_level is NO_SIDE_EFFECTS",
		"SendParcel: only if never sent, the service's option in its .proto, nothing declares it safe to repeat",
		"BurnParcel: only if never sent, the method's option in its .proto, nothing declares it safe to repeat",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") || len(strays) > 0 {
		t.Errorf("%s\nwant\n%s\n%v", strings.Join(got, "\n"), strings.Join(want, "\n"), strays)
	}
}

const slips = `methodConfig:
  - name:
      - {service: acme.orders.v1.OrderService, method: GetOrdr}
      - {service: acme.orders.v1.OrderService, method: GetOrder}
      - &other {service: acme.orders.v1.OrderServise}
  - name: [{service: some.other.Api, method: Get}, {}]
`

func TestASlipInANameIsFound(t *testing.T) {
	t.Parallel()
	_, strays := answer(t, slips, "--descriptors", orders)
	const file = "retry.yaml"
	want := []stray{
		{file, "methodConfig[0].name[0]", "/acme.orders.v1.OrderService/GetOrdr", "the service has no such method; did you mean GetOrder?", 3, 9},
		{file, "methodConfig[0].name[2]", "/acme.orders.v1.OrderServise/", "the API has no such service; did you mean acme.orders.v1.OrderService?", 5, 9},
		{file, "methodConfig[1].name[0]", "/some.other.Api/Get", "the API has no such service", 6, 12},
	}
	if len(strays) != len(want) {
		t.Fatalf("%+v", strays)
	}
	for i := range want {
		if strays[i] != want[i] {
			t.Errorf("%+v; want\n%+v", strays[i], want[i])
		}
	}
	out, err := run(t, slips, "--descriptors", orders)
	if err != nil || !strings.HasSuffix(out, "the API has no such service\n") ||
		!strings.Contains(out, "\nwarning: retry.yaml:3:9: methodConfig[0].name[0]: /acme.orders.v1.OrderService/GetOrdr: the service has no") {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := run(t, slips, "--descriptors", orders, "--strict"); err == nil || !strings.HasPrefix(err.Error(), "3 of") {
		t.Errorf("--strict: %v", err)
	}
	const right = "methodConfig: [{name: [{service: acme.orders.v1.OrderService, method: GetOrder}]}]"
	if _, err := run(t, right, "--descriptors", orders, "--strict"); err != nil {
		t.Errorf("--strict refuses what is right: %v", err)
	}
}

func TestJSONFilesHavePlacesToo(t *testing.T) {
	t.Parallel()
	_, strays := answer(t, "{\n\t\"methodConfig\": [{\"name\": [{\"service\": \"x.Y\"}]}]}", "--descriptors", orders)
	if len(strays) != 1 || strays[0].Line != 2 || strays[0].Column != 29 {
		t.Errorf("%+v", strays)
	}
}

func TestWithoutDescriptorsTheNamesOfTheFileAreShown(t *testing.T) {
	t.Parallel()
	const file = "methodConfig:\n" +
		"- {name: [{}], " + retry + "}\n" +
		"- {name: [{service: a.B}, {service: a.C, method: X}], " + retry + "}\n" +
		"- {name: [{service: a.B, method: Y}], idempotency: NONE, " + retry + "}\n"
	list, _ := answer(t, file)
	var got []string
	for _, v := range list {
		got = append(got, v.Method+" "+v.Deed+": "+v.Because)
	}
	want := []string{
		"/a.B/Y only if never sent: idempotency is NONE",
		"/a.B/(others) only if never sent: unless its idempotency_level says that it is safe",
		"/a.C/X retried: the entry names the method",
		"/(others)/(others) only if never sent: unless its idempotency_level says that it is safe",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if out, err := run(t, "{}"); err != nil || out != "no methods\n" {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestABadFileOrImageIsRefused(t *testing.T) {
	t.Parallel()
	if _, err := run(t, "retries: 3"); !errors.As(err, new(*policy.Error)) {
		t.Errorf("%v; want a *policy.Error", err)
	}
	if _, err := run(t, "{}", "--descriptors", "command.go"); !errors.As(err, new(*policy.Error)) {
		t.Errorf("%v; want a *policy.Error", err)
	}
}
