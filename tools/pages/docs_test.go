// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package pages_test

import (
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"go.yaml.in/yaml/v4"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/explain"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
)

// References that are not among the guides: of metrics and attributes, and of the keys of a policy file.
const (
	otelPage = "observe/otelstagger/README.md"
	keysPage = "proto/stagger/policy/v1/README.md"
)

// pages are the README and its neighbours, the checklist of releases and the pages below docs, by their paths.
func pages(t *testing.T) map[string]string {
	t.Helper()
	guides, err := filepath.Glob("docs/*.md")
	if err != nil || len(guides) < 10 {
		t.Fatalf("%d pages: %v", len(guides), err)
	}
	evidence := testkit.Must(filepath.Glob("docs/evidence/*.md"))(t)
	texts := map[string]string{}
	for _, path := range slices.Concat(guides, evidence, []string{"README.md", "ARCHITECTURE.md", "NOT-HANDLED.md", "tools/RELEASE.md", "budget/redisbudget/README.md", otelPage, keysPage}) {
		texts[path] = read(t, path)
	}
	return texts
}

func read(tb testing.TB, path string) string {
	tb.Helper()
	text := testkit.Must(os.ReadFile(path))(tb)
	return string(text)
}

// blocks returns the fenced blocks of a page that begin with the given words.
func blocks(page, fence string) []string {
	var list []string
	for _, m := range regexp.MustCompile("(?s)\n```"+fence+"\n(.*?)\n```").FindAllStringSubmatch(page, -1) {
		list = append(list, m[1]+"\n")
	}
	return list
}

// A block of yaml is a whole policy file; a part of one, or another kind of file, has a second word in its fence.
func TestPages_PolicyFiles(t *testing.T) {
	t.Parallel()
	checked, retried := 0, 0
	for path, text := range pages(t) {
		for _, file := range blocks(text, "yaml(?: newuser retry.yaml)?") {
			checked++
			set, err := policy.Parse(path, []byte(file))
			if err != nil {
				t.Error(err)
				continue
			}
			retried += noMoreThan(t, set, file)
		}
	}
	if checked < 3 {
		t.Errorf("%d files; want 3 or more", checked)
	}
	for _, path := range []string{"examples/orders/retry.yaml", "examples/migration/retry.yaml", "examples/payments/retry.yaml", "examples/shop/retry.yaml"} {
		set := testkit.Must(policy.Load(path))(t)
		retried += noMoreThan(t, set, read(t, path))
	}
	if retried < 5 {
		t.Errorf("gRPC retries %d methods of all files; want 5 or more, or the comparison says nothing", retried)
	}
}

// noMoreThan has gRPC read a policy file as it is: it accepts the file, and finds no policy for a method that the set has
// none for.
func noMoreThan(t *testing.T, set *policy.Set, file string) (retried int) {
	t.Helper()
	var whole any
	testkit.NoError(t, yaml.Unmarshal([]byte(file), &whole))
	config := testkit.Must(json.Marshal(whole))(t)
	conn, err := grpc.NewClient("passthrough:///nowhere", grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultServiceConfig(string(config)))
	if err != nil {
		t.Fatalf("gRPC refuses the file: %v\n%s", err, file)
	}
	defer conn.Close()
	conn.Connect() // the config holds when the resolver has answered, which this one does at once
	methods := []string{"/x.Y/Z", "/acme.orders.v1.OrderService/AnyOther", "/acme.other.v1.Service/Get"}
	for _, m := range compiled.OfSet(set).Methods {
		for _, name := range m.Names {
			if strings.HasSuffix(name, "/") {
				name += "AnyOther"
			}
			methods = append(methods, name)
		}
	}
	for _, method := range methods {
		theirs, ours := conn.GetMethodConfig(method).RetryPolicy, set.Lookup(method)
		if theirs != nil {
			retried++
		}
		if theirs != nil && (ours == nil || compiled.Of(ours).Retry == nil) {
			t.Errorf("gRPC retries %s, and the file says nothing of it:\n%s", method, file)
		}
	}
	return retried
}

