// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package debugpage

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"path"
	"runtime"
	"slices"
	"strings"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/tools/explain"
)

//go:embed page.html page.css page.js icon.svg
var files embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"short":  explain.Short,
	"number": number,
}).ParseFS(files, "page.html"))

// page serves the page and what stands beside it.
type page struct {
	config    Config
	retriers  []*interceptor.Retrier
	logs      []*decisionLog // of each Retrier
	history   *history
	listeners chan struct{} // one in it for each live connection
}

// newPage samples the budgets and keeps decisions for as long as somebody holds the page.
func newPage(c Config, retriers []*interceptor.Retrier) *page {
	p := &page{config: c, retriers: retriers, history: newHistory(retriers), listeners: make(chan struct{}, maxListeners)}
	for _, r := range retriers {
		log := new(decisionLog)
		p.logs = append(p.logs, log)
		runtime.AddCleanup(p, func(stop func()) { stop() }, r.Observe(log.observer()))
	}
	runtime.AddCleanup(p, func(h *history) { h.stopped.Store(true) }, p.history)
	return p
}

// ServeHTTP implements [http.Handler]. What it serves depends on the last element of the path alone, so that the page
// may be mounted anywhere.
func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, name := path.Split(r.URL.Path)
	switch name {
	case "":
		p.serveHTML(w, "page", func() (any, error) { return p.content(r) })
	case "state.json":
		p.serveJSON(w, func() (any, error) { return p.states(r.URL.Query().Get("method")), nil })
	case "explain":
		p.serveHTML(w, "explain", func() (any, error) { return p.explanation(r) })
	case "explain.json":
		p.serveJSON(w, func() (any, error) { return p.explanationJSON(r) })
	case "events":
		p.serveEvents(w, r)
	case "page.css", "page.js", "icon.svg":
		http.ServeFileFS(w, r, files, name)
	default:
		http.NotFound(w, r)
	}
}

// content is what the page is made of.
type content struct {
	Sections []section
	Method   string   // that the decisions are of; "" for all
	Methods  []string // to choose from
	Several  bool     // Retriers
	Process  process
}

// section is a part of the page that changes by itself.
type section struct {
	ID   string        `json:"id"`
	HTML template.HTML `json:"html"`
}

func (p *page) content(r *http.Request) (content, error) {
	c := content{Method: r.URL.Query().Get("method"), Methods: p.methods(), Several: len(p.retriers) > 1, Process: thisProcess}
	var err error
	c.Sections, err = p.sections(c.Method)
	return c, err
}

// sections are the parts of the page that change by themselves.
func (p *page) sections(method string) (list []section, err error) {
	for i := range p.retriers {
		s := p.state(i, method)
		for _, name := range []string{"policy", "budgets", "admission", "counts", "decisions"} {
			var b bytes.Buffer
			if err := templates.ExecuteTemplate(&b, name, s); err != nil {
				return nil, err
			}
			list = append(list, section{fmt.Sprint(name, "-", s.Number), template.HTML(b.String())})
		}
	}
	return list, nil
}

func (p *page) states(method string) []retrierState {
	list := make([]retrierState, len(p.retriers))
	for i := range p.retriers {
		list[i] = p.state(i, method)
	}
	return list
}

// methods are those that policies name, and those that were decided about, sorted.
func (p *page) methods() (list []string) {
	for i, r := range p.retriers {
		for _, entry := range r.State().Policies.Policies() {
			if n := entry.Name(); !strings.HasSuffix(n, "/") {
				list = append(list, n)
			}
		}
		for _, d := range p.logs[i].all() {
			list = append(list, d.Method)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// serveHTML serves a template once it is whole.
func (p *page) serveHTML(w http.ResponseWriter, name string, content func() (any, error)) {
	p.serve(w, "text/html; charset=utf-8", func(b *bytes.Buffer) error {
		c, err := content()
		if err != nil {
			return err
		}
		return templates.ExecuteTemplate(b, name, c)
	})
}

func (p *page) serveJSON(w http.ResponseWriter, content func() (any, error)) {
	p.serve(w, "application/json", func(b *bytes.Buffer) error {
		c, err := content()
		if err != nil {
			return err
		}
		e := json.NewEncoder(b)
		e.SetIndent("", "  ")
		return e.Encode(c)
	})
}

// requestError is an error of who asks.
type requestError struct{ error }

// serve answers with what write writes, or why it cannot.
func (p *page) serve(w http.ResponseWriter, kind string, write func(*bytes.Buffer) error) {
	var b bytes.Buffer
	err := safely(func() error { return write(&b) })
	if err != nil {
		code := http.StatusInternalServerError
		if _, ok := errors.AsType[requestError](err); ok {
			code = http.StatusBadRequest
		}
		http.Error(w, "debugpage: "+err.Error(), code)
		return
	}
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write(b.Bytes()) // who has gone needs no answer
}

// safely makes an error of a panic: a budget, a classifier or a message of the program's own may panic when it is read.
func safely(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("what is to be shown panics: %v", v)
		}
	}()
	return f()
}

// number is at most two digits after the point, or ∞ for nil.
func number(x *float64) string {
	if x == nil {
		return "∞"
	}
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", *x), "0"), ".")
}
