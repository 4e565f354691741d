// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package pages_test

import (
	"bytes"
	"context"
	"go/ast"
	"go/doc"
	"go/format"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/modfile"

	"github.com/stagger-go/stagger/internal/testkit"
)

// publicPackages are the folders of the public packages, by the folder of their module.
var publicPackages = map[string][]string{
	".": {
		"admission", "backoff", "budget", "elsewhere", "interceptor", "observe", "observe/debugpage", "observe/repeat", "policy", "testserver",
	},
	"budget/redisbudget":  {"budget/redisbudget"},
	"observe/otelstagger": {"observe/otelstagger"},
}

// program is an example as pkg.go.dev shows it: a program of its own.
type program struct {
	*doc.Example

	name string // of the folder that it is written to
	text []byte
}

// programs returns the examples of packages, sorted. An example that isn't a program uses a name of another file. pkg.go.dev has the same
// rule (go/doc): it then shows no button that runs the example.
func programs(t *testing.T, folders []string) (list []program) {
	t.Helper()
	for _, folder := range folders {
		fset := token.NewFileSet()
		var files []*ast.File
		for _, path := range testkit.Must(filepath.Glob(folder + "/*_test.go"))(t) {
			files = append(files, testkit.Must(parser.ParseFile(fset, path, nil, parser.ParseComments))(t))
		}
		for _, example := range doc.Examples(files...) {
			p := program{Example: example, name: strings.ReplaceAll(folder, "/", "_") + "_Example" + example.Name}
			if example.Play == nil {
				t.Errorf("%s uses a name of another file", p.name)
				continue
			}
			var text bytes.Buffer
			testkit.NoError(t, format.Node(&text, fset, example.Play))
			p.text = text.Bytes()
			list = append(list, p)
		}
	}
	return list
}

// userModule makes a module that requires the module in a folder, as that of a user does, and the modules that its tests require.
func userModule(t *testing.T, of string) (folder string) {
	t.Helper()
	file := testkit.Must(modfile.Parse("go.mod", []byte(read(t, filepath.Join(of, "go.mod"))), nil))(t)
	path := file.Module.Mod.Path
	testkit.NoError(t, file.AddModuleStmt("example.com/play"))
	for _, replaced := range file.Replace {
		to := testkit.Must(filepath.Abs(filepath.Join(of, replaced.New.Path)))(t)
		testkit.NoError(t, file.AddReplace(replaced.Old.Path, "", to, ""))
	}
	testkit.NoError(t, file.AddRequire(path, "v0.0.0"))
	testkit.NoError(t, file.AddReplace(path, "", testkit.Must(filepath.Abs(of))(t), ""))
	folder = t.TempDir()
	testkit.NoError(t, os.WriteFile(filepath.Join(folder, "go.mod"), testkit.Must(file.Format())(t), 0o600))
	testkit.NoError(t, os.WriteFile(filepath.Join(folder, "go.sum"), []byte(read(t, filepath.Join(of, "go.sum"))), 0o600))
	return folder
}

// runGo runs the go command in a folder, and returns what it prints.
func runGo(t *testing.T, folder string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", args...)
	command.Dir = folder
	command.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	var errors strings.Builder
	command.Stderr = &errors
	out, err := command.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, &errors)
	}
	return string(out)
}

// Each example of a public package compiles as the program that pkg.go.dev shows.
func TestExamples_Compile(t *testing.T) {
	t.Parallel()
	examples := 0
	for module, folders := range publicPackages {
		list := programs(t, folders)
		examples += len(list)
		for name, errs := range compile(t, module, list) {
			for _, err := range errs {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if examples < 75 {
		t.Errorf("%d examples; want 75 or more", examples)
	}
}

// compile returns the errors of programs that don't compile in a module of their own, by their names.
func compile(t *testing.T, module string, list []program) map[string][]error {
	t.Helper()
	fset := token.NewFileSet()
	files, imported := map[string]*ast.File{}, []string{}
	for _, p := range list {
		file := testkit.Must(parser.ParseFile(fset, p.name, p.text, 0))(t)
		files[p.name] = file
		for _, spec := range file.Imports {
			imported = append(imported, strings.Trim(spec.Path.Value, `"`))
		}
	}
	slices.Sort(imported)
	listed := runGo(t, userModule(t, module), slices.Concat([]string{"list", "-deps", "-export", "-f", "{{.ImportPath}} {{.Export}}"}, slices.Compact(imported))...)
	exports := map[string]string{}
	for line := range strings.Lines(listed) {
		path, export, _ := strings.Cut(strings.TrimSpace(line), " ")
		exports[path] = export
	}
	from := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	errs := map[string][]error{}
	for name, file := range files {
		config := types.Config{Importer: from, Error: func(err error) { errs[name] = append(errs[name], err) }}
		_, _ = config.Check("main", fset, []*ast.File{file}, nil) // Error has the errors
		if slices.ContainsFunc(file.Imports, func(s *ast.ImportSpec) bool { return strings.Contains(s.Path.Value, "/internal/") }) {
			t.Errorf("%s imports an internal package", name)
		}
	}
	return errs
}

// A program that doesn't compile is noticed.
func TestExamples_CompileErrors(t *testing.T) {
	t.Parallel()
	wrong := program{name: "wrong", text: []byte("package main\n\nimport \"fmt\"\n\nfunc main() { unused := quiet }\n")}
	errs := compile(t, "budget/redisbudget", []program{wrong})["wrong"]
	if len(errs) != 3 {
		t.Errorf("%q; want the import and the variable that are not used, and a name that isn't declared", errs)
	}
}

// Each example of a public package prints what its comment says, as the program that pkg.go.dev shows, in an empty folder.
func TestExamples_Run(t *testing.T) {
	t.Parallel()
	testkit.Long(t) // links each program
	for module, folders := range publicPackages {
		folder := userModule(t, module)
		var list []program
		for _, p := range programs(t, folders) {
			if p.Output == "" && !p.EmptyOutput {
				continue // it is only shown
			}
			list = append(list, p)
			testkit.NoError(t, os.Mkdir(filepath.Join(folder, p.name), 0o700))
			testkit.NoError(t, os.WriteFile(filepath.Join(folder, p.name, "main.go"), p.text, 0o600))
		}
		for some := range slices.Chunk(list, 10) { // a program has some 10 MB
			bin := t.TempDir()
			args := []string{"build", "-trimpath", "-ldflags=-s -w", "-o", bin + string(filepath.Separator)}
			for _, p := range some {
				args = append(args, "./"+p.name)
			}
			runGo(t, folder, args...)
			for _, p := range some {
				p.run(t, filepath.Join(bin, p.name))
			}
			testkit.NoError(t, os.RemoveAll(bin))
		}
	}
}

// run runs the program, which is built, and compares what it prints.
func (p program) run(t *testing.T, built string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	command := exec.CommandContext(ctx, built)
	command.Dir = t.TempDir()
	out, err := command.Output()
	got, want := strings.TrimSpace(string(out)), strings.TrimSpace(p.Output)
	if p.Unordered {
		got, want = sortedLines(got), sortedLines(want)
	}
	if err != nil || got != want {
		t.Errorf("%s: %v; it prints\n%s\nwant\n%s", p.name, err, got, want)
	}
}

func sortedLines(text string) string {
	return strings.Join(slices.Sorted(strings.SplitSeq(text, "\n")), "\n")
}