// The manifests that a user copies mount the policy file where the program of the page reads it.
func TestPages_Manifests(t *testing.T) {
	t.Parallel()
	page := read(t, "docs/set-up.md")
	manifests := blocks(read(t, "docs/kubernetes.md"), "yaml kubernetes")[0]
	for i, text := range strings.Split(manifests, "---\n") {
		var object struct{ Kind string }
		testkit.NoError(t, yaml.Unmarshal([]byte(text), &object))
		if want := []string{"Service", "Deployment"}[i]; object.Kind != want {
			t.Errorf("object %d is a %s; want a %s", i, object.Kind, want)
		}
	}
	if !strings.Contains(manifests, "\n  minReadySeconds: 30 ") || !strings.Contains(page, "\n\tdns.SetMinResolutionInterval(time.Second)") {
		t.Error("a rolling update may be faster than clients ask DNS: lab/rollout")
	}
	mount := regexp.MustCompile(`mountPath: ([^,]+),`).FindStringSubmatch(manifests)
	if mount == nil || !strings.Contains(page, mount[1]+`/retry.yaml",`) {
		t.Errorf("the program reads another file than the one that is mounted at %q", mount)
	}
}

func TestPages_BadFile(t *testing.T) {
	t.Parallel()
	page := read(t, "docs/policy-file.md")
	_, err := policy.Parse("retry.yaml", []byte(blocks(page, "yaml bad")[0]))
	if err == nil {
		t.Fatal("the bad file is accepted")
	}
	if want := strings.TrimSpace(blocks(page, "text error")[0]); err.Error() != want {
		t.Errorf("the page shows\n%s\nit is\n%s", want, err)
	}
}

// Go code on a page is part of a compiled file.
func TestPages_Go(t *testing.T) {
	t.Parallel()
	var compiled []string
	testkit.NoError(t, filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".go" {
			compiled = append(compiled, trimmed(read(t, path)))
		}
		return err
	}))
	shown := 0
	for path, text := range pages(t) {
		for _, block := range blocks(text, "go") {
			shown++
			if !slices.ContainsFunc(compiled, func(file string) bool { return strings.Contains(file, trimmed(block)) }) {
				t.Errorf("%s: stands in no Go file of the repository:\n%s", path, block)
			}
		}
	}
	if shown < 6 {
		t.Errorf("%d blocks; want 6 or more", shown)
	}
}

// Go code in the comment of a package is part of a compiled file. An ellipsis would not compile, and neither does code that
// shows a name of before.
func TestPackageComments_Go(t *testing.T) {
	t.Parallel()
	var compiled, comments []string
	testkit.NoError(t, filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		source := read(t, path)
		compiled = append(compiled, trimmed(source))
		if strings.HasSuffix(path, "_test.go") || strings.Contains("/"+path, "/internal/") {
			return nil
		}
		file := testkit.Must(parser.ParseFile(token.NewFileSet(), path, source, parser.ParseComments|parser.PackageClauseOnly))(t)
		comments = append(comments, file.Doc.Text())
		return nil
	}))
	shown := 0
	for _, comment := range comments {
		for _, m := range regexp.MustCompile(`(?m)(^(\t.*)?\n)+`).FindAllString(comment, -1) {
			block := trimmed(strings.TrimSpace(m))
			if !isGo(block) {
				continue
			}
			shown++
			if !slices.ContainsFunc(compiled, func(file string) bool { return strings.Contains(file, block) }) {
				t.Errorf("stands in no Go file of the repository:\n%s", block)
			}
		}
	}
	if shown < 6 {
		t.Errorf("%d blocks; want 6 or more", shown)
	}
}

// The links in the comment of package interceptor work where pkg.go.dev shows them.
func TestPackageComments_Interceptor(t *testing.T) {
	t.Parallel()
	source := read(t, "interceptor/interceptor.go")
	file := testkit.Must(parser.ParseFile(token.NewFileSet(), "interceptor.go", source, parser.ParseComments|parser.PackageClauseOnly))(t)
	const link = `https://github\.com/stagger-go/stagger/blob/main/(\S+)`
	pages := regexp.MustCompile(link).FindAllStringSubmatch(file.Doc.Text(), -1)
	if rest := regexp.MustCompile(link).ReplaceAllString(file.Doc.Text(), ""); strings.Contains(rest, "docs/") || len(pages) == 0 {
		t.Errorf("%d links, or a path of the repository, which is no link on pkg.go.dev", len(pages))
	}
	for _, page := range pages {
		read(t, page[1])
	}
}

// isGo reports whether a block is statements of Go, or would be without a mistake.
func isGo(block string) bool {
	if strings.TrimSpace(block) == "" {
		return false
	}
	_, err := parser.ParseFile(token.NewFileSet(), "", "package p\nfunc _() {"+block+"}", 0)
	return err == nil || strings.Contains(block, " := ")
}

// trimmed has its lines without blanks at their beginnings and ends.
func trimmed(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return "\n" + strings.Trim(strings.Join(lines, "\n"), "\n") + "\n"
}

