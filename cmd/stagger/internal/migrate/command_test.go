// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/stagger-go/stagger/cmd/stagger/internal/migrate"
	"github.com/stagger-go/stagger/internal/lint"
	"github.com/stagger-go/stagger/internal/methods"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
)

func run(t *testing.T, in string, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	c := migrate.Command()
	c.SetIn(strings.NewReader(in))
	c.SetArgs(args)
	c.SetOut(&out)
	c.SetErr(&out)
	c.SilenceUsage, c.SilenceErrors = true, true
	err := c.Execute()
	return out.String(), err
}

// TestMigrate_SamePolicies compares the policies before and after, for every valid file of the repository.
func TestMigrate_SamePolicies(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../../../policy/testdata/good/*")
	if err != nil || len(files) < 3 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for _, file := range append(files, "../../../../examples/orders/service-config.json", "../../../../examples/orders/retry.yaml") {
		before := testkit.Must(os.ReadFile(file))(t)
		after, err := run(t, "", file)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if got, want := plain(t, []byte(after)), plain(t, before); got != want {
			t.Errorf("%s becomes\n%s\nwhich means\n%s\nwant\n%s", file, after, got, want)
		}
	}
}

// plain returns all settings of a file, as text.
func plain(t *testing.T, data []byte) string {
	t.Helper()
	set, err := policy.Parse("file", data)
	if err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	config, notes := lint.Export(methods.Describe(set), true)
	var text strings.Builder
	text.Write(config)
	for _, n := range notes {
		text.WriteString(n.Field + ": " + n.Message + "\n")
	}
	return text.String()
}

func TestMigrate_Comments(t *testing.T) {
	t.Parallel()
	const retry = `"retryPolicy": {"maxAttempts": 7, "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}`
	const hedge = `"hedgingPolicy": {"maxAttempts": 3, "hedgingDelay": "0.1s"}`
	entry := func(name, rest string) string { return `{"methodConfig": [{"name": [` + name + `], ` + rest + `}]}` }
	const orders, get = `{"service": "acme.orders.v1.OrderService"}`, `{"service": "acme.orders.v1.OrderService", "method": "GetOrder"}`
	const named, all, undeclared = "declares them idempotent", "gRPC retries every method", "Not declared idempotent in acme.orders.v1.OrderService: "
	for name, tc := range map[string]struct {
		file      string
		want, not []string
	}{
		"named":     {entry(get, retry), []string{named, "At most 5", "PROPORTIONAL", "No retryThrottling"}, []string{all}},
		"service":   {entry(orders, retry), []string{all, undeclared + "GetOrder, ListOrders, CreateOrder."}, []string{named}},
		"default":   {entry(`{}`, retry), []string{all, undeclared}, []string{named}},
		"both":      {entry(get+", "+`{"service": "acme.other.Service"}`, retry), []string{all}, []string{named, undeclared}},
		"hedging":   {entry(get, hedge), []string{named, "does not hedge"}, []string{"PROPORTIONAL", "At most 5"}},
		"nothing":   {entry(get, `"timeout": "1s"`), nil, []string{named, all, "No retryThrottling"}},
		"throttled": {`{"retryThrottling": {"maxTokens": 10, "tokenRatio": 0.1}}`, []string{"by gRPC's rules"}, []string{"No retryThrottling"}},
		"balanced":  {`{"loadBalancingConfig": [{"round_robin": {}}]}`, []string{"Retrier.DialOptions gives this to connections"}, []string{"No retryThrottling"}},
		"empty":     {`{}`, nil, []string{"No retryThrottling"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := testkit.Must(run(t, tc.file, "-", "--descriptors", "../../../../examples/orders/orders.binpb"))(t)
			text := strings.Join(strings.Fields(strings.ReplaceAll(out, "#", "")), " ")
			for _, want := range tc.want {
				if !strings.Contains(text, want) {
					t.Errorf("lacks %q:\n%s", want, out)
				}
			}
			for _, not := range tc.not {
				if strings.Contains(text, not) {
					t.Errorf("has %q:\n%s", not, out)
				}
			}
		})
	}
}

// JSON and YAML have different escapes: a name outside of Unicode's first plane is a pair of \u in JSON.
func TestMigrate_JSONEscapes(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		`\ud83d\ude00`, `\u0041`, `\u202e\udb40\udc01\ufeff`, `a\u001b\u009bb`, `a\"b`, `a\\b`, `\u00e9\ud834\udd1e`,
		`yes`, `1`, `1e3`, `null`, `~`, `#a`, `a: b`, ` a`,
	} {
		before := `{"methodConfig": [{"name": [{"service": "a.B", "method": "` + name + `"}], "timeout": "1s"}]}`
		after, err := run(t, before, "-")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, want := plain(t, []byte(after)), plain(t, []byte(before)); got != want {
			t.Errorf("%s becomes\n%s\nwhich means\n%s\nwant\n%s", before, after, got, want)
		}
	}
}

// TestMigrate_Spellings has a file that gRPC for Go accepts, and a policy file must not have: one run suffices.
func TestMigrate_Spellings(t *testing.T) {
	t.Parallel()
	const file = `{"MethodConfig": [{"Name": [{"Service": "é.B", "METHOD": "Get"}], "Timeout": "2.s", "retrypolicy": {
  "MaxAttempts": 3, "InitialBackoff": ".01s", "MaxBackoff": ".1s", "BackoffMultiplier": 2, "RetryableStatusCodes": ["UNAVAILABLE"]}}],
  "RetryThrottling": {"MaxTokens": 10, "TokenRatio": 0.1}}`
	const proper = `{"methodConfig": [{"name": [{"service": "é.B", "method": "Get"}], "timeout": "2s", "retryPolicy": {
  "maxAttempts": 3, "initialBackoff": "0.01s", "maxBackoff": "0.1s", "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}}],
  "retryThrottling": {"maxTokens": 10, "tokenRatio": 0.1}}`
	conn, err := grpc.NewClient("passthrough:///x", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(file))
	if err != nil {
		t.Fatalf("gRPC refuses it: %v", err)
	}
	_ = conn.Close()
	out, err := run(t, file, "-")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := plain(t, []byte(out)), plain(t, []byte(proper)); got != want {
		t.Errorf("means\n%s\nwant\n%s", got, want)
	}
	for _, want := range []string{"# MethodConfig (line 1, now methodConfig)\n", "# 2.s (line 1, now 2s)\n", "# .01s (line 2, now 0.01s)\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("lacks %q:\n%s", want, out)
		}
	}
}

// Codes become those that gRPC accepts, so that lint has no advice about the result.
func TestMigrate_Codes(t *testing.T) {
	t.Parallel()
	out, err := run(t, `{"loadBalancingConfig": [{"round_robin": {}}], "methodConfig": [{"name": [{"service": "a.B", "method": "C"}], "timeout": "9s", "retryPolicy": {
  "maxAttempts": 3, "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2,
  "RetryableStatusCodes": ["Unavailable", "aborted", "ResourceExhausted", 13]}}, {"name": [{"service": "a.B", "method": "D"}], "timeout": "9s",
  "hedgingPolicy": {"maxAttempts": 2, "hedgingDelay": "1s", "nonFatalStatusCodes": ["Unavailable"]}}]}`, "-")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"retryableStatusCodes: [UNAVAILABLE, ABORTED, RESOURCE_EXHAUSTED, 13]\n", "nonFatalStatusCodes: [UNAVAILABLE]\n",
		"# Unavailable (line 3, now UNAVAILABLE)\n", "# ResourceExhausted (line 3, now RESOURCE_EXHAUSTED)\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("lacks %q:\n%s", want, out)
		}
	}
	if found := lint.Lint("retry.yaml", []byte(out), lint.Options{}); len(found) > 0 {
		t.Errorf("lint: %v", found)
	}
}

// Errors stand where they stand in the user's file, whatever was spelled anew before them.
func TestMigrate_SpellingsPositions(t *testing.T) {
	t.Parallel()
	const file = `{"methodConfig": [{"Name": [{"service": "a.B"}], "timeout": ".5s", ` +
		`"retryPolicy": {"MaxAttempts": 3, "maxBackoff": ".5s", "what": 1, "maxattempts": 4}}]}`
	_, err := run(t, file, "-")
	for _, want := range []string{
		fmt.Sprintf("<stdin>:1:%d: methodConfig[0].retryPolicy.what: unknown key", strings.Index(file, `"what"`)+1),
		fmt.Sprintf("<stdin>:1:%d: methodConfig[0].retryPolicy.maxAttempts: is given twice", strings.Index(file, `"maxattempts"`)+1),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant %q", err, want)
		}
	}
	_, err = run(t, `{"methodConfig": [{"name": [{}], "timeout": ".s"}]}`, "-")
	if err == nil || !strings.Contains(err.Error(), `".s": must be seconds`) {
		t.Errorf("a point alone: %v", err)
	}
}

func TestMigrate_Refuses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ file, want string }{
		"mistake":  {`{"methodConfig": [{"nam": []}]}`, "<stdin>:1:20: methodConfig[0].nam: unknown key"},
		"no file":  {``, "<stdin>:1:1: "},
		"not JSON": {`{`, "<stdin>:1:"},
		"list":     {`[]`, "<stdin>:1:1: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if out, err := run(t, tc.file, "-"); err == nil || !strings.Contains(err.Error(), tc.want) || out != "" {
				t.Errorf("%q, %v; want %q", out, err, tc.want)
			}
		})
	}
	if _, err := run(t, "", filepath.Join(t.TempDir(), "none.json")); err == nil {
		t.Error("a file that is not there is read")
	}
}

func TestMigrate_Output(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "retry.yaml")
	if out, err := run(t, "", "../../../../examples/orders/service-config.json", "--output", file); err != nil || out != "" {
		t.Fatalf("%q, %v", out, err)
	}
	if _, err := policy.Load(file); err != nil {
		t.Error(err)
	}
}
