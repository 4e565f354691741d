// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/stagger-go/stagger/internal/lint"
	"github.com/stagger-go/stagger/internal/methods"
	"github.com/stagger-go/stagger/internal/policyfile/document"
	"github.com/stagger-go/stagger/policy"
)

func mustParse(t *testing.T, text string) *methods.Set {
	t.Helper()
	set, err := policy.Parse("f", []byte(text))
	if err != nil {
		t.Fatalf("Parse(\n%s) = %v", text, err)
	}
	return methods.Describe(set)
}

// bounded adds a default timeout and load balancing to a file, for tests that aren't about files without them.
func bounded(text string) string {
	if strings.Contains(text, "methodConfig:") {
		text += "\ndefaultTimeout: 9s\n"
	}
	return balanced(text)
}

// balanced adds load balancing to a file that has none.
func balanced(text string) string {
	if strings.Contains(text, "methodConfig:") && !strings.Contains(text, "loadBalancing") {
		text += "\nloadBalancingConfig: [{round_robin: {}}]\n"
	}
	return text
}

// linted returns the diagnostics of Lint on a file.
func linted(text string) []string {
	var list []string
	for _, d := range lint.Lint("f", []byte(text), lint.Options{}) {
		list = append(list, d.Severity+" "+d.String())
	}
	return list
}

