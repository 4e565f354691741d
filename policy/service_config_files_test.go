// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
	"pgregory.net/rapid"

	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/policy"
)

// policyFiles returns all valid policy files of the repository, including those in docs, by name.
func policyFiles(t *testing.T) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for _, pattern := range []string{"testdata/good/*", "../examples/*/retry.yaml", "../lab/storm/*.yaml"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: no files: %v", pattern, err)
		}
		for _, path := range paths {
			data := must.Get(os.ReadFile(path))(t)
			files[path] = data
		}
	}
	pages := must.Get(filepath.Glob("../docs/*.md"))(t)
	for _, page := range pages {
		text := must.Get(os.ReadFile(page))(t)
		for i, block := range strings.Split(string(text), "\n```yaml\n")[1:] {
			block, _, _ = strings.Cut(block, "\n```")
			files[fmt.Sprintf("%s, block %d", page, i+1)] = []byte(block)
		}
	}
	return files
}

// toJSON converts a policy file to JSON for other clients, as users do.
func toJSON(t *testing.T, data []byte) string {
	t.Helper()
	var v map[string]any
	must.Do(t, yaml.Unmarshal(data, &v))
	text := must.Get(json.Marshal(v))(t)
	return string(text)
}

func TestServiceConfigOfRepositoryFiles(t *testing.T) {
	t.Parallel()
	files := policyFiles(t)
	if len(files) < 8 {
		t.Errorf("%d files; want 8 or more", len(files))
	}
	for name, data := range files {
		set, err := policy.Parse(name, data)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		plain, _ := set.ServiceConfig(true)
		refused := false // for the one exception: spellings that gRPC for Go does not know
		for _, w := range set.Warnings() {
			refused = refused || strings.Contains(w.Message, "gRPC for Go refuses")
		}
		for kind, config := range map[string]string{"as it is": toJSON(t, data), "plain": string(plain)} {
			conn, err := grpcReads(t, config)
			if want := refused && kind == "as it is"; (err != nil) != want {
				t.Errorf("%s, %s: gRPC says %v; should it refuse the file: %v", name, kind, err, want)
			}
			if err == nil && set.Config().Mode <= policy.ModeEnforce { // otherwise the plain config has no policies: TestServiceConfigModes
				alike(t, conn, set)
			}
		}
	}
}

func TestServiceConfigOfAnyFile(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		config := must.Get(json.Marshal(drawnFile(t)))(t)
		set, err := policy.Parse("f.json", config)
		if err != nil {
			t.Fatalf("the file is not valid, and says nothing: %s\n%v", config, err)
		}
		conn, err := grpcReads(t, string(config))
		if err != nil {
			t.Fatalf("gRPC refuses %s: %v", config, err)
		}
		alike(t, conn, set)
		plain, _ := set.ServiceConfig(true)
		if conn, err = grpcReads(t, string(plain)); err != nil {
			t.Fatalf("gRPC refuses %s: %v", plain, err)
		}
		alike(t, conn, set)
		again, err := policy.Parse("f.json", plain)
		if err != nil {
			t.Fatalf("Parse(%s) = %v", plain, err)
		}
		if twice, _ := again.ServiceConfig(true); string(twice) != string(plain) {
			t.Errorf("written, read and written again\n%s is\n%s", plain, twice)
		}
	})
}

// keys draws some of an object's optional keys.
func keys(t *rapid.T, required map[string]any, optional map[string]*rapid.Generator[any]) map[string]any {
	for _, key := range slices.Sorted(maps.Keys(optional)) {
		if rapid.Bool().Draw(t, key+" is there") {
			required[key] = optional[key].Draw(t, key)
		}
	}
	return required
}

