// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/cmd/stagger/internal/control"
)

// tally counts attempts by method.
type tally map[string]*count

// count is what was seen of a method.
type count struct {
	Method    string         `json:"method"`
	Attempts  int            `json:"attempts"`
	Retries   int            `json:"retries"`   // attempts that say that they are some
	Cancelled int            `json:"cancelled"` // given up by the client
	Codes     map[string]int `json:"codes"`
}

func (t tally) add(method string, code codes.Code, retry, cancelled bool) {
	c := t[method]
	if c == nil {
		c = &count{Method: method, Codes: map[string]int{}}
		t[method] = c
	}
	c.Attempts++
	if retry {
		c.Retries++
	}
	if cancelled {
		c.Cancelled++
	}
	c.Codes[control.CodeName(code)]++
}

// sorted is by method.
func (t tally) sorted() []*count {
	list := make([]*count, 0, len(t))
	for _, c := range t {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b *count) int { return strings.Compare(a.Method, b.Method) })
	return list
}

func (t tally) table() string {
	if len(t) == 0 {
		return "no attempts\n"
	}
	w := table.NewWriter()
	w.SetStyle(table.StyleLight)
	w.AppendHeader(table.Row{"method", "attempts", "retries", "given up", "codes"})
	for _, c := range t.sorted() {
		w.AppendRow(table.Row{printable(c.Method), c.Attempts, c.Retries, c.Cancelled, c.codes()})
	}
	return w.Render() + "\n"
}

// codes are the most frequent first.
func (c *count) codes() string {
	names := make([]string, 0, len(c.Codes))
	for name := range c.Codes {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(c.Codes[b], c.Codes[a]), strings.Compare(a, b))
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%s %d", name, c.Codes[name])
	}
	return strings.Join(names, ", ")
}