// No page nor the schema names a reason that does not exist. TestMeanings of internal/explain looks for those that a page lacks.
func TestPages_Reasons(t *testing.T) {
	t.Parallel()
	texts := pages(t)
	texts["proto/stagger/policy/v1/policy.json"] = read(t, "proto/stagger/policy/v1/policy.json")
	for path, text := range texts {
		for _, m := range regexp.MustCompile("\\breasons? `?([a-z]+_[a-z_]+)`?").FindAllStringSubmatch(text, -1) {
			if !slices.Contains(decision.Reasons(), policy.Reason(m[1])) {
				t.Errorf("%s names the reason %s, which does not exist", path, m[1])
			}
		}
	}
}

// examplePages are the pages of the examples, and of the simulator's scenarios.
func examplePages(t *testing.T) []string {
	t.Helper()
	return append(testkit.Must(filepath.Glob("examples/*/README.md"))(t), "cmd/stagger/scenarios/README.md")
}

// Links lead to files and headings that exist, and a link leads to every page.
func TestPages_Links(t *testing.T) {
	t.Parallel()
	texts := pages(t)
	texts["CONTRIBUTING.md"] = read(t, "CONTRIBUTING.md")
	for _, path := range examplePages(t) {
		texts[path] = read(t, path)
	}
	linked := map[string]bool{"README.md": true}
	for path, text := range texts {
		for _, m := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(prose(text), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			file, heading, _ := strings.Cut(m[1], "#")
			to := path
			if file != "" {
				to = filepath.Join(filepath.Dir(path), file)
				linked[to] = true
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s links to %s: %v", path, m[1], err)
				continue
			}
			if heading != "" && filepath.Ext(to) == ".md" && !slices.Contains(headings(read(t, to)), heading) {
				t.Errorf("%s links to %s, which has no such heading", path, m[1])
			}
		}
	}
	for path := range texts {
		if !linked[path] && !linked[filepath.Dir(path)] { // a link to a folder shows its README
			t.Errorf("no page links to %s", path)
		}
	}
}

// missingPaths returns the paths on a page that don't exist. A file without a folder may be in any folder that the page names.
func missingPaths(page string) (missing []string) {
	there := func(path string) bool { _, err := os.Stat(path); return err == nil }
	folders, files := map[string]bool{}, []string{}
	for _, m := range regexp.MustCompile("`([a-z][a-zA-Z0-9_./]*)`").FindAllStringSubmatch(page, -1) {
		path := strings.TrimSuffix(m[1], "/NAME")
		switch {
		case strings.Contains(path, "/") && !there(path):
			missing = append(missing, path)
		case strings.Contains(path, "/") && filepath.Ext(path) != "":
			folders[filepath.Dir(path)] = true
		case there(path):
			folders[path] = true // or a file
		case filepath.Ext(path) == ".go" || filepath.Ext(path) == ".proto":
			files = append(files, path)
		}
	}
	for _, row := range regexp.MustCompile("(?m)^\\| ((?:`[a-z/]+`(?:, )?)+) \\|.*\\|$").FindAllStringSubmatch(page, -1) { // the table of folders
		for _, m := range regexp.MustCompile("`(.*?)`").FindAllStringSubmatch(row[1], -1) {
			if !strings.Contains(m[1], "/") {
				files = append(files, m[1])
			}
		}
	}
	for _, file := range files {
		found := there(file)
		for folder := range folders {
			found = found || there(filepath.Join(folder, file))
		}
		if !found {
			missing = append(missing, file)
		}
	}
	return missing
}

func TestPages_Paths(t *testing.T) {
	t.Parallel()
	_, where, found := strings.Cut(read(t, "CONTRIBUTING.md"), "\n## Where to change what\n")
	where, _, _ = strings.Cut(where, "\n## ")
	if missing := missingPaths(read(t, "ARCHITECTURE.md") + where); missing != nil || !found {
		t.Errorf("ARCHITECTURE.md or CONTRIBUTING.md names what is not there: %q", missing)
	}
	page := "| `budget`, `nowhere` | x |\nIn `policy/nothing.go`, `bucket.go` and `docs`, `none.go`; `policy.Load`, `cmd/stagger/internal/NAME`."
	if got, want := missingPaths(page), []string{"policy/nothing.go", "none.go", "nowhere"}; !slices.Equal(got, want) {
		t.Errorf("missing %q; want %q", got, want)
	}
}

