// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package debugpage

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/policy"
)

// Switch returns a handler that sets the mode of Retriers at run time ([interceptor.Retrier.Switch]). It is separate from the page, which is read-only, and does not register
// itself. GET shows the modes. POST sets one, with a form that has these fields:
//
//	mode     ENFORCE, OBSERVE or OFF
//	percent  of the calls, 0 to 100; without it 100
//	service  such as acme.orders.v1.OrderService; without it all calls
//
//	curl -d mode=OFF localhost:6060/debug/stagger/switch
//
// Browsers get a page, other clients JSON. Requests from pages of other origins are refused
// ([http.CrossOriginProtection]). The Retriers notify their observers of each change, which log it.
//
// A reload of the policy file doesn't change modes set by hand: the stricter of both applies, until you set ENFORCE and 100,
// or restart the program.
func (c Config) Switch(retriers ...*interceptor.Retrier) http.Handler {
	if len(retriers) == 0 || slices.Contains(retriers, nil) {
		return c.guard(http.HandlerFunc(noRetrier))
	}
	return c.protect([]string{http.MethodGet, http.MethodPost}, modes{http.NewCrossOriginProtection(), retriers})
}

// modes is the handler of the switch.
type modes struct {
	origins  *http.CrossOriginProtection
	retriers []*interceptor.Retrier
}

func (m modes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := m.origins.Check(r); err != nil {
		http.Error(w, "debugpage: "+err.Error(), http.StatusForbidden)
		return
	}
	browser := strings.Contains(r.Header.Get("Accept"), "text/html")
	if r.Method == http.MethodPost {
		if err := m.set(w, r); err != nil {
			http.Error(w, "debugpage: nothing is set: "+err.Error(), http.StatusBadRequest)
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
		m.show(w)
	default:
		m.write(w)
	}
}

// set sets the mode of a form. It refuses unknown fields: a misspelled service would otherwise set the mode of all calls.
func (m modes) set(w http.ResponseWriter, r *http.Request) error {
	if r.URL.RawQuery != "" {
		return errors.New("the fields must stand in the body and not in the address")
	}
	r.Body = http.MaxBytesReader(w, r.Body, 4<<10)
	if err := r.ParseForm(); err != nil {
		return err
	}
	to, err := switchOf(r.PostForm)
	if err != nil {
		return err
	}
	for _, retrier := range m.retriers {
		if err := retrier.Switch(to); err != nil {
			return err
		}
	}
	return nil
}

func switchOf(form url.Values) (interceptor.Switch, error) {
	to := interceptor.Switch{Percent: 100}
	for field, values := range form {
		if len(values) != 1 || !slices.Contains([]string{"mode", "percent", "service"}, field) {
			return to, fmt.Errorf("field %.100q: must be mode, percent or service, and stand once", field)
		}
	}
	to.Mode = policy.Mode(strings.ToUpper(form.Get("mode")))
	if !slices.Contains([]policy.Mode{policy.ModeEnforce, policy.ModeObserve, policy.ModeOff}, to.Mode) {
		return to, fmt.Errorf("mode %.100q: must be ENFORCE, OBSERVE or OFF", form.Get("mode"))
	}
	if percent := form.Get("percent"); percent != "" {
		var err error
		if to.Percent, err = strconv.ParseFloat(percent, 64); err != nil {
			return to, fmt.Errorf("percent %.100q: must be 0 to 100", percent)
		}
		if to.Percent == 0 { // 0 means 100 in Go
			to.Mode = policy.ModeOff
		}
	}
	to.Service = strings.TrimSpace(form.Get("service"))
	return to, nil
}

// switchState has the modes of a Retrier.
type switchState struct {
	Number  int         `json:"number"` // from 1, in the order of the handler's arguments
	Source  string      `json:"source"` // the policy file
	Mode    policy.Mode `json:"mode"`   // the file's mode for all calls; its entries may be stricter
	Percent float64     `json:"percent"`
	Set     []setMode   `json:"set"` // by hand: for all calls, then for services
}

// setMode is a mode set by hand.
type setMode struct {
	Service string      `json:"service"` // "" for all calls
	Mode    policy.Mode `json:"mode"`
	Percent float64     `json:"percent"`
}

func (m modes) state() []switchState {
	list := make([]switchState, len(m.retriers))
	for i, r := range m.retriers {
		is := r.State()
		set := decision.Compile(is.Policies)
		list[i] = switchState{Number: i + 1, Source: is.Policies.Source(), Mode: set.Mode(), Percent: set.Percent()}
		for _, s := range is.Switches {
			list[i].Set = append(list[i].Set, setMode(s))
		}
	}
	return list
}

//go:embed switch.html
var switchText string

var switchPage = template.Must(template.New("switch").Parse(switchText))

func (m modes) write(w http.ResponseWriter) {
	data, err := json.Marshal(m.state())
	if err != nil {
		http.Error(w, "debugpage: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(data, '\n')) // a client that is gone needs no answer
}

func (m modes) show(w http.ResponseWriter) {
	var b bytes.Buffer
	if err := switchPage.Execute(&b, m.state()); err != nil {
		http.Error(w, "debugpage: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = b.WriteTo(w) // a browser that is gone needs no answer
}
