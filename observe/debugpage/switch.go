// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package debugpage

import (
	"bytes"
	"crypto/rand"
	"crypto/subtle"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/methods"
	"github.com/stagger-go/stagger/policy"
)

// SwitchHandler returns a handler that sets the mode of Retriers at run time ([interceptor.Retrier.SetMode]). It is separate from the page, which is read-only, and does not register
// itself. GET shows the modes. POST sets one, with a form that has these fields:
//
//	mode     ENFORCE, OBSERVE or OFF
//	service  such as acme.orders.v1.OrderService; without it all calls
//
//	curl -H 'X-Stagger-Control: 1' -d mode=OFF localhost:6060/debug/stagger/switch
//
// Browsers get a page, other clients JSON. A POST must carry the token of the page's form, or the header X-Stagger-Control: 1, which
// no page of another site can send. The Retriers notify their observers of each change, which log it.
//
// A reload of the policy file doesn't change modes set by hand: the stricter of both applies, until you set ENFORCE,
// or restart the program.
func (c Config) SwitchHandler(retriers ...*interceptor.Retrier) http.Handler {
	if len(retriers) == 0 || slices.Contains(retriers, nil) {
		return c.guard(http.HandlerFunc(noRetrier))
	}
	return c.protect([]string{http.MethodGet, http.MethodPost}, modes{rand.Text(), retriers})
}

// modes is the handler of the switch.
type modes struct {
	token    string // of the page's form
	retriers []*interceptor.Retrier
}

func (m modes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !made(m.retriers) {
		noRetrier(w, r)
		return
	}
	browser := strings.Contains(r.Header.Get("Accept"), "text/html")
	if r.Method == http.MethodPost {
		if code, err := m.set(w, r); err != nil {
			http.Error(w, "debugpage: "+err.Error(), code)
			return
		}
		if browser {
			w.Header().Set("Location", "?") // the same URL, wherever this is mounted
			w.WriteHeader(http.StatusSeeOther)
			return
		}
	}
	switch {
	case r.URL.RawQuery == "style":
		http.ServeFileFS(w, r, files, "page.css")
	case browser:
		serve(w, "text/html; charset=utf-8", func(b *bytes.Buffer) error {
			return switchPage.Execute(b, map[string]any{"Token": m.token, "Retriers": m.state()})
		})
	default:
		serveJSON(w, func() (any, error) { return m.state(), nil })
	}
}

// set sets the mode of a form, and returns the code for an error. It refuses unknown fields: a misspelled service would otherwise
// set the mode of all calls.
func (m modes) set(w http.ResponseWriter, r *http.Request) (code int, err error) {
	if r.URL.RawQuery != "" {
		return http.StatusBadRequest, errors.New("nothing is set: put the fields into the body, not into the address")
	}
	r.Body = http.MaxBytesReader(w, r.Body, 4<<10)
	if err := r.ParseForm(); err != nil {
		return http.StatusBadRequest, fmt.Errorf("nothing is set: %w", err)
	}
	if r.Header.Get("X-Stagger-Control") != "1" && subtle.ConstantTimeCompare([]byte(r.PostForm.Get("token")), []byte(m.token)) == 0 {
		return http.StatusForbidden, errors.New("nothing is set: the form's token is missing, or of another run of the program: load the page again. " +
			"Other clients send the header X-Stagger-Control: 1")
	}
	r.PostForm.Del("token")
	to, err := switchOf(r.PostForm)
	if err != nil {
		return http.StatusBadRequest, fmt.Errorf("nothing is set: %w", err)
	}
	to.By = caller(r)
	var errs []error
	for _, retrier := range m.retriers {
		if err := retrier.SetMode(to); err != nil {
			errs = append(errs, err)
		}
	}
	if n := len(m.retriers); len(errs) > 0 {
		return http.StatusBadRequest, fmt.Errorf("%d of %d Retriers are set: %w", n-len(errs), n, errors.Join(errs...))
	}
	return 0, nil
}

func switchOf(form url.Values) (interceptor.ModeSwitch, error) {
	var to interceptor.ModeSwitch
	for field, values := range form {
		if len(values) != 1 || !slices.Contains([]string{"mode", "service"}, field) {
			return to, fmt.Errorf("field %.100q: must be mode or service, and be given once", field)
		}
	}
	to.Mode = policy.Mode(strings.ToUpper(form.Get("mode")))
	if !slices.Contains([]policy.Mode{policy.ModeEnforce, policy.ModeObserve, policy.ModeOff}, to.Mode) {
		return to, fmt.Errorf("mode %.100q: must be ENFORCE, OBSERVE or OFF", form.Get("mode"))
	}
	to.Service = strings.TrimSpace(form.Get("service"))
	return to, nil
}

// switchState has the modes of a Retrier.
type switchState struct {
	Number int         `json:"number"` // from 1, in the order of the handler's arguments
	Source string      `json:"source"` // the policy file
	Mode   policy.Mode `json:"mode"`   // the file's mode for all calls; its entries may be stricter
	Set    []setMode   `json:"set"`    // by hand: for all calls, then for services
}

// setMode is a mode set by hand.
type setMode struct {
	Service string      `json:"service"` // "" for all calls
	Mode    policy.Mode `json:"mode"`
	InForce policy.Mode `json:"inForce"`      // the strictest of this, the file's and the one set for all calls; the file's entries may be stricter
	By      string      `json:"by,omitempty"` // who has set it
}

func (m modes) state() []switchState {
	list := make([]switchState, len(m.retriers))
	for i, r := range m.retriers {
		is := r.State()
		set := methods.Describe(is.Policies)
		list[i] = switchState{Number: i + 1, Source: is.Policies.Source(), Mode: set.Mode()}
		for _, s := range is.Switches { // the first is that of all calls
			inForce := policy.StrictestMode(set.Mode(), is.Switches[0].Mode, s.Mode)
			list[i].Set = append(list[i].Set, setMode{Service: s.Service, Mode: s.Mode, InForce: inForce, By: s.By})
		}
	}
	return list
}

//go:embed switch.html
var switchText string

var switchPage = template.Must(template.New("switch").Parse(switchText))