// What CONTRIBUTING names in a file is declared there.
func TestPages_Declared(t *testing.T) {
	t.Parallel()
	checked := 0
	places := regexp.MustCompile("((?:`\\w+`(?:, | or ))*`\\w+`) in `([\\w/]+/\\w+\\.go)`")
	for _, m := range places.FindAllStringSubmatch(read(t, "CONTRIBUTING.md"), -1) {
		source := read(t, m[2])
		for _, name := range regexp.MustCompile(`\w+`).FindAllString(strings.ReplaceAll(m[1], " or ", ""), -1) {
			checked++
			if !regexp.MustCompile(`(?m)^(?:func (?:\(.*?\) )?|type |var |const )` + name + `\b`).MatchString(source) {
				t.Errorf("CONTRIBUTING.md: %s is not declared in %s", name, m[2])
			}
		}
	}
	if checked < 15 {
		t.Errorf("%d names; want 15 or more", checked)
	}
}

// names are what pages may name: tests, targets of make, exported names of packages, metrics, and paths.
type names struct{ tests, targets, exported, metrics map[string]bool }

func readNames(t *testing.T) names {
	t.Helper()
	n := names{map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}}
	find := func(in map[string]bool, expression, text string) {
		for _, m := range regexp.MustCompile(expression).FindAllStringSubmatch(text, -1) {
			in[m[1]] = true
		}
	}
	testkit.NoError(t, filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, "_test.go") {
			find(n.tests, `(?m)^func ((?:Test|Benchmark|Fuzz|Example)\w*)\(`, read(t, path))
		}
		return err
	}))
	find(n.targets, `(?m)^([a-z-]+):`, read(t, "Makefile"))
	for line := range strings.Lines(read(t, "tools/api.txt")) {
		if folder, name, ok := strings.Cut(line, ": "); ok {
			find(n.exported, `^(?:const|func|type|var) (\w+)`, name)
			for _, m := range regexp.MustCompile(`^(?:const|func|type|var) (\w+)`).FindAllStringSubmatch(name, -1) {
				n.exported[filepath.Base(folder)+"."+m[1]] = true
			}
		}
	}
	find(n.metrics, "(?m)^\\| `(stagger\\.[a-z_.]+)` \\|", read(t, otelPage)) // whose table a test compares with the code
	return n
}

// missing returns what a page names and isn't there.
func (n names) missing(page string) (list []string) {
	check := func(expression string, there func(string) bool) {
		for _, m := range regexp.MustCompile(expression).FindAllStringSubmatch(page, -1) {
			if !there(m[1]) {
				list = append(list, m[1])
			}
		}
	}
	check(`\b((?:Test|Benchmark|Fuzz|Example)[A-Z]\w*)`, func(name string) bool { return n.tests[name] })
	check("(?:`|\n    )make ([a-z-]+)", func(name string) bool { return n.targets[name] })
	check(`\b((?:interceptor|backoff|budget|policy|testserver|otelstagger|debugpage|admission|elsewhere|observe|repeat|redisbudget)\.[A-Z]\w*)`,
		func(name string) bool { return n.exported[name] })
	check(`\b(stagger\.(?:client|budget|policy)\.[a-z_.]*[a-z])`, func(name string) bool { return n.metrics[name] })
	const folders = `docs|lab|internal|admission|elsewhere|interceptor|policy|backoff|budget|observe|examples|cmd|schema|testserver|tools|\.ci`
	check("`((?:"+folders+")/[\\w./-]+)`", func(path string) bool {
		_, err := os.Stat(path)
		return err == nil || strings.HasSuffix(path, "/NAME") || regexp.MustCompile(`/v\d`).MatchString(path) // a placeholder, a tag
	})
	return list
}

// statements are the sentences of a page, and the rows of its tables, each in one line.
func statements(page string) (list []string) {
	page = regexp.MustCompile(`\n(\s*- |\|)`).ReplaceAllString(prose(page), "\n\n$1")
	for _, block := range regexp.MustCompile(`\n\s*\n`).Split(page, -1) {
		line := strings.Join(strings.Fields(block), " ")
		if strings.HasPrefix(line, "|") {
			list = append(list, line)
			continue
		}
		list = append(list, regexp.MustCompile(`[.;] `).Split(line, -1)...)
	}
	return list
}

// pageFigures are figures that one statement of a page has, which also has the name or the words of what they are about.
type pageFigures struct {
	about   string
	figures []any
}

// wantFigures looks for figures on a page. The words around them are free.
func wantFigures(t *testing.T, path string, list []pageFigures) {
	t.Helper()
	all := statements(read(t, path))
	for _, want := range list {
		if !slices.ContainsFunc(all, want.in) {
			t.Errorf("%s: no statement about %q has the figures %v", path, want.about, want.figures)
		}
	}
}

