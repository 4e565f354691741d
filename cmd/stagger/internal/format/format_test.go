// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stagger-go/stagger/policy"
)

func TestTheLayoutIsCanonical(t *testing.T) {
	t.Parallel()
	for _, in := range []string{"messy.yaml", "braces.yaml", "anchors.yaml", "plain.json"} {
		data := read(t, filepath.Join("testdata", in))
		want := read(t, filepath.Join("testdata", "want."+in))
		got, err := format(in, data)
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s becomes\n%s\nwant\n%s", in, got, want)
		}
		if again, err := format(in, got); err != nil || !bytes.Equal(again, got) {
			t.Errorf("%s: formatted again it becomes, with the error %v,\n%s", in, err, again)
		}
	}
}

// TestTheFilesOfThisProjectKeepTheirMeaning has every policy file there is: what format refuses to change by
// itself, it could not be trusted with.
func TestTheFilesOfThisProjectKeepTheirMeaning(t *testing.T) {
	t.Parallel()
	files := 0
	err := filepath.WalkDir("../../../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !slices.Contains([]string{".yaml", ".json"}, filepath.Ext(path)) {
			return err
		}
		data := read(t, path)
		if _, err := policy.Parse(path, data); err != nil {
			return nil //nolint:nilerr // another kind of file
		}
		files++
		keepsMeaning(t, path, data)
		return nil
	})
	if err != nil || files < 6 {
		t.Errorf("%d policy files: %v", files, err)
	}
}

func TestRandomFilesKeepTheirMeaning(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) { keepsMeaning(rt, "drawn.yaml", []byte(drawn(rt))) })
}

// keepsMeaning asks the parser, not format's own check, and counts the comments by another way.
func keepsMeaning(t rapid.TB, file string, data []byte) {
	t.Helper()
	before, err := policy.Parse(file, data)
	if err != nil {
		t.Fatalf("%s\n%v", data, err)
	}
	out, err := format(file, data)
	if err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	after, err := policy.Parse(file, out)
	if err != nil || !same(before, after) {
		t.Fatalf("%s\nhas become, with the error %v,\n%s", data, err, out)
	}
	for _, text := range []string{"# a comment of this line's", "# said beside it"} {
		if n, m := bytes.Count(data, []byte(text)), bytes.Count(out, []byte(text)); n != m {
			t.Fatalf("of %d comments %d are left:\n%s\nhas become\n%s", n, m, data, out)
		}
	}
	again, err := format(file, out)
	if err != nil || !bytes.Equal(again, out) {
		t.Fatalf("%s\nbecomes\n%s\nand then, with the error %v,\n%s", data, out, err, again)
	}
}

func TestTwoFilesThatDifferAreNotTheSame(t *testing.T) {
	t.Parallel()
	const entry = "methodConfig: [{name: [{service: a.B}], timeout: 1s}]\n"
	a, err := policy.Parse("a", []byte(entry))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		strings.Replace(entry, "1s", "2s", 1), strings.Replace(entry, "a.B", "a.C", 1),
		entry + "maxWaiting: 5\n", entry + "loadBalancingPolicy: round_robin\n", entry + "budgets: [{name: x, ratio: {}}]\n",
	} {
		b, err := policy.Parse("b", []byte(text))
		if err != nil || same(a, b) {
			t.Errorf("%s is the same as %s: %v", text, entry, err)
		}
	}
}

// TestAFileIsLeftAsItIsIfInDoubt has a text with lines, one of which looks like a comment.
func TestAFileIsLeftAsItIsIfInDoubt(t *testing.T) {
	t.Parallel()
	const file = `methodConfig:
- name: [{service: a.B}]
  retryPolicy:
    maxAttempts: 2
    initialBackoff: 1s
    maxBackoff: 1s
    backoffMultiplier: 1
    retryableStatusCodes: [ABORTED]
    codeOverrides:
      - codes: [UNKNOWN]
        as: ABORTED
        messageContains: |
          deadlock
          # 5
`
	if out, err := format("retry.yaml", []byte(file)); err == nil || !strings.HasPrefix(err.Error(), "retry.yaml: left as it is: ") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestABadFileIsRefusedWithAllItsMistakes(t *testing.T) {
	t.Parallel()
	_, err := format("retry.yaml", []byte("methodConfig:\n- name: [{service: a.B}]\n  timeout: 5\nretries: 3\n"))
	if wrong, ok := errors.AsType[*policy.Error](err); !ok || len(wrong.Problems) != 2 || wrong.Problems[0].Line != 3 {
		t.Errorf("%v; want the two mistakes that lint finds", err)
	}
}

func read(t testing.TB, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// FuzzFormat wants that whatever can be formatted needs it once, and that nothing else does harm.
func FuzzFormat(f *testing.F) {
	for _, pattern := range []string{"testdata/*", "../../../../policy/testdata/good/*", "../../../../examples/*/retry.yaml"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			if info, err := os.Stat(file); err == nil && !info.IsDir() {
				f.Add(read(f, file))
			}
		}
	}
	f.Add([]byte("# only a comment\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		out, err := format("fuzz.yaml", data)
		if err != nil {
			return
		}
		if again, err := format("fuzz.yaml", out); err != nil || !bytes.Equal(out, again) {
			t.Errorf("%q becomes\n%s\nand then, with the error %v,\n%s", data, out, err, again)
		}
	})
}
