// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Command prose reads Markdown files and prints each sentence that breaks a rule of plain English, with its file and line.
// It skips headings, questions, code and quotations.
package main

import (
	"bytes"
	"fmt"
	"log"
	"os"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("prose: ")
	found := 0
	for _, path := range os.Args[1:] {
		source, err := os.ReadFile(path)
		if err != nil {
			log.Fatal(err)
		}
		for _, s := range sentences(source) {
			for _, advice := range check(s.text) {
				found++
				fmt.Printf("%s:%d: %s\n\t%s\n", path, s.line, advice, s.text)
			}
		}
	}
	if found > 0 {
		log.Fatalf("%d findings", found)
	}
}

type sentence struct {
	text string
	line int
}

// sentences lists those of all paragraphs, list items and table cells outside of quotations.
func sentences(source []byte) (list []sentence) {
	markdown := goldmark.New(goldmark.WithExtensions(extension.Table))
	root := markdown.Parser().Parse(text.NewReader(source))
	err := ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n.Kind() {
		case ast.KindHeading, extast.KindTableHeader, ast.KindBlockquote, ast.KindFencedCodeBlock, ast.KindCodeBlock, ast.KindHTMLBlock:
			return ast.WalkSkipChildren, nil
		case ast.KindParagraph, ast.KindTextBlock, extast.KindTableCell:
			b := block{source: source}
			b.read(n)
			list = append(list, b.sentences()...)
			return ast.WalkSkipChildren, nil
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		log.Fatal(err)
	}
	return list
}

// block is the text of a paragraph, with the place in the source of each of its bytes.
type block struct {
	source []byte
	text   []byte
	places []int
}

func (b *block) add(s []byte, place int) {
	for i, c := range s {
		b.text = append(b.text, c)
		b.places = append(b.places, place+i)
	}
}

func (b *block) read(parent ast.Node) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Text:
			b.add(n.Segment.Value(b.source), n.Segment.Start)
			if n.SoftLineBreak() || n.HardLineBreak() {
				b.add([]byte(" "), n.Segment.Stop)
			}
		case *ast.CodeSpan:
			// Code is a noun of the sentence, and none of its words.
			if t, ok := n.FirstChild().(*ast.Text); ok {
				b.add([]byte("`…`"), t.Segment.Start)
			}
		case *ast.Image, *ast.RawHTML, *ast.AutoLink:
		default:
			b.read(n)
		}
	}
}

func (b *block) sentences() (list []sentence) {
	start := 0
	add := func(end int) {
		if s := bytes.TrimSpace(b.text[start:end]); len(s) > 0 {
			list = append(list, sentence{text: string(s), line: 1 + bytes.Count(b.source[:b.places[start]], []byte("\n"))})
		}
		start = end
	}
	for i := range b.text {
		ends := bytes.IndexByte([]byte(".?!"), b.text[i]) >= 0
		if ends && (i+1 == len(b.text) || b.text[i+1] == ' ') {
			add(i + 1)
		}
	}
	add(len(b.text))
	return list
}
