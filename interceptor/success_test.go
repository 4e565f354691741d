// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package interceptor_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stagger-go/stagger/internal/tools/must"
)

const module = "github.com/stagger-go/stagger/"

// TestSuccess_Functions counts our functions on the way of a call that succeeds at once, by the coverage of a thousand calls over a
// connection.
func TestSuccess_Functions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	run := func(name string, args ...string) string {
		out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
	linked := strings.Fields(run("go", "list", "-deps", "-f", `{{with .Module}}{{if .Main}}{{$.ImportPath}}{{end}}{{end}}`, "."))
	program, profile := filepath.Join(dir, "success"), filepath.Join(dir, "profile")
	run("go", "build", "-cover", "-covermode=atomic", "-coverpkg="+strings.Join(append(linked, "./testdata/success"), ","), "-o", program, "./testdata/success")
	run(program, dir)
	run("go", "tool", "covdata", "textfmt", "-i="+dir, "-o="+profile)
	ran := functionsOf(t, string(must.Get(os.ReadFile(profile))(t)), 1000)
	if len(ran) < 10 || len(ran) > 30 {
		t.Errorf("%d functions; want 10 to 30:\n%s", len(ran), strings.Join(ran, "\n"))
	}
	for _, f := range ran {
		if lines := must.Get(strconv.Atoi(f[strings.LastIndexByte(f, ' ')+1:]))(t); lines > 60 {
			t.Errorf("%s lines", f)
		}
	}
}

// functionsOf returns the functions with a block that ran at least so many times, and their lines.
func functionsOf(t *testing.T, profile string, least int) (ran []string) {
	t.Helper()
	files := map[string]*ast.File{}
	set := gotoken.NewFileSet()
	for _, block := range regexp.MustCompile(`(?m)^`+module+`(\S+):(\d+)\.\d+,\S+ \d+ (\d+)$`).FindAllStringSubmatch(profile, -1) {
		name, line, count := block[1], must.Get(strconv.Atoi(block[2]))(t), must.Get(strconv.Atoi(block[3]))(t)
		if count < least || strings.Contains(name, "/testdata/") {
			continue
		}
		if files[name] == nil {
			files[name] = must.Get(parser.ParseFile(set, "../"+name, nil, 0))(t)
		}
		for _, d := range files[name].Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			from, to := set.Position(f.Pos()).Line, set.Position(f.End()).Line
			if entry := fmt.Sprintf("%s %s %d", name, f.Name.Name, to-from+1); from <= line && line <= to && !slices.Contains(ran, entry) {
				ran = append(ran, entry)
			}
		}
	}
	return ran
}
