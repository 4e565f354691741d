// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/stagger-go/stagger/internal/lint"
	"github.com/stagger-go/stagger/internal/methods"
	"github.com/stagger-go/stagger/internal/testkit"
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
			data := testkit.Must(os.ReadFile(path))(t)
			files[path] = data
		}
	}
	pages := testkit.Must(filepath.Glob("../docs/*.md"))(t)
	for _, page := range pages {
		text := testkit.Must(os.ReadFile(page))(t)
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
	testkit.NoError(t, yaml.Unmarshal(data, &v))
	text := testkit.Must(json.Marshal(v))(t)
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
		compiled := methods.Describe(set)
		plain, _ := lint.Export(compiled, true)
		observes := slices.ContainsFunc(compiled.Policies(), func(p *policy.Policy) bool { return p.Mode() > policy.ModeEnforce })
		refused := false // for the one exception: spellings that gRPC for Go does not know
		for _, w := range set.Warnings() {
			refused = refused || strings.Contains(w.Message, "gRPC for Go refuses")
		}
		for kind, config := range map[string]string{"as it is": toJSON(t, data), "plain": string(plain)} {
			conn, err := grpcReads(t, config)
			if want := refused && kind == "as it is"; (err != nil) != want {
				t.Errorf("%s, %s: gRPC says %v; should it refuse the file: %v", name, kind, err, want)
			}
			if err == nil && !observes { // otherwise the plain config has no policies: TestServiceConfigModes
				alike(t, conn, set)
			}
		}
	}
}