func (f pageFigures) in(statement string) bool {
	if !strings.Contains(statement, f.about) {
		return false
	}
	for _, figure := range f.figures {
		if !regexp.MustCompile(`(^|[^\d.,])` + regexp.QuoteMeta(fmt.Sprint(figure)) + `($|[^\d.,]|[.,]($|\D))`).MatchString(statement) {
			return false
		}
	}
	return true
}

func TestStatements(t *testing.T) {
	t.Parallel()
	const page = "It keeps 1,000\nof them, and 2.5. Then `x` is 16 MiB:\n\n| a | 3 s |\n| b | 4 s |\n- c: 50 %\n"
	for want, there := range map[*pageFigures]bool{
		{"them", []any{"1,000", 2.5}}: true, {"`x`", []any{"16 MiB"}}: true, {"| b |", []any{"4 s"}}: true, {"c:", []any{50}}: true,
		{"them", []any{100}}: false, {"them", []any{2}}: false, {"`x`", []any{6}}: false, {"| b |", []any{"3 s"}}: false, {"y", nil}: false,
	} {
		if slices.ContainsFunc(statements(page), func(s string) bool { return want.in(s) }) != there {
			t.Errorf("%+v: want %v in %q", want, there, statements(page))
		}
	}
}

// Bounds on pages are those of the code: each row has a line of a Go file, and a figure of a page with what it is about.
func TestPages_Bounds(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ file, code, page, about, figure string }{
		{"internal/accounts/table.go", "TableSize = 1 << 14", "docs/evidence/costs.md", "methods", "16,384"},
		{"internal/accounts/table.go", "TableSize = 1 << 14", "docs/evidence/costs.md", "balances", "16,384"},
		{"internal/accounts/table.go", "TableSize = 1 << 14", "docs/runbook.md", "target and method", "16,384"},
		{"internal/accounts/table.go", "TableSize = 1 << 14", "NOT-HANDLED.md", "target and method", "16,384"},
		{"interceptor/replay.go", "defaultMaxReplayBytes = 16 << 20", "docs/evidence/costs.md", "WithMaxReplayBytes", "16 MiB"},
		{"interceptor/replay.go", "defaultMaxReplayBytes = 16 << 20", "docs/streams.md", "WithMaxReplayBytes", "16 MiB"},
		{"interceptor/replay.go", "maxReplayBytesPerCall = 256 << 10", "docs/evidence/costs.md", "replay", "256 KiB"},
		{"interceptor/replay.go", "maxReplayBytesPerCall = 256 << 10", "docs/streams.md", "`grpc.MaxRetryRPCBufferSize`", "256 KiB"},
		{"internal/policyfile/defaults/defaults.go", "MaxWaiting        = 10_000", "docs/evidence/costs.md", "`maxWaiting`", "10,000"},
		{"internal/policyfile/defaults/defaults.go", "MaxWaiting        = 10_000", "docs/runbook.md", "`maxWaiting`", "10,000"},
		{"internal/policyfile/defaults/defaults.go", "MaxConnectionWait = 3 * time.Second", "docs/runbook.md", "`maxConnectionWait`", "3 s"},
		{"internal/policyfile/defaults/defaults.go", "MaxConnectionWait = 3 * time.Second", "docs/servers-down.md", "`maxConnectionWait`", "3 s"},
		{"interceptor/call_engine.go", "inboundShare = 0.75", "docs/chains.md", "deadline", "three quarters"},
		{
			"interceptor/interceptor.go", "BaseDelay: 250 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 3 * time.Second",
			"docs/set-up.md", "connect", "250 ms to 3 s",
		},
		{"interceptor/interceptor.go", "Time: 6 * time.Minute, Timeout: 20 * time.Second", "docs/works-with.md", "keepalive", "6 minutes, timeout 20 s"},
		{"internal/attempts/attempts.go", "MaxOutage = 5 * time.Second", "docs/chains.md", "outage", "5 s"},
		{"internal/attempts/attempts.go", "MaxOutage = 5 * time.Second", "docs/servers-down.md", "outage", "5 s"},
		{"policy/follow.go", "pollInterval = 2 * time.Second", "docs/policy-file.md", "interceptor.Watch(ctx", "every two seconds"},
		{"tools/ci/growth", "$growth > 2.3", "README.md", "`make growth`", "2.3 MiB"},
	} {
		if !strings.Contains(read(t, row.file), row.code) {
			t.Errorf("%s has no longer %q: correct this row, and what %s says: %q", row.file, row.code, row.page, row.figure)
		}
		wantFigures(t, row.page, []pageFigures{{row.about, []any{row.figure}}})
	}
}

