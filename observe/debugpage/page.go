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
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/stagger-go/stagger/interceptor"
)

//go:embed page.html page.css page.js icon.svg
var files embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"number": number,
}).ParseFS(files, "page.html"))

// page serves the page and its other files.
type page struct {
	config    Config
	retriers  []*interceptor.Retrier
	logs      []*decisionLog // of each Retrier
	history   *history
	listeners chan struct{} // one element per live connection
}

// newPage returns a page that samples budgets and records decisions as long as it is reachable.
func newPage(c Config, retriers []*interceptor.Retrier) *page {
	p := &page{config: c, retriers: retriers, history: newHistory(retriers), listeners: make(chan struct{}, maxListeners)}
	for _, r := range retriers {
		log := new(decisionLog)
		p.logs = append(p.logs, log)
		runtime.AddCleanup(p, func(stop func()) { stop() }, r.AddObserver(log.observer()))
	}
	runtime.AddCleanup(p, func(h *history) { h.stopped.Store(true) }, p.history)
	return p
}

// ServeHTTP implements [http.Handler]. The response depends only on the last element of the path, so that the page
// can be mounted anywhere.
func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !made(p.retriers) {
		noRetrier(w, r)
		return
	}
	_, name := path.Split(r.URL.Path)
	switch name {
	case "":
		serveHTML(w, "page", func() (any, error) { return p.content(r) })
	case "state.json":
		serveJSON(w, func() (any, error) { return p.states(r.URL.Query().Get("method")), nil })
	case "explain":
		serveHTML(w, "explain", func() (any, error) { return p.explanation(r) })
	case "events":
		p.serveEvents(w, r)
	case "page.css", "page.js", "icon.svg":
		http.ServeFileFS(w, r, files, name)
	default:
		http.NotFound(w, r)
	}
}

// thisProcess names the program on the page.
var thisProcess = func() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	name, _ := os.Executable() // "" has no name
	return fmt.Sprintf("%s on %s, process %d, since %s UTC", filepath.Base(name), host, os.Getpid(), time.Now().UTC().Format(time.DateTime))
}()

// content is the data of the page.
type content struct {
	Sections []section
	Method   string   // of the shown decisions; "" for all
	Methods  []string // to choose from
	Several  bool     // there are several Retriers
	Process  string
}

// section is a part of the page with live updates.
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

// sections returns the parts of the page with live updates.
func (p *page) sections(method string) (list []section, err error) {
	for i := range p.retriers {
		s := p.state(i, method)
		for _, name := range []string{"policy", "running", "backends", "budgets", "admission", "decisions"} {
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

// methods returns the methods of policies and of recorded decisions, sorted.
func (p *page) methods() (list []string) {
	for i, r := range p.retriers {
		for _, p := range r.State().Policies.Policies() {
			if !strings.HasSuffix(p.Name(), "/") {
				list = append(list, p.Name())
			}
		}
		for _, d := range p.logs[i].all() {
			list = append(list, d.Method)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// serveHTML executes a template, and serves the complete result.
func serveHTML(w http.ResponseWriter, name string, content func() (any, error)) {
	serve(w, "text/html; charset=utf-8", func(b *bytes.Buffer) error {
		c, err := content()
		if err != nil {
			return err
		}
		return templates.ExecuteTemplate(b, name, c)
	})
}

func serveJSON(w http.ResponseWriter, content func() (any, error)) {
	serve(w, "application/json", func(b *bytes.Buffer) error {
		c, err := content()
		if err != nil {
			return err
		}
		e := json.NewEncoder(b)
		e.SetIndent("", "  ")
		return e.Encode(c)
	})
}

// requestError is an error in the request.
type requestError struct{ error }

// serve responds with the output of write, or with its error.
func serve(w http.ResponseWriter, kind string, write func(*bytes.Buffer) error) {
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
	_, _ = w.Write(b.Bytes()) // a browser that is gone needs no response
}

// safely converts a panic of f to an error: a program's own budget, classifier or message may panic when it is read.
func safely(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("what is to be shown panics: %v", v)
		}
	}()
	return f()
}

// number formats a number with at most two decimals, or ∞ for nil.
func number(x *float64) string {
	if x == nil {
		return "∞"
	}
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", *x), "0"), ".")
}
