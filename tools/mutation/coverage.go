// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"

	"golang.org/x/tools/cover"
)

// addUncounted adds to a profile what Go's coverage does not count: constants and variables of a package, the
// conditions of a switch, and that of an if after a function literal. They are covered when the statement is.
func addUncounted(profile string) (err error) {
	profiles, err := cover.ParseProfiles(profile)
	if err != nil {
		return err
	}
	out, err := os.OpenFile(profile, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer out.Close()
	folder := os.Getenv(folderVariable)
	for _, p := range profiles {
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, filepath.Join(folder, filepath.Base(p.FileName)), nil, 0)
		if err != nil {
			return err
		}
		for _, n := range uncounted(files, file, p) {
			from, to := files.Position(n.Pos()), files.Position(n.End())
			if _, err := fmt.Fprintf(out, "%s:%d.%d,%d.%d 1 1\n", p.FileName, from.Line, from.Column, to.Line, to.Column); err != nil {
				return err
			}
		}
	}
	return nil
}

func uncounted(files *token.FileSet, file *ast.File, p *cover.Profile) []ast.Node {
	var found []ast.Node
	for _, d := range file.Decls {
		if d, ok := d.(*ast.GenDecl); ok && (d.Tok == token.CONST || d.Tok == token.VAR) {
			found = append(found, d)
		}
	}
	for n := range ast.Preorder(file) {
		if !covered(p, files.Position(n.Pos())) {
			continue
		}
		switch s := n.(type) {
		case *ast.SwitchStmt:
			for _, clause := range s.Body.List {
				for _, condition := range clause.(*ast.CaseClause).List {
					found = append(found, condition)
				}
			}
		case *ast.IfStmt:
			found = append(found, s.Cond)
		}
	}
	return found
}

func covered(p *cover.Profile, at token.Position) bool {
	for _, b := range p.Blocks {
		after := at.Line > b.StartLine || at.Line == b.StartLine && at.Column >= b.StartCol
		before := at.Line < b.EndLine || at.Line == b.EndLine && at.Column < b.EndCol
		if b.Count > 0 && after && before {
			return true
		}
	}
	return false
}