// The report of the shop on its page explains reasons as the shop does.
func TestPages_Shop(t *testing.T) {
	t.Parallel()
	shown := regexp.MustCompile(`times: ([^(]*) \((\w+)\)\n`).FindAllStringSubmatch(read(t, "examples/shop/README.md"), -1)
	for _, m := range shown {
		if meaning, err := explain.MeaningOf(m[2]); meaning.Short != m[1] {
			t.Errorf("examples/shop/README.md explains %s as %q; the shop as %q, %v", m[2], m[1], meaning.Short, err)
		}
	}
	if len(shown) < 3 {
		t.Errorf("%d reasons; want 3 or more", len(shown))
	}
}

// What pages name exists.
func TestPages_Names(t *testing.T) {
	t.Parallel()
	n, texts := readNames(t), pages(t)
	for _, path := range append(examplePages(t), "CONTRIBUTING.md", ".github/SUPPORT.md", "SECURITY.md", "CHANGELOG.md") {
		texts[path] = read(t, path)
	}
	for path, text := range texts {
		if list := n.missing(text); list != nil {
			t.Errorf("%s names what is not there: %q", path, list)
		}
	}
	page := "`TestPages_Names`, TestNothing; `make check`, `make nothing`; interceptor.Watch and budget.Nothing; " +
		"`stagger.client.decisions`, stagger.budget.nothing; `lab/nothing`.\n"
	want := []string{"TestNothing", "nothing", "budget.Nothing", "stagger.budget.nothing", "lab/nothing"}
	if got := n.missing(page); !slices.Equal(got, want) {
		t.Errorf("missing %q; want %q", got, want)
	}
}

// The README's support statement matches go.mod.
func TestPages_Support(t *testing.T) {
	t.Parallel()
	module := read(t, "go.mod")
	needs := regexp.MustCompile(`(?m)^\tgoogle\.golang\.org/grpc v(1\.\d+)`).FindStringSubmatch(module)
	language := regexp.MustCompile(`(?m)^go (1\.\d+)`).FindStringSubmatch(module)
	if needs == nil || language == nil {
		t.Fatal("no versions", needs, language)
	}
	wantFigures(t, "README.md", []pageFigures{{"grpc-go", []any{"Go " + language[1], "grpc-go " + needs[1]}}})
}

// headings are the anchors of a page.
func headings(page string) []string {
	var list []string
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(prose(page), -1) {
		list = append(list, strings.Map(func(r rune) rune {
			switch {
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			case r == ' ':
				return '-'
			default:
				return -1
			}
		}, m[1]))
	}
	return list
}

// prose returns a page without its fenced blocks and the marks of figures.
func prose(page string) string {
	return regexp.MustCompile("(?ms)^```.*?^```$|<!-- cost: [^>]*-->|<!-- / -->").ReplaceAllString(page, "")
}

// Each figure of costs on a page is the one in the tables of lab/compare, which "make compare" writes.
func TestPages_Costs(t *testing.T) {
	t.Parallel()
	texts, quotes := pages(t), 0
	const results = "lab/compare/results.md"
	texts[results] = read(t, results)
	figures := costs(texts[results])
	for path, text := range texts {
		for _, m := range regexp.MustCompile(`<!-- cost: (.*?) -->(.*?)<!-- / -->`).FindAllStringSubmatch(text, -1) {
			if want, ok := figures[m[1]]; m[1] != "host" && (!ok || want != m[2]) {
				t.Errorf("%s: the cost %q is %q; %s has %q: run make compare COMPARE='-write .'", path, m[1], m[2], results, want)
			}
			if path != "docs/evidence/costs.md" {
				quotes++
			}
		}
	}
	if quotes < 5 || len(figures) < 200 {
		t.Errorf("%d quotes of %d figures; want some in README.md and docs/evidence/README.md", quotes, len(figures))
	}
	if got := costs("<!-- a, b -->\nWhat:\n\n| client | × c | time |\n| --- | ---:| --- |\n| d | 1.05 (1–2) | 3 µs |\n<!-- /a, b -->\n"); !maps.Equal(got, map[string]string{
		"a, b; d; × c": "1.05", "a, b; d; time": "3 µs",
	}) {
		t.Errorf("figures %q", got)
	}
}