func wantLinted(t *testing.T, text string, want ...string) {
	t.Helper()
	if got := linted(bounded(text)); !slices.Equal(got, want) {
		t.Errorf("%s\n%s\nwant\n%s", text, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestLintAdmission(t *testing.T) {
	t.Parallel()
	imports := `: REFUSE: a program must import admission to read this file: import _ "github.com/stagger-go/stagger/admission"`
	for _, row := range [][]string{
		{"admission: REFUSE, timeout: 1s", "note f:1:63: methodConfig[0].admission" + imports},
		{"admission: NONE"},
		{
			"admission: NONE}, {name: [{service: a.D}], admission: REFUSE, timeout: 1s}, {name: [{service: a.E}], admission: REFUSE, timeout: 1s",
			"note f:1:106: methodConfig[1].admission" + imports,
		},
		{
			"admission: REFUSE", "note f:1:63: methodConfig[0].admission" + imports,
			"warning f:1:63: methodConfig[0].admission: REFUSE: calls without a deadline are never refused; set a timeout",
		},
	} {
		wantLinted(t, "methodConfig: [{name: [{service: a.B, method: C}], "+row[0]+"}]", row[1:]...)
	}
}

// A unary call without a deadline needs a timeout of its entry, or the file's default. Streams do without.
func TestLintUnlimited(t *testing.T) {
	t.Parallel()
	entry := func(name string) string {
		return "- name: [" + name + "]\n  idempotency: ASSUME\n  retryPolicy: {maxAttempts: 3, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [14], " +
			"perAttemptTimeout: 0.5s}\n"
	}
	const (
		advice = "a unary call without a deadline waits for ever for a server that hangs; set a timeout, or defaultTimeout at the top of the file, " +
			"for unary calls without a deadline"
		unary  = "{service: a.B, method: C}"
		upload = "{service: shop.Uploads, method: Create}"
	)
	for _, row := range [][]string{
		{entry(unary), "note f:2:3: methodConfig[0]: " + advice},
		{entry(unary) + "  timeout: 9s\n"},
		{entry(unary) + "defaultTimeout: 9s\n"},
		{"- name: [" + unary + "]\n"}, // gRPC's own affair
		{entry(upload)},
		{entry("{service: shop.Uploads}"), "note f:2:3: methodConfig[0]: " + advice},
		{entry(upload) + entry(unary) + entry("{service: a.D}"), "note f:5:3: methodConfig[1]: " + advice + "; the same holds for methodConfig[2]"},
	} {
		got := linted(balanced("methodConfig:\n" + row[0]))
		got = slices.DeleteFunc(got, func(s string) bool {
			return strings.Contains(s, ".name: only this file declares") || strings.Contains(s, "of a stream") ||
				strings.Contains(s, "does not apply to calls whose client sends")
		})
		if !slices.Equal(got, row[1:]) {
			t.Errorf("%s%q; want %q", row[0], got, row[1:])
		}
	}
}

// The times of an entry mean something else for streams.
func TestLintStreamTimes(t *testing.T) {
	t.Parallel()
	const (
		retry   = "retryPolicy: {maxAttempts: 3, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [14], perAttemptTimeout: 3s}}]"
		whole   = ".timeout: 9s: also bounds whole streams, from their start to their end" + remedy
		attempt = ".perAttemptTimeout: 3s: is the time to the first message of a stream" + remedy
	)
	of := func(text string) []string {
		return slices.DeleteFunc(linted(bounded(text)), func(s string) bool { return !strings.Contains(s, "docs/streams.md): ") })
	}
	for _, row := range [][]string{
		{"methodConfig: [{name: [{service: shop.Feeds, method: Get}], timeout: 9s, " + retry},
		{"methodConfig: [{name: [{service: un.Known}], timeout: 9s, " + retry},
		{"methodConfig: [{name: [{service: shop.Feeds}], timeout: 9s}]", "note f:1:57: methodConfig[0]" + whole + "/shop.Feeds/Watch"},
		{
			"methodConfig: [{name: [{service: shop.Feeds, method: Watch}, {service: shop.Uploads}], timeout: 9s, " + retry,
			"note f:1:97: methodConfig[0]" + whole + "/shop.Feeds/Watch, /shop.Uploads/Create",
			"note f:1:236: methodConfig[0].retryPolicy" + attempt + "/shop.Feeds/Watch", // to uploads it doesn't apply
		},
		{
			"methodConfig: [{name: [{service: shop.Feeds}], timeout: 9s}, {name: [{service: shop.Feeds, method: Watch}]}]", // it has its own
		},
	} {
		if got := of(row[0]); !slices.Equal(got, row[1:]) {
			t.Errorf("%s: %q; want %q", row[0], got, row[1:])
		}
	}
}

const remedy = ". If a stream may be longer or quiet, give it an entry of its own (docs/streams.md): "

// Server streams and unary methods of one service share the balance of a budget, and with scope PROCESS those of several do.
func TestLintSharedBudgets(t *testing.T) {
	t.Parallel()
	const (
		declared = "budgets: [{name: one, bucket: {}}, {name: all, scope: PROCESS, bucket: {}}]\ndefaultTimeout: 9s\nmethodConfig:\n"
		get      = "{service: shop.Feeds, method: Get}"
		watch    = "{service: shop.Feeds, method: Watch}"
		other    = "{service: shop.Safe, method: Get}"
	)
	entry := func(name, more string) string {
		return "- name: [" + name + "]\n  retryPolicy: {maxAttempts: 3, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [14]" + more + "}\n"
	}
	note := func(at, with string) string {
		return "note f:" + at + ": /shop.Feeds/Watch is a server stream, and shares the balance of its budget with the unary " + with +
			": streams that are cut together take the retries of both; give streams a budget of their own (docs/streams.md)"
	}
	const all, one, none = ", budget: all", ", budget: one", ", budget: NONE"
	for _, row := range []struct{ text, want string }{
		{entry("{service: shop.Feeds}", ""), note("4:3: methodConfig[0]", "/shop.Feeds/Get")},
		{entry(get, "") + entry(watch, ""), note("6:3: methodConfig[1]", "/shop.Feeds/Get")},
		{entry(watch, one) + entry(get, one), note("4:3: methodConfig[0]", "/shop.Feeds/Get")},
		{entry(get, "") + entry(watch, one), ""},
		{entry(get, none) + entry(watch, none), ""},
		{entry(other, one) + entry(watch, one), ""}, // maybe at different targets
		{entry(other, all) + entry(watch, all), note("6:3: methodConfig[1]", "/shop.Safe/Get")},
		{entry(get, "") + "- name: [" + watch + "]\n", ""},
		{entry(get, "") + entry("{service: shop.Uploads, method: Create}", ""), ""},
	} {
		got := slices.DeleteFunc(linted(declared+row.text), func(s string) bool { return !strings.Contains(s, "shares the balance") })
		if strings.Join(got, "\n") != row.want {
			t.Errorf("%s%q; want %q", row.text, got, row.want)
		}
	}
}

func TestLintConnectionWait(t *testing.T) {
	t.Parallel()
	for wait, want := range map[string][]string{
		"5s": nil,
		"6s": {"warning f:1:187: methodConfig[0].retryPolicy.maxConnectionWait: 6s: calls wait for a connection only in the first 5s of an outage, and so never that long; " +
			"with waitForReady: true, gRPC lets them wait until their deadlines"},
	} {
		wantLinted(t, "methodConfig: [{name: [{service: a.B, method: C}], retryPolicy: {maxAttempts: 3, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 2, "+
			"retryableStatusCodes: [14], maxConnectionWait: "+wait+"}}]", want...)
	}
}

func TestLintRepeatedCodes(t *testing.T) {
	t.Parallel()
	wantLinted(t, `
methodConfig:
- name: [{service: a.B, method: C}]
  retryPolicy:
    maxAttempts: 3
    initialBackoff: 1s
    maxBackoff: 1s
    backoffMultiplier: 1
    retryableStatusCodes: [UNAVAILABLE, ABORTED, 14]
    perCode: [{codes: [ABORTED, ABORTED], maxAttempts: 2}]
- name: [{service: a.B, method: D}]
  hedgingPolicy: {maxAttempts: 2, hedgingDelay: 1s, nonFatalStatusCodes: [ABORTED, UNAVAILABLE, ABORTED]}
`,
		"warning f:9:50: methodConfig[0].retryPolicy.retryableStatusCodes[2]: 14: is listed twice; remove it",
		"warning f:10:33: methodConfig[0].retryPolicy.perCode[0].codes[1]: ABORTED: is listed twice; remove it",
		"warning f:12:97: methodConfig[1].hedgingPolicy.nonFatalStatusCodes[2]: ABORTED: is listed twice; remove it")
}

func TestLintKubernetesObjects(t *testing.T) {
	t.Parallel()
	wantLinted(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: retry}\ndata:\n  retry.yaml: |\n    methodConfig: []\n",
		"error f:2:7: kind: ConfigMap: is a whole Kubernetes object; the policy file is in its data: lint its data, "+
			`as with kubectl get configmap NAME -o jsonpath='{.data.retry\.yaml}' | stagger lint -`)
	wantLinted(t, `{"apiVersion": "networking.istio.io/v1", "kind": "VirtualService", "spec": {}}`,
		"error f:1:50: kind: VirtualService: is a whole Kubernetes object, and no policy file, which has keys such as methodConfig; lint its data, if that has one")
	if got := linted("kind: ConfigMap\n"); len(got) != 1 || !strings.Contains(got[0], "unknown key") {
		t.Errorf("%q; want an unknown key", got)
	}
}

// TestLintBuckets has buckets that are just good, and that are not.
func TestLintBuckets(t *testing.T) {
	t.Parallel()
	file := func(bucket string) string {
		return "methodConfig: [{name: [{service: a.B, method: C}], retryPolicy: {maxAttempts: 2, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 2, " +
			"retryableStatusCodes: [14], budget: b}}]\nbudgets: [{name: b, " + bucket + "}]\n"
	}
	wantLinted(t, file("bucket: {}"))
	wantLinted(t, file("throttle: {maxTokens: 10, tokenRatio: 1}"))
	wantLinted(t, file("bucket: {size: 3, slowCost: 3, perSuccess: 0.5}"))
	wantLinted(t, file("bucket: {perSuccess: 2}"), "warning f:2:42: budgets[0].bucket.perSuccess: 2: lets retries add 2 times the calls while a part of them fails; "+
		"0.1 to 0.5 are enough, because a successful retry refunds its cost")
	wantLinted(t, file("bucket: {size: 2.9, slowCost: 3}"), "warning f:2:51: budgets[0].bucket.slowCost: 3: a client that makes few calls never sends an attempt "+
		"in parallel with a slow one: its bucket holds size, 2.9; raise size or lower slowCost")
}

// A file that retries and names no load balancing is noted once: pick_first is gRPC's own.
func TestLintNotBalanced(t *testing.T) {
	t.Parallel()
	const note = "note f:2:1: methodConfig: the file names no load balancing. If the program names none either, gRPC's own, pick_first, sends all calls and their retries to one backend. " +
		"For several backends, write loadBalancingConfig: [{round_robin: {}}] at the top of the file; for one address, such as a proxy's, [{pick_first: {}}]"
	const (
		retried = "methodConfig:\n- name: [{service: a.B, method: C}]\n  timeout: 9s\n  retryPolicy: " +
			"{maxAttempts: 2, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [14]}\n"
		hedged = "methodConfig:\n- name: [{service: a.B, method: C}]\n  timeout: 9s\n  hedgingPolicy: {maxAttempts: 2, hedgingDelay: 1s}\n"
		second = "- name: [{service: a.B, method: D}]\n  timeout: 9s\n  hedgingPolicy: {maxAttempts: 2, hedgingDelay: 1s}\n"
	)
	for _, row := range [][]string{
		{retried, note},
		{hedged, note},
		{retried + second, note},
		{retried + "loadBalancingConfig: [{round_robin: {}}]\n"},
		{retried + "loadBalancingConfig: [{pick_first: {}}]\n"},
		{retried + "loadBalancingPolicy: round_robin\n"},
		{"methodConfig:\n- name: [{service: a.B, method: C}]\n  timeout: 9s\n"},
	} {
		if got := linted(row[0]); !slices.Equal(got, row[1:]) {
			t.Errorf("%s%q; want %q", row[0], got, row[1:])
		}
	}
}

// People write DEADLINE_EXCEEDED and a timeout when they mean that each attempt has that time.
func TestLintCallDeadline(t *testing.T) {
	t.Parallel()
	file := func(timeout, code, more string) string {
		return "methodConfig: [{name: [{service: a.B, method: C}]" + timeout + ", retryPolicy: {maxAttempts: 2, initialBackoff: 0.1s, maxBackoff: 1s, " +
			"backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE, " + code + "]" + more + "}}]"
	}
	const says = "retryPolicy.retryableStatusCodes: DEADLINE_EXCEEDED: %s bounds the whole call with its retries, and nothing follows its end; " +
		"if each attempt may take %s, set perAttemptTimeout: %[2]s, and a longer %[1]s"
	wantLinted(t, file(", timeout: 2s", "DEADLINE_EXCEEDED", ""), "warning f:1:177: methodConfig[0]."+fmt.Sprintf(says, "timeout", "2s"))
	wantLinted(t, file("", "DEADLINE_EXCEEDED", ""), "warning f:1:164: methodConfig[0]."+fmt.Sprintf(says, "defaultTimeout", "9s"))
	wantLinted(t, file(", timeout: 2s", "DEADLINE_EXCEEDED", ", perAttemptTimeout: 0.5s"))
	wantLinted(t, file(", timeout: 2s", "ABORTED", ""))
}

// The most specific entry replaces the others whole: people write one for a longer timeout, and lose the retries.
func TestLintHidden(t *testing.T) {
	t.Parallel()
	const (
		again   = "  retryPolicy: {maxAttempts: 2, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [14], perAttemptTimeout: 2s}\n"
		service = "methodConfig:\n- name: [{service: shop.Safe}]\n  timeout: 9s\n" + again
		get     = "- name: [{service: shop.Safe, method: Get}]\n"
		policy  = "note f:5:9: methodConfig[1].name: this entry replaces all of methodConfig[0], also its policy, so these calls are not retried; " +
			"repeat it here, or write idempotency: NONE: /shop.Safe/Get"
		timeout = "note f:5:9: methodConfig[1].name: this entry replaces all of methodConfig[0], also its timeout; repeat that here: /shop.Safe/Get"
	)
	for _, row := range [][]string{
		{service + get + "  timeout: 5s\n", policy},
		{service + get + "  waitForReady: true\n", policy},
		{strings.Replace(service, "{service: shop.Safe}", "{}", 1) + get + "  timeout: 5s\n", policy},
		{
			strings.Replace(service, "{service: shop.Safe}", "{}", 1) + strings.Replace(get, ", method: Get", "", 1) + "  timeout: 5s\n",
			strings.Replace(policy, "/Get", "/", 1),
		},
		{service + get + again, timeout},
		{service + strings.Replace(get, "}]", "}, {service: shop.Safe, method: Put}]", 1) + again, timeout + ", /shop.Safe/Put"}, // names the entry once
		{service + get}, // on purpose
		{service + get + "  timeout: 5s\n  idempotency: NONE\n"},
		{service + get + "  timeout: 5s\n  mode: \"OFF\"\n"},
		{service + get + "  timeout: 5s\n" + again},
		{service + "- name: [{service: shop.Feeds, method: Get}]\n  timeout: 5s\n"}, // another service
	} {
		got := slices.DeleteFunc(linted(bounded(row[0])), func(s string) bool { return !strings.Contains(s, "this entry replaces") })
		if !slices.Equal(got, row[1:]) {
			t.Errorf("%s%q; want %q", row[0], got, row[1:])
		}
	}
}

func TestLintPackages(t *testing.T) {
	t.Parallel()
	const says = ": matches nothing: it is the name of a package; write the full name of a service, such as "
	wantLinted(t, "methodConfig: [{timeout: 1s, name: [{service: acme.orders.v1}, {service: acme.orders.v1beta2, method: Get}, {service: v2.V1}]}]",
		"warning f:1:47: methodConfig[0].name[0].service: acme.orders.v1"+says+"acme.orders.v1.OrderService",
		"warning f:1:74: methodConfig[0].name[1].service: acme.orders.v1beta2"+says+"acme.orders.v1beta2.OrderService")
}

func TestLintMultiplier(t *testing.T) {
	t.Parallel()
	const entry = "methodConfig: [{name: [{service: a.B, method: C}], retryPolicy: {maxAttempts: 3, initialBackoff: 1s, maxBackoff: 1s, " +
		"retryableStatusCodes: [14], backoffMultiplier: "
	wantLinted(t, entry+"0.5}}]", "warning f:1:165: methodConfig[0].retryPolicy.backoffMultiplier: 0.5: makes each wait shorter than the last; 2 doubles it, 1 keeps it")
	wantLinted(t, entry+"1}}]")
}

func TestLintFirstRetry(t *testing.T) {
	t.Parallel()
	const (
		without = "warning f:4:131: methodConfig[0].retryPolicy.firstRetry: AT_ONCE: an immediate retry may go to the backend that has just failed; " +
			"let it go to another one (loadBalancingConfig: [{stagger_retry_elsewhere: {childPolicy: [{round_robin: {}}]}}]), or remove it"
		advice = "note f:4:16: methodConfig[0].retryPolicy: retries go to another backend, so that the first need not wait: firstRetry AT_ONCE ends " +
			"calls sooner while one backend fails or hangs, and costs some success where all fail for a moment; BACKOFF keeps the wait, and says so"
	)
	wantLinted(t, "maxWaiting: 9"+onceMore+", firstRetry: AT_ONCE}", without)
	wantLinted(t, "maxWaiting: 9"+onceMore+", firstRetry: BACKOFF}")
	wantLinted(t, "maxWaiting: 9"+onceMore+"}")
	wantLinted(t, elsewhere+onceMore+", firstRetry: AT_ONCE}", imports)
	wantLinted(t, elsewhere+onceMore+", firstRetry: BACKOFF}", imports)
	wantLinted(t, elsewhere+onceMore+"}", imports, advice)
}

const onceMore = `
methodConfig:
- name: [{service: a.B, method: C}]
  retryPolicy: {maxAttempts: 2, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [14]`

func TestLintFirstRetryWaits(t *testing.T) {
	t.Parallel()
	text := strings.ReplaceAll(elsewhere+onceMore+", firstRetry: AT_ONCE}", "- name:", "- timeout: 1s\n  name:")
	wantLinted(t, text, imports) // two attempts, and no wait of a second between them
}

const counted = " `stagger lint` lists the methods, and says how to declare them. " +
	"For interceptor.Default, name them in DefaultPolicy.Idempotent"

const unsafe = " will be retried only if the attempt never left the client, because nothing declares them idempotent. " +
	"If a method may run twice, set idempotency_level in its .proto, or name it in an entry, which declares it idempotent. " +
	"If it must not, leave it, or use an idempotencyKey and a server that deduplicates"

// TestLintDeclared has files that declare methods idempotent: lint says what that means, so that no careful user pays twice.
func TestLintDeclared(t *testing.T) {
	t.Parallel()
	const (
		retry  = "retryPolicy: {maxAttempts: 3, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [14], perAttemptTimeout: 3s}}]"
		only   = "note f:1:23: methodConfig[0].name: only this file declares these methods idempotent, so failed calls may run them twice: "
		advice = ": naming a method declares it idempotent, so a failed call may run it twice; if that is harmless, " +
			`add "idempotency: ASSUME" to the entry; otherwise use an idempotencyKey, or remove the name`
	)
	for entry, want := range map[string][]string{
		"name: [{service: shop.Mixed, method: Pay}], ": {
			only + "/shop.Mixed/Pay", `warning f:1:24: methodConfig[0].name[0]: "/shop.Mixed/Pay"` + advice,
		},
		"name: [{service: shop.Mixed, method: Get}], ": nil, // its descriptor says so
		"name: [{service: un.Known, method: Get}, {service: un.Known, method: CreateOrder}], ": {
			`warning f:1:58: methodConfig[0].name[1]: "/un.Known/CreateOrder"` + advice,
		},
		"name: [{service: un.Known, method: Address}, {service: un.Known, method: PayloadOf}, {service: un.Known, method: GetPay}], ": nil,
		"name: [{service: un.Known, method: Send}], idempotency: ASSUME, ":                                                            nil,
		"name: [{service: un.Known, method: Send}], idempotency: NONE, ":                                                              nil,
		"name: [{service: un.Known, method: refund}], ": {
			`warning f:1:24: methodConfig[0].name[0]: "/un.Known/refund"` + advice,
		},
		"name: [{service: shop.Mixed, method: Pay}], idempotencyKey: {header: key}, ": {
			"note f:1:77: methodConfig[0].idempotencyKey: " + served,
			"note f:1:227: methodConfig[0].retryPolicy.perAttemptTimeout: 3s: the attempt after it is sent while the first still runs, " +
				"and such a server lets it wait for that: write onAttemptTimeout: RETRY",
		},
		"name: [{service: shop.Mixed}], idempotency: ASSUME, ": {only + "/shop.Mixed/Add, /shop.Mixed/Pay"},
	} {
		wantLinted(t, "methodConfig: [{"+entry+retry, want...)
	}
}

const served = "declares the methods idempotent, but only the server makes them so: it must store the key with the effect, " +
	"and answer a key that it knows with the first response. At a server that ignores the header, a failed call may run twice"

// At a server that deduplicates, a parallel attempt waits for the first one.
func TestLintIdempotencyKey(t *testing.T) {
	t.Parallel()
	const (
		key   = "methodConfig: [{name: [{service: a.B, method: Pay}], timeout: 9s, idempotencyKey: {header: key}"
		retry = ", retryPolicy: {maxAttempts: 2, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 2, " +
			"retryableStatusCodes: [14], perAttemptTimeout: 2s"
		note  = "note f:1:83: methodConfig[0].idempotencyKey: " + served
		waits = " is sent while the first still runs, and such a server lets it wait for that: write "
	)
	wantLinted(t, key+"}]")
	wantLinted(t, key+retry+", onAttemptTimeout: RETRY}}]", note)
	wantLinted(t, key+retry+"}}]", note,
		"note f:1:233: methodConfig[0].retryPolicy.perAttemptTimeout: 2s: the attempt after it"+waits+"onAttemptTimeout: RETRY")
	wantLinted(t, key+", hedgingPolicy: {maxAttempts: 2, hedgingDelay: 1s}}]", note,
		"note f:1:113: methodConfig[0].hedgingPolicy: a hedge"+waits+"a retryPolicy")
}

func TestLintUnsafeMethods(t *testing.T) {
	t.Parallel()
	const retry = "  retryPolicy: {maxAttempts: 3, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [14], perAttemptTimeout: 3s}\n"
	var many []string
	for i := range 20 {
		many = append(many, fmt.Sprintf("/shop.Mall/Pay%02d", i))
	}
	for _, row := range []struct {
		name, text string
		counts     string   // the set's own note
		want       []string // that lint names
	}{
		{"all methods declared", "methodConfig:\n- name: [{service: shop.Safe}]\n" + retry, "", nil},
		{"no retries", "methodConfig:\n- name: [{service: shop.Mixed}]\n  timeout: 1s\n", "", nil},
		{"switched off", "methodConfig:\n- name: [{service: shop.Mixed}]\n  idempotency: NONE\n" + retry, "", nil},
		{"some not declared", "methodConfig:\n- name: [{service: shop.Safe}, {service: shop.Mixed}]\n" + retry, "2 methods of shop.Mixed aren't declared idempotent, so most of their failed calls won't be retried.", []string{
			`f:2:9: methodConfig[0].name: /shop.Mixed/Add, /shop.Mixed/Pay` + unsafe,
		}},
		{"one has an entry of its own", "methodConfig:\n- name: [{service: shop.Mixed}]\n" + retry +
			"- name: [{service: shop.Mixed, method: Pay}]\n", "1 method of shop.Mixed isn't declared idempotent, so most of its failed calls won't be retried.", []string{
			`f:2:9: methodConfig[0].name: /shop.Mixed/Add` + unsafe,
		}},
		{"more than anyone reads", "methodConfig:\n- name: [{service: shop.Mall}]\n" + retry, "25 methods of shop.Mall aren't declared idempotent, so most of their failed calls won't be retried.", []string{
			`f:2:9: methodConfig[0].name: ` + strings.Join(many, ", ") + " and 5 more" + unsafe,
		}},
		{"a service that is not linked in", "methodConfig:\n- name: [{service: un.Known}]\n" + retry, "un.Known isn't declared idempotent, so most of its failed calls won't be retried.", []string{
			`f:2:9: methodConfig[0].name: methods of un.Known` + unsafe,
		}},
		{
			"both", "methodConfig:\n- name: [{service: un.Known}, {service: shop.Mixed}, {service: un.Known2}]\n" + retry,
			"un.Known, 2 methods of shop.Mixed and un.Known2 aren't declared idempotent, so most of their failed calls won't be retried.",
			[]string{
				`f:2:9: methodConfig[0].name: /shop.Mixed/Add, /shop.Mixed/Pay, and methods of un.Known, un.Known2` + unsafe,
			},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			var counts string
			for _, d := range mustParse(t, row.text).Warnings() {
				counts += strings.TrimSuffix(d.String(), counted)
			}
			if counts = strings.TrimPrefix(counts, "f: methodConfig: "); counts != row.counts {
				t.Errorf("it counts %q; want %q", counts, row.counts)
			}
			var notes []string
			for _, want := range row.want {
				notes = append(notes, "note "+want)
			}
			wantLinted(t, row.text, notes...)
		})
	}
}

// TestLintOnlyDescriptors checks that services linked into the program are left out.
func TestLintOnlyDescriptors(t *testing.T) {
	t.Parallel()
	const everything = "methodConfig: [{name: [{}], retryPolicy: {maxAttempts: 3, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 2, " +
		"retryableStatusCodes: [14], perAttemptTimeout: 3s}}]"
	for only, want := range map[bool]string{false: "/shop.Mall/Pay00", true: `methods of {} will be retried only`} {
		list := lint.Lint("f", []byte(bounded(everything)), lint.Options{Descriptors: methods.Descriptors{Only: only}})
		list = slices.DeleteFunc(list, func(d policy.Diagnostic) bool {
			return strings.Contains(d.Message, "shares the balance") || strings.Contains(d.Message, "of a stream") ||
				strings.Contains(d.Message, "does not apply")
		})
		if len(list) != 1 || !strings.Contains(list[0].String(), want) {
			t.Errorf("only descriptors %v: %v; want one note with %s", only, list, want)
		}
	}
}

// Neither hedges nor attempt timeouts apply to Create: lint warns in the entry that asks for them, if the method uses that entry.
func TestClientStreamsAreNotTimed(t *testing.T) {
	t.Parallel()
	const hedge = "hedgingPolicy: {maxAttempts: 2, hedgingDelay: 1s, nonFatalStatusCodes: [14]}"
	retry := func(more string) string {
		return "retryPolicy: {maxAttempts: 2, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [14]" + more + "}"
	}
	const create = "/shop.Uploads/Create "
	const untimed = "note f:1:222: methodConfig[0].retryPolicy.perAttemptTimeout: 1s: does not apply to calls whose client sends a stream, " +
		"where the next attempt follows only a failure: /shop.Uploads/Create"
	for _, row := range [][3]string{
		{"{service: shop.Uploads, method: Create}", hedge, "warning f:1:102: methodConfig[0].hedgingPolicy: " + create +
			"is not hedged, since its client sends a stream: the next attempt follows a failure; write a retryPolicy for it, in a separate entry"},
		{"{service: shop.Uploads, method: Create}", retry(", perAttemptTimeout: 1s, onAttemptTimeout: HEDGE"), untimed},
		{"{service: shop.Uploads, method: Create}", retry(", perAttemptTimeout: 1s"), untimed},
		{"{service: shop.Uploads, method: Create}", retry(""), ""},
		{"{service: shop.Uploads, method: Get}", retry(", perAttemptTimeout: 1s"), ""},
		{"{service: shop.Uploads, method: Get}", hedge, ""},
		{"{service: shop.Uploads}", hedge, "warning f:1:86: methodConfig[0].hedgingPolicy: " + create +
			"is not hedged, since its client sends a stream: the next attempt follows a failure; write a retryPolicy for it, in a separate entry"},
	} {
		text := "methodConfig: [{name: [" + row[0] + "], idempotency: ASSUME, " + row[1] + "}]"
		var got []string
		for _, d := range lint.Lint("f", []byte(text), lint.Options{}) {
			if d.Severity == document.SeverityWarning || strings.Contains(d.Message, "does not apply") {
				got = append(got, d.Severity+" "+d.String())
			}
		}
		if want := slices.DeleteFunc([]string{row[2]}, func(s string) bool { return s == "" }); !slices.Equal(got, want) {
			t.Errorf("%s: %q; want %q", text, got, want)
		}
	}
}

// The services that this program knows, registered like generated code.
var _ = registerShop()

func registerShop() protoreflect.FileDescriptor {
	level := func(l descriptorpb.MethodOptions_IdempotencyLevel) *descriptorpb.MethodOptions {
		return &descriptorpb.MethodOptions{IdempotencyLevel: l.Enum()}
	}
	method := func(name string, o *descriptorpb.MethodOptions) *descriptorpb.MethodDescriptorProto {
		return &descriptorpb.MethodDescriptorProto{
			Name: &name, InputType: new(".shop.Any"), OutputType: new(".shop.Any"), Options: o,
		}
	}
	get := method("Get", level(descriptorpb.MethodOptions_NO_SIDE_EFFECTS))
	put := method("Put", level(descriptorpb.MethodOptions_IDEMPOTENT))
	mall := &descriptorpb.ServiceDescriptorProto{Name: new("Mall")}
	for i := range 25 {
		mall.Method = append(mall.Method, method(fmt.Sprintf("Pay%02d", i), nil))
	}
	upload := method("Create", nil)
	upload.ClientStreaming = new(true)
	feed := method("Watch", level(descriptorpb.MethodOptions_NO_SIDE_EFFECTS))
	feed.ServerStreaming = new(true)
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: new("shop.proto"), Package: new("shop"), Syntax: new("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{{Name: new("Any")}},
		Service: []*descriptorpb.ServiceDescriptorProto{
			{Name: new("Safe"), Method: []*descriptorpb.MethodDescriptorProto{get, put}},
			{Name: new("Mixed"), Method: []*descriptorpb.MethodDescriptorProto{
				get, method("Pay", nil), method("Add", level(descriptorpb.MethodOptions_IDEMPOTENCY_UNKNOWN)),
			}},
			mall,
			{Name: new("Uploads"), Method: []*descriptorpb.MethodDescriptorProto{upload, method("Get", nil)}},
			{Name: new("Feeds"), Method: []*descriptorpb.MethodDescriptorProto{get, feed}},
		},
	}, nil)
	if err == nil {
		err = protoregistry.GlobalFiles.RegisterFile(file)
	}
	if err != nil {
		panic(err)
	}
	return file
}