func drawnFile(t *rapid.T) map[string]any {
	methods := []any{}
	for _, name := range []map[string]any{
		{"service": "a.B", "method": "C"}, {"service": "a.B", "method": "D"}, {"service": "a.B"}, {"service": "x.Y"}, {},
	} {
		if rapid.Bool().Draw(t, "entry for "+fmt.Sprint(name)) {
			methods = append(methods, drawnEntry(t, name))
		}
	}
	return keys(t, map[string]any{
		"methodConfig": methods,
		"budgets": []any{
			map[string]any{"name": "one", "ratio": map[string]any{"percent": 20}},
			map[string]any{"name": "two", "throttle": map[string]any{"maxTokens": 10, "tokenRatio": 0.5}},
		},
	}, map[string]*rapid.Generator[any]{
		"idempotency":         anyOf("ASSUME", "DECLARED", "NONE"),
		"maxWaiting":          rapid.IntRange(1, 1e6).AsAny(),
		"retryThrottling":     anyOf(map[string]any{"maxTokens": 1000, "tokenRatio": 0.001}),
		"loadBalancingConfig": anyOf([]any{map[string]any{"round_robin": map[string]any{}}}),
		"loadBalancingPolicy": anyOf("pick_first"),
		"healthCheckConfig":   anyOf(map[string]any{"serviceName": ""}),
		"connectionScaling":   anyOf(map[string]any{"maxConnectionsPerSubchannel": 3}),
	})
}

func drawnEntry(t *rapid.T, name map[string]any) map[string]any {
	entry := keys(t, map[string]any{"name": []any{name}}, map[string]*rapid.Generator[any]{
		"waitForReady":            rapid.Bool().AsAny(),
		"timeout":                 durations(),
		"maxRequestMessageBytes":  rapid.Uint32().AsAny(),
		"maxResponseMessageBytes": rapid.Uint32().AsAny(),
		"idempotency":             anyOf("ASSUME", "DECLARED"),
		"idempotencyKey":          anyOf(map[string]any{}, map[string]any{"header": "x-key"}),
	})
	switch rapid.IntRange(0, 3).Draw(t, "what follows") {
	case 0:
	case 1:
		entry["hedgingPolicy"] = keys(t, map[string]any{"maxAttempts": rapid.IntRange(2, 9).Draw(t, "hedges")}, map[string]*rapid.Generator[any]{
			"hedgingDelay": durations(), "nonFatalStatusCodes": statusCodes(), "budget": anyOf("one", "two", "NONE"),
			"hedgingQuantile": anyOf(map[string]any{"quantile": 0.95}),
		})
	default:
		entry["retryPolicy"] = drawnRetry(t)
	}
	return entry
}

func drawnRetry(t *rapid.T) map[string]any {
	required := map[string]any{
		"maxAttempts":          rapid.Uint32Range(2, 1<<31).Draw(t, "attempts"),
		"initialBackoff":       durations().Draw(t, "initial"),
		"maxBackoff":           durations().Draw(t, "max"),
		"backoffMultiplier":    rapid.Float64Range(1e-300, 1e300).Draw(t, "multiplier"),
		"retryableStatusCodes": statusCodes().Draw(t, "codes"),
	}
	return keys(t, required, map[string]*rapid.Generator[any]{
		"jitter":              anyOf("NONE", "FULL", "EQUAL", "DECORRELATED", "PROPORTIONAL", "full"),
		"growth":              anyOf("EXPONENTIAL", "LINEAR"),
		"perAttemptTimeout":   durations(),
		"onAttemptTimeout":    anyOf("HEDGE", "RETRY"),
		"budget":              anyOf("one", "two", "NONE"),
		"commitOn":            anyOf("SEEN"),
		"maxPushback":         durations(),
		"minAttemptTime":      durations(),
		"chain":               anyOf("ALLOW", "ONCE", "SUPPRESS"),
		"waitForReadyOnRetry": rapid.Bool().AsAny(),
		"maxConnectionWait":   rapid.Just[any]("4s"),
		"firstRetry":          anyOf("BACKOFF", "AT_ONCE"),
		"perCode":             anyOf([]any{map[string]any{"codes": []any{"UNAVAILABLE"}, "costFactor": 2}}),
		"codeOverrides":       anyOf([]any{map[string]any{"codes": []any{"unknown"}, "as": "ABORTED"}}),
	})
}

func anyOf(values ...any) *rapid.Generator[any] { return rapid.SampledFrom(values) }

// durations draws positive durations that both policy files and gRPC accept.
func durations() *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		return fmt.Sprintf("%d.%09ds", rapid.Int64Range(0, 9223372035).Draw(t, "seconds"), rapid.IntRange(1, 999999999).Draw(t, "nanos"))
	})
}

func statusCodes() *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		return append(rapid.SliceOf(anyOf("ABORTED", "INTERNAL", "CANCELLED", "UNAVAILABLE", 1, 8, 14, 16)).Draw(t, "codes"), "UNAVAILABLE")
	})
}
