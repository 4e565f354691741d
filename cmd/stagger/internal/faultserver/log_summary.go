// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/codename"
	"github.com/stagger-go/stagger/internal/tools/report"
	"github.com/stagger-go/stagger/internal/tools/report/terminal"
)

// summary counts attempts by method.
type summary map[string]*count

// count is what was seen of a method.
type count struct {
	Method    string         `json:"method"`
	Attempts  int            `json:"attempts"`
	Retries   int            `json:"retries"`   // attempts that say that they are some
	Cancelled int            `json:"cancelled"` // given up by the client
	Codes     map[string]int `json:"codes"`
}

func (s summary) add(method string, code codes.Code, retry, cancelled bool) {
	c := s[method]
	if c == nil {
		c = &count{Method: method, Codes: map[string]int{}}
		s[method] = c
	}
	c.Attempts++
	if retry {
		c.Retries++
	}
	if cancelled {
		c.Cancelled++
	}
	c.Codes[codename.Of(code)]++
}

// sorted are the counts by method.
func (s summary) sorted() []*count {
	list := make([]*count, 0, len(s))
	for _, c := range s {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b *count) int { return strings.Compare(a.Method, b.Method) })
	return list
}

func (s summary) table() string {
	if len(s) == 0 {
		return "no attempts\n"
	}
	shown := report.Table{Columns: []string{"method", "attempts", "retries", "given up", "codes"}}
	for _, c := range s.sorted() {
		shown.Rows = append(shown.Rows, []string{
			printable(c.Method), strconv.Itoa(c.Attempts), strconv.Itoa(c.Retries), strconv.Itoa(c.Cancelled), c.codes(),
		})
	}
	return terminal.Table(shown, terminal.Style{}, "") + "\n"
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