// The README's promises have the figures of its table, and of the checks.
func TestPages_Promises(t *testing.T) {
	t.Parallel()
	table := stormTables(t, "README.md", "storms", 1, 5)[0]
	of := func(client, storm string) []any {
		t.Helper()
		success, requests, ok := strings.Cut(table[client][storm], ", ")
		if !ok {
			t.Fatalf("the README has no figures of %s, %s", client, storm)
		}
		return []any{success + " %", requests}
	}
	const outage, overload = "all fail for 3 s", "overload"
	wantFigures(t, "README.md", []pageFigures{
		{"all servers fail for 3 s", of("stagger", outage)},
		{"With gRPC's own retries", of("gRPC", outage)},
		{"In an overload", of("stagger", overload)},
		{"The attempt timeouts of go-grpc-middleware", of("go-grpc-middleware", overload)[:1]},
		{"and failsafe-go bring success", of("failsafe-go", overload)[:1]},
		{"checks", []any{len(decision.Checks())}},
	})
	if page := read(t, "docs/evidence/histories.md"); !strings.Contains(page, "\n| stagger, the policy names `Range` | 200 | 0 | ") {
		t.Error("docs/evidence/histories.md has anomalies with stagger")
	}
}

// Where another client succeeds more often in the README's table, or as often with fewer requests, the README says so below it.
func TestPages_PeersWinReadme(t *testing.T) {
	t.Parallel()
	_, below, _ := strings.Cut(read(t, "README.md"), "\n<!-- /storms -->\n")
	table := stormTables(t, "README.md", "storms", 1, 5)[0]
	for client, row := range table {
		for storm, cell := range row {
			success, requests, _ := strings.Cut(cell, ", ")
			own, ownRequests, _ := strings.Cut(table["stagger"][storm], ", ")
			saves := number(t, success) > number(t, own)+0.95
			fewer := number(t, requests) < number(t, ownRequests)-0.015 && number(t, success) > number(t, own)-0.95
			if (saves || fewer) && !strings.Contains(below, "*"+storm+"*") {
				t.Errorf("README.md does not say below its table that others win when *%s*: %s has %s, stagger %s", storm, client, cell, table["stagger"][storm])
			}
		}
	}
}

// Where a peer wins in the tables of all clients, its figure is bold, and the list of what stagger does worse has the storm.
func TestPages_PeersWin(t *testing.T) {
	t.Parallel()
	_, worse, _ := strings.Cut(read(t, "docs/evidence/README.md"), "\n## What stagger does worse\n")
	bold := 0
	for i, table := range stormTables(t, "docs/evidence/storms.md", "all clients", 2, 10) {
		for client, row := range table {
			for storm, cell := range row {
				figure, own := number(t, cell), number(t, table["stagger"][storm])
				wins := client != "no retries" && (i == 0 && figure > own+0.95 || i == 1 && figure < own-0.015)
				if wins != strings.HasPrefix(cell, "**") {
					t.Errorf("%s, %s: %s; stagger has %v: a peer's figure must be bold where it is better, and only there", client, storm, cell, own)
				}
				if !wins {
					continue
				}
				bold++
				if !strings.Contains(worse, "*"+storm+"*") {
					t.Errorf("docs/evidence/README.md does not list *%s*, where %s is better", storm, client)
				}
			}
		}
	}
	if bold < 5 {
		t.Errorf("%d bold figures; want those of an outage that peers outlast", bold)
	}
}

func number(t *testing.T, cell string) float64 {
	t.Helper()
	return testkit.Must(strconv.ParseFloat(strings.Trim(cell, "*"), 64))(t)
}

// stormTables are the tables between marks of a page, by client and storm.
func stormTables(t *testing.T, path, mark string, count, clients int) (tables []map[string]map[string]string) {
	t.Helper()
	_, marked, _ := strings.Cut(read(t, path), "\n<!-- "+mark+" -->\n")
	marked, _, _ = strings.Cut(marked, "\n<!-- /"+mark+" -->\n")
	for _, text := range strings.Split(marked, ":\n\n")[1:] {
		table, columns := map[string]map[string]string{}, []string(nil)
		for line := range strings.Lines(text) {
			cells := strings.Split(strings.Trim(line, "| \n"), " | ")
			switch {
			case !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| ---"):
			case columns == nil:
				columns = cells
			default:
				table[cells[0]] = map[string]string{}
				for i, column := range columns[1:] {
					table[cells[0]][column] = cells[i+1]
				}
			}
		}
		tables = append(tables, table)
	}
	if len(tables) != count || slices.ContainsFunc(tables, func(table map[string]map[string]string) bool { return len(table) != clients }) {
		t.Fatalf("%s: the tables are %v; want %d of %d clients", path, tables, count, clients)
	}
	return tables
}