// An entry with many names gets one note, and for other clients one warning.
func TestLintManyServices(t *testing.T) {
	t.Parallel()
	var names []string
	for i := range 110 {
		names = append(names, fmt.Sprintf("{service: a.S%03d}", i))
	}
	text := "methodConfig:\n- name: [" + strings.Join(names, ", ") + "]\n  retryPolicy: " +
		"{maxAttempts: 9, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [14]}\n"
	got := lint.Lint("f", []byte(bounded(text)), lint.Options{OtherClients: true})
	var lines []string
	for _, d := range got {
		lines = append(lines, d.String())
	}
	all := strings.Join(lines, "\n")
	if len(got) != 3 || !strings.Contains(all, "methods of a.S000, ") || !strings.Contains(all, "a.S019 and 90 more will be retried") ||
		!strings.Contains(all, "/a.S019/ and 90 more anyway (nothing declares it idempotent)") ||
		!strings.Contains(all, "maxAttempts: 9: is cut to 5") {
		t.Errorf("%d messages: %s", len(got), all)
	}
}

// The numbers of all advice are those after the cap on attempts.
func TestLintCap(t *testing.T) {
	t.Parallel()
	const (
		retry = "methodConfig: [{name: [{service: a.B, method: C}], timeout: 3s, retryPolicy: {maxAttempts: 9, initialBackoff: 1s, " +
			"maxBackoff: 1s, backoffMultiplier: 1, retryableStatusCodes: [14]"
		hedge = "methodConfig: [{name: [{service: a.B, method: C}], hedgingPolicy: {maxAttempts: 9"
		cut   = " 9: is cut to 5, unless a higher maxAttemptsLimit allows more"
		three = "\nmaxAttemptsLimit: 3"
		ten   = "\nmaxAttemptsLimit: 10"
	)
	wantLinted(t, retry+"}}]",
		"warning f:1:92: methodConfig[0].retryPolicy.maxAttempts:"+cut,
		"warning f:1:92: methodConfig[0].retryPolicy.maxAttempts: 9: the waits before attempt 5 may add up to 4s, "+
			"but timeout ends the call after 3s")
	short := strings.Replace(retry, "initialBackoff: 1s, maxBackoff: 1s", "initialBackoff: 0.1s, maxBackoff: 0.1s", 1)
	wantLinted(t, short+", perAttemptTimeout: 0.7s}}]",
		"warning f:1:92: methodConfig[0].retryPolicy.maxAttempts:"+cut,
		"warning f:1:92: methodConfig[0].retryPolicy.maxAttempts: 9: if attempts are slow, the waits and 4 times perAttemptTimeout do not fit: "+
			"timeout ends the call after 3s")
	wantLinted(t, retry+", budget: NONE}}]"+three,
		"warning f:1:92: methodConfig[0].retryPolicy.maxAttempts: 9: is cut to 3, unless a higher maxAttemptsLimit allows more",
		"warning f:1:189: methodConfig[0].retryPolicy.budget: NONE: nothing bounds what all calls together add in an outage, but maxAttempts: "+
			"up to 3 times the load")
	wantLinted(t, hedge+", budget: NONE}}]",
		"warning f:1:67: methodConfig[0].hedgingPolicy: without hedgingDelay all attempts are sent in parallel: 5 times the load, "+
			"as far as the budget goes",
		"warning f:1:81: methodConfig[0].hedgingPolicy.maxAttempts:"+cut,
		"warning f:1:92: methodConfig[0].hedgingPolicy.budget: NONE: nothing bounds the hedges of a service that has become slow: "+
			"up to 5 times the load")
	wantLinted(t, hedge+", hedgingDelay: 1s}}]"+ten,
		"warning f:1:81: methodConfig[0].hedgingPolicy.maxAttempts: 9: 2 or 3 are enough: more hedges help few calls more")
	wantLinted(t, strings.Replace(retry, "timeout: 3s, ", "", 1)+"}}]"+ten,
		"warning f:1:79: methodConfig[0].retryPolicy.maxAttempts: 9: 3 to 5 are enough: five failures are not a short fault")
}

