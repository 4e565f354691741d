// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// readSurvivors reads the list of changes that need not fail a test: a line is a place, " -- " and a reason.
func readSurvivors(path string) (map[string]bool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	explained := make(map[string]bool)
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		where, why, ok := strings.Cut(line, " -- ")
		if !ok || why == "" {
			return nil, fmt.Errorf("%s:%d: %q has no reason; want: folder/file.go function TYPE expression -- reason", path, n, line)
		}
		explained[where] = true
	}
	return explained, nil
}

// report prints the score and what has survived. Its error says how many of those survivors.txt does not explain.
func (t target) report(mutants []mutant, explained map[string]bool) error {
	count := make(map[string]int)
	unexplained, gone := 0, make(map[string]bool)
	for where := range explained {
		if strings.HasPrefix(where, t.folder+"/") {
			gone[where] = true
		}
	}
	var lines []string
	for _, m := range mutants {
		count[m.Status]++
		if m.Status != "LIVED" && m.Status != "NOT COVERED" {
			continue
		}
		where, err := t.place(m)
		if err != nil {
			return err
		}
		delete(gone, where)
		if explained[where] {
			count["explained"]++
			continue
		}
		unexplained++
		lines = append(lines, fmt.Sprintf("%s:%d:%d: %s: %s", filepath.Join(t.folder, m.file), m.Line, m.Column, strings.ToLower(m.Status), where))
	}
	fmt.Printf("%s: %d killed; %d lived and %d not covered, of which %d explained; %d do not compile\n", t.folder,
		count["KILLED"]+count["TIMED OUT"], count["LIVED"], count["NOT COVERED"], count["explained"], count["NOT VIABLE"])
	for _, line := range lines {
		fmt.Println(line)
	}
	for _, where := range slices.Sorted(maps.Keys(gone)) {
		fmt.Println("survivors.txt: no longer survives:", where)
	}
	if unexplained > 0 {
		return fmt.Errorf("%s: %d changes survive that survivors.txt does not explain", t.folder, unexplained)
	}
	return nil
}

// place names a change so that the name outlives a change of lines: file, function, kind, and the changed expression.
func (t target) place(m mutant) (string, error) {
	files := token.NewFileSet()
	path := filepath.Join(t.folder, m.file)
	file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
	if err != nil {
		return "", err
	}
	function, node := "-", ast.Node(file)
	for n := range ast.Preorder(file) {
		if f, ok := n.(*ast.FuncDecl); ok && contains(files, n, m) {
			function = f.Name.Name
			if f.Recv != nil {
				function = receiver(f.Recv.List[0].Type) + "." + function
			}
		}
		if at := tokenPos(n); at.IsValid() {
			if p := files.Position(at); p.Line == m.Line && p.Column == m.Column {
				node = n
			}
		}
	}
	if node == ast.Node(file) {
		return "", fmt.Errorf("%s:%d:%d: gremlins changes nothing here", path, m.Line, m.Column)
	}
	var text bytes.Buffer
	if err := format.Node(&text, files, node); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s %s %s %s", path, function, m.Type, strings.Join(strings.Fields(text.String()), " ")), nil
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	default:
		return "?"
	}
}

func contains(files *token.FileSet, n ast.Node, m mutant) bool {
	return files.Position(n.Pos()).Line <= m.Line && m.Line <= files.Position(n.End()).Line
}

// tokenPos is where gremlins changes n.
func tokenPos(n ast.Node) token.Pos {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		return n.OpPos
	case *ast.UnaryExpr:
		return n.OpPos
	case *ast.AssignStmt:
		return n.TokPos
	case *ast.IncDecStmt:
		return n.TokPos
	case *ast.BranchStmt:
		return n.TokPos
	default:
		return token.NoPos
	}
}