// The tables of docs/evidence/search.md have the figures of lab/search, those of a peer and of the noise as well.
func TestPages_Search(t *testing.T) {
	t.Parallel()
	page := read(t, "lab/search/results.md")
	row := func(first string) []string {
		_, row, found := strings.Cut(page, "\n| "+first+" | ")
		row, _, _ = strings.Cut(row, " |\n")
		if !found {
			t.Fatalf("lab/search/results.md has no row %q", first)
		}
		return strings.Split(row, " | ")
	}
	// Cells of lab/search/results.md after the first: of a player, and the columns of no retries again, gRPC throttled and default.
	const harm, gain, lost = 3, 6, 12
	chance, throttled, own := row("no retries again"), row("gRPC throttled"), row("default")
	part := func(cell string) string { first, _, _ := strings.Cut(cell, ","); return first }
	_, all, _ := strings.Cut(page, "\nharm in ")
	all, _, _ = strings.Cut(all, " scenarios")
	lines := []string{
		fmt.Sprintf("%% of %s scenarios | %s | %s | %s |", all, chance[harm], throttled[harm], own[harm]),
		fmt.Sprintf("points | %s | %s | %s |", chance[gain], throttled[gain], own[gain]),
		fmt.Sprintf("on average | | %s | %s |", throttled[lost], own[lost]),
	}
	evidence := read(t, "docs/evidence/search.md")
	plain := strings.ReplaceAll(evidence, "**", "")
	for _, first := range []string{
		"loops, limits, crowds, pauses, unequal rates, old clients", "old processes", "an overload that feeds itself",
	} {
		cells := row(first)
		want := pageFigures{fmt.Sprintf("| %s | %s | %s |", part(cells[2]), part(cells[3]), part(cells[6])), []any{cells[0]}}
		if !slices.ContainsFunc(statements(plain), want.in) {
			t.Errorf("docs/evidence/search.md has no row of %s scenarios with %q, which lab/search/results.md has", cells[0], want.about)
		}
	}
	for _, want := range lines {
		if !strings.Contains(plain, want) {
			t.Errorf("docs/evidence/search.md lacks %q, which lab/search/results.md has", want)
		}
	}
	wantFigures(t, "docs/evidence/search.md", []pageFigures{{"chance", []any{own[harm] + " %", chance[harm]}}})
	for _, player := range []string{"default", "gRPC throttled"} {
		_, cut, _ := strings.Cut(evidence, "\n| "+player+" | ")
		cut, _, _ = strings.Cut(cut, " |\n")
		shown, all := strings.Split(cut, " | "), row(player)
		if len(shown) != 7 || len(all) != 14 {
			t.Fatalf("%s: docs/evidence/search.md: %q, lab/search/results.md: %q; want both halves", player, shown, all)
		}
		if shown[0] != all[3] || shown[2] != all[6] || shown[4] != all[9] || shown[5] != all[12] {
			t.Errorf("%s: docs/evidence/search.md has %q, and lab/search/results.md %q: make search writes both", player, shown, all)
		}
	}
}

// costs are the figures of marked tables, by table, row and column.
func costs(page string) map[string]string {
	figures := map[string]string{}
	for _, marked := range regexp.MustCompile(`(?s)<!-- ([^/:\n]+) -->\n(.*?)\n<!-- /`).FindAllStringSubmatch(page, -1) {
		var columns []string
		for line := range strings.Lines(marked[2]) {
			cells := strings.Split(strings.Trim(strings.TrimSpace(line), "| "), " | ")
			switch {
			case !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| ---"):
			case columns == nil:
				columns = cells
			default:
				for i, cell := range cells[1:] {
					figures[marked[1]+"; "+cells[0]+"; "+columns[1+i]], _, _ = strings.Cut(cell, " (")
				}
			}
		}
	}
	return figures
}

// The policy in Go on the page, which is that of policy's ExampleNew, is the file that stands next to it.
func TestPages_PolicyInGo(t *testing.T) {
	t.Parallel()
	_, output, _ := strings.Cut(read(t, "policy/config_example_test.go"), "// Output:\n")
	output, _, _ = strings.Cut(output, "\n}\n")
	inGo := testkit.Must(policy.Parse("retry.json", []byte(strings.ReplaceAll(output, "\t// ", ""))))(t)
	same := func(block string) bool {
		file := testkit.Must(policy.Parse("retry.yaml", []byte(block)))(t)
		found := file.Lookup(getOrder)
		return found != nil && reflect.DeepEqual(compiled.Of(inGo.Lookup(getOrder)), compiled.Of(found))
	}
	if !slices.ContainsFunc(blocks(read(t, "docs/policy-file.md"), "yaml"), same) {
		t.Errorf("docs/policy-file.md has no file with the policy that is there in Go: %+v", compiled.Of(inGo.Lookup(getOrder)))
	}
}