// A name that matches nothing gets one message, whatever else there is to say about an entry.
func TestLintNamesThatMatchNothing(t *testing.T) {
	t.Parallel()
	const (
		at      = "warning f:1:24: methodConfig[0].name[0]: "
		method  = "warning f:1:47: methodConfig[0].name[0].method: "
		service = "warning f:1:34: methodConfig[0].name[0].service: "
		lacks   = ": matches nothing: the service has no such method"
		near    = ": matches nothing: no descriptor has the service; did you mean shop.Mixed?"
		retry   = "timeout: 9s, retryPolicy: {maxAttempts: 3, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 2, " +
			"retryableStatusCodes: [14], perAttemptTimeout: 3s}}]"
		pattern = ": matches nothing: there are no patterns; a service without a method stands for all its methods, and {} for everything"
	)
	for names, want := range map[string][]string{
		`{service: "a.*"}`:                           {service + `"a.*"` + pattern},
		`{service: a.B, method: "Create*"}`:          {method + `"Create*"` + pattern},
		`{service: a.B, method: "Get "}`:             {method + `"Get ": matches nothing: it ends with a blank; remove it`},
		`{service: "a.B\u200b"}`:                     {service + `"a.B\u200b": matches nothing: it ends with the invisible character U+200B; remove it`},
		"{service: shop.Mixed, method: Gett}":        {at + `"/shop.Mixed/Gett"` + lacks + "; did you mean Get?"},
		"{service: shop.Mixed, method: CreateOrder}": {at + `"/shop.Mixed/CreateOrder"` + lacks},
		"{service: shop.Mixed, method: shop.Mixed.Get}": {
			"warning f:1:54: methodConfig[0].name[0].method: shop.Mixed.Get: matches nothing: it repeats the name of the service; write Get",
		},
		"{service: shop.Mixed, method: Get}":             nil,
		"{service: shop.Mixd, method: Get}":              {at + `"/shop.Mixd/Get"` + near},
		"{service: Shop.mixed}":                          {at + `"/Shop.mixed/"` + near},
		"{service: Mixed, method: Get}":                  {at + `"/Mixed/Get"` + near},
		"{service: mixd, method: Get}":                   {at + `"/mixd/Get"` + near},
		"{service: shop.Fixed, method: Get}":             {at + `"/shop.Fixed/Get"` + near},
		"{service: shop.Mixed2, method: Get}":            nil, // another version
		"{service: shop.v1.Mixed, method: Get}":          nil, // may be another API's
		"{service: shop.Fasted, method: Get}":            nil,
		"{service: my-shop.My-Service, method: get-one}": nil,
	} {
		wantLinted(t, "methodConfig: [{name: ["+names+"], "+retry, want...)
	}
}

