// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package debugpage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
)

const here, pod, away = "127.0.0.1:6060", "10.0.0.7:6060", "192.0.2.7:4242"

// ask requests the switch, from one address to another.
func ask(h http.Handler, from, to, method, form string, change func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://localhost:6060/switch", strings.NewReader(form))
	local, _ := net.ResolveTCPAddr("tcp", to)
	r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, local))
	r.RemoteAddr = from
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("X-Stagger-Control", "1")
	}
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func accepting(r *http.Request) { r.Header.Set("Accept", "text/html,*/*") }

func TestSwitch(t *testing.T) {
	t.Parallel()
	var told []string
	heard := interceptor.WithObserver(interceptor.Observer{ModeChange: func(from, to interceptor.ModeSwitch) {
		told = append(told, fmt.Sprint(to.Service, " from ", from.Mode, " to ", to.Mode))
	}})
	one, two := newRetrier(t, heard), newRetrier(t, heard)
	h := Config{}.SwitchHandler(one, two)
	for _, step := range []struct {
		form, set, told string
	}{
		{"mode=OFF", "[OFF]", " from ENFORCE to OFF"},
		{"mode=OBSERVE&service=acme.orders.v1.OrderService", "[OFF OBSERVE]", "acme.orders.v1.OrderService from ENFORCE to OBSERVE"},
		{"mode=ENFORCE", "[ENFORCE OBSERVE]", " from OFF to ENFORCE"},
		{"mode=enforce&service=acme.orders.v1.OrderService", "[ENFORCE]", "acme.orders.v1.OrderService from OBSERVE to ENFORCE"},
	} {
		told = nil
		w := ask(h, here, here, http.MethodPost, step.form, nil)
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"source": `) {
			t.Errorf("%s: %d %s", step.form, w.Code, w.Body)
		}
		for _, r := range []*interceptor.Retrier{one, two} {
			if got := fmt.Sprint(modesOf(r.State().Switches)); got != step.set {
				t.Errorf("%s: %s is set; want %s", step.form, got, step.set)
			}
		}
		if want := []string{step.told, step.told}; !slices.Equal(told, want) {
			t.Errorf("%s: told %q; want %q", step.form, told, want)
		}
	}
}

// Modes set by hand outlive a reload, and the page says so.
func TestSwitch_Reload(t *testing.T) {
	t.Parallel()
	r := newRetrier(t, interceptor.WithObserver(interceptor.Observer{ModeChange: func(_, _ interceptor.ModeSwitch) {}}))
	h := Config{}.SwitchHandler(r)
	if w := ask(h, here, here, http.MethodPost, "mode=OFF", accepting); w.Code != http.StatusSeeOther || w.Header().Get("Location") != "?" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	set := testkit.Must(compiled.NewSet(spec.Config{Mode: "OBSERVE", Methods: []spec.MethodConfig{{Names: []string{"/acme.orders.v1.OrderService/"}}}}))(t)
	testkit.NoError(t, r.Reload(set))
	if got := r.State().Switches[0].Mode; got != policy.ModeOff {
		t.Errorf("%v after a reload; want OFF", got)
	}
	page := ask(h, here, here, http.MethodGet, "", accepting)
	wants(t, page.Body.String(), "<td>the policy file, for all calls</td><td>OBSERVE</td>", "<td>by hand, for all calls</td><td>OFF by 127.0.0.1:6060</td><td><strong>OFF</strong></td>",
		"A reload of the file changes nothing that is set here.", "OBSERVE decides on them and sends none")
	testkit.NoError(t, r.SetMode(interceptor.ModeSwitch{Service: "acme.orders.v1.OrderService", Mode: policy.ModeObserve}))
	wants(t, get(Config{}.Handler(r), "").Body.String(), "<b>Mode OFF: no retries and no hedges are sent.</b> It was set by hand, by 127.0.0.1:6060.",
		"<b>acme.orders.v1.OrderService: mode OBSERVE: retries and hedges are decided on, but not sent.</b> It was set by hand.")
	testkit.NoError(t, r.SetMode(interceptor.ModeSwitch{Service: "acme.orders.v1.OrderService", Mode: policy.ModeEnforce}))
	if style := ask(h, here, here, http.MethodGet, "", func(r *http.Request) { r.URL.RawQuery = "style" }); !strings.HasPrefix(style.Header().Get("Content-Type"), "text/css") {
		t.Errorf("the style is %s", style.Header())
	}
	var shown []switchState
	testkit.NoError(t, json.Unmarshal(ask(h, here, here, http.MethodGet, "", nil).Body.Bytes(), &shown))
	if got, want := fmt.Sprint(shown), "[{1  OBSERVE [{ OFF OFF 127.0.0.1:6060}]}]"; got != want {
		t.Errorf("as JSON: %s; want %s", got, want)
	}
}

// The switch shows which mode is in force, which the file or the switch of all calls may have made stricter than what was set.
func TestSwitch_InForce(t *testing.T) {
	t.Parallel()
	const service = "acme.orders.v1.OrderService"
	for _, row := range []struct{ file, all, ofService, want string }{
		{"ENFORCE", "ENFORCE", "", "[ENFORCE]"},
		{"OBSERVE", "ENFORCE", "", "[OBSERVE]"},
		{"OBSERVE", "OFF", "", "[OFF]"},
		{"ENFORCE", "OFF", "OBSERVE", "[OFF OFF]"},
		{"ENFORCE", "ENFORCE", "OBSERVE", "[ENFORCE OBSERVE]"},
		{"OFF", "ENFORCE", "OBSERVE", "[OFF OFF]"},
	} {
		r := newRetrier(t, interceptor.WithObserver(interceptor.Observer{ModeChange: func(_, _ interceptor.ModeSwitch) {}}))
		set := testkit.Must(compiled.NewSet(spec.Config{Mode: row.file, Methods: []spec.MethodConfig{{Names: []string{"/" + service + "/"}}}}))(t)
		testkit.NoError(t, r.Reload(set))
		h := Config{}.SwitchHandler(r)
		ask(h, here, here, http.MethodPost, "mode="+row.all, nil)
		if row.ofService != "" {
			ask(h, here, here, http.MethodPost, "mode="+row.ofService+"&service="+service, nil)
		}
		var shown []switchState
		testkit.NoError(t, json.Unmarshal(ask(h, here, here, http.MethodGet, "", nil).Body.Bytes(), &shown))
		var got []policy.Mode
		for _, s := range shown[0].Set {
			got = append(got, s.InForce)
		}
		if fmt.Sprint(got) != row.want {
			t.Errorf("%+v: %v in force", row, got)
		}
	}
}

func TestSwitch_Refuses(t *testing.T) {
	t.Parallel()
	no := func(*http.Request) (string, error) { return "", errors.New("who are you?") }
	yes := func(*http.Request) (string, error) { return "ann", nil }
	crossing := func(r *http.Request) { r.Header.Del("X-Stagger-Control") } // as a page of another site must
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	for name, row := range map[string]struct {
		authorize func(*http.Request) (string, error)
		from, to  string
		method    string
		form      string
		change    func(*http.Request)
		code      int
		says      string
	}{
		"another machine":                {nil, away, pod, "POST", "mode=OFF", nil, 403, "both ends"},
		"a side-car":                     {nil, here, pod, "POST", "mode=OFF", nil, 403, "both ends"},
		"another machine looks":          {nil, away, pod, "GET", "", nil, 403, "both ends"},
		"a proxy":                        {nil, here, here, "POST", "mode=OFF", header("X-Forwarded-For", "192.0.2.7"), 403, "a proxy asks"},
		"not authorized":                 {no, away, pod, "POST", "mode=OFF", nil, 403, "who are you?"},
		"not authorized here":            {no, here, here, "POST", "mode=OFF", nil, 403, "who are you?"},
		"not authorized to look":         {no, away, pod, "GET", "", nil, 403, "who are you?"},
		"another origin":                 {nil, here, here, "POST", "mode=OFF", crossing, 403, "token"},
		"a token of another page":        {nil, here, here, "POST", "token=ABC&mode=OFF", crossing, 403, "token"},
		"another site":                   {nil, here, here, "POST", "mode=OFF", header("Sec-Fetch-Site", "cross-site"), 403, "another site"},
		"another origin, authorized":     {yes, away, pod, "POST", "mode=OFF", crossing, 403, "token"},
		"a name of another site's":       {yes, away, pod, "POST", "mode=OFF", func(r *http.Request) { r.Host = "evil.example" }, 403, "host"},
		"another method":                 {nil, here, here, "PUT", "mode=OFF", nil, 405, "GET and POST"},
		"no mode":                        {nil, here, here, "POST", "", nil, 400, "must be ENFORCE, OBSERVE or OFF"},
		"a mode that there is not":       {nil, here, here, "POST", "mode=STOP", nil, 400, "must be ENFORCE, OBSERVE or OFF"},
		"a field that there is not":      {nil, here, here, "POST", "mode=OFF&of=acme.Orders", nil, 400, "must be mode or service"},
		"a field twice":                  {nil, here, here, "POST", "mode=OFF&service=a.B&service=a.C", nil, 400, "be given once"},
		"a field in the address":         {nil, here, here, "POST", "mode=OFF", func(r *http.Request) { r.URL.RawQuery = "service=acme.orders.v1.OrderService" }, 400, "into the body"},
		"a method in place of a service": {nil, here, here, "POST", "mode=OFF&service=/acme.Orders/Get", nil, 400, "full name"},
		"a long form":                    {nil, here, here, "POST", "mode=OFF&service=" + strings.Repeat("a", 5000), nil, 400, "too large"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRetrier(t)
			w := ask(Config{Authorize: row.authorize}.SwitchHandler(r), row.from, row.to, row.method, row.form, row.change)
			if w.Code != row.code || !strings.Contains(w.Body.String(), row.says) {
				t.Errorf("%d %s; want %d with %q", w.Code, w.Body, row.code, row.says)
			}
			if got := fmt.Sprint(modesOf(r.State().Switches)); got != "[ENFORCE]" {
				t.Errorf("%s is set; want nothing", got)
			}
		})
	}
	r := newRetrier(t, interceptor.WithObserver(interceptor.Observer{ModeChange: func(_, _ interceptor.ModeSwitch) {}}))
	if w := ask(Config{Authorize: yes, Hosts: []string{"ops.example"}}.SwitchHandler(r), away, pod, "POST", "mode=OFF", func(r *http.Request) { r.Host = "ops.example" }); w.Code != http.StatusOK || r.State().Switches[0].Mode != policy.ModeOff {
		t.Errorf("authorized: %d %s", w.Code, w.Body)
	}
	if w := ask(Config{}.SwitchHandler(nil), here, here, "GET", "", nil); w.Code != http.StatusServiceUnavailable {
		t.Errorf("without a Retrier: %d", w.Code)
	}
}

// The page's form carries a token, without which a browser sets nothing.
func TestSwitch_Token(t *testing.T) {
	t.Parallel()
	r := newRetrier(t, interceptor.WithObserver(interceptor.Observer{ModeChange: func(_, _ interceptor.ModeSwitch) {}}))
	h := Config{}.SwitchHandler(r)
	_, token, _ := strings.Cut(ask(h, here, here, http.MethodGet, "", accepting).Body.String(), `name="token" value="`)
	token, _, _ = strings.Cut(token, `"`)
	w := ask(h, here, here, http.MethodPost, "mode=OFF&token="+token, func(r *http.Request) {
		accepting(r)
		r.Header.Del("X-Stagger-Control")
	})
	if len(token) < 26 || w.Code != http.StatusSeeOther || r.State().Switches[0].Mode != policy.ModeOff {
		t.Errorf("token %q: %d %s; want the mode OFF", token, w.Code, w.Body)
	}
}

// Of several Retriers, those that know a service are switched, and the answer says how many.
func TestSwitch_Unknown(t *testing.T) {
	t.Parallel()
	heard := interceptor.WithObserver(interceptor.Observer{ModeChange: func(_, _ interceptor.ModeSwitch) {}})
	other := testkit.Must(interceptor.New(testkit.Must(compiled.NewSet(spec.Config{}))(t), heard))(t)
	w := ask(Config{}.SwitchHandler(newRetrier(t, heard), other), here, here, http.MethodPost, "mode=OFF&service=acme.orders.v1.OrderService", nil)
	if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "1 of 2 Retriers are set: interceptor: service \"acme.orders.v1.OrderService\": no policy entry") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// modesOf returns the modes of switches, in their order.
func modesOf(list []interceptor.ModeSwitch) (modes []policy.Mode) {
	for _, s := range list {
		modes = append(modes, s.Mode)
	}
	return modes
}