func TestLintAttemptTimeoutOfGRPC(t *testing.T) {
	t.Parallel()
	wantLinted(t, "methodConfig: [{name: [{service: a.B, method: C}], timeout: 3s, retryPolicy: {maxAttempts: 2, initialBackoff: 1s, "+
		"maxBackoff: 1s, backoffMultiplier: 1, retryableStatusCodes: [14], perAttemptRecvTimeout: 4s}}]",
		"warning f:1:204: methodConfig[0].retryPolicy.perAttemptRecvTimeout: 4s: timeout ends the call after 3s already")
}

// Without an attempt timeout, a call of a unary method waits for a server that hangs. Streams, and methods that are not retried,
// have no note.
func TestLintNoAttemptTimeout(t *testing.T) {
	t.Parallel()
	const retry = "retryPolicy: {maxAttempts: 3, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [14]"
	const note = "note f:1:60: methodConfig[0].retryPolicy: retries only failures: if a server never responds, a call waits for it until its deadline. " +
		"A perAttemptTimeout, longer than nearly all responses take, sends another attempt: "
	wantLinted(t, "methodConfig: [{name: [{service: shop.Safe}], "+retry+"}}]", note+"/shop.Safe/Get, /shop.Safe/Put")
	wantLinted(t, "methodConfig: [{name: [{service: shop.Safe}], "+retry+", perAttemptTimeout: 3s}}]")
}
