// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package debugpage

import (
	"context"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/explain"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

func TestPage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		h, revealing := Config{}.Handler(s.retrier), Config{ShowErrors: true}.Handler(s.retrier)
		w := get(h, "")
		wants(t, w.Body.String(), "No call has used one yet.", "None yet: no attempt has failed", "<dd>retry.yaml</dd>", "<dd>ENFORCE</dd>", "0 of at most 10000",
			"declared idempotent, so most of") // a warning
		s.On("*", down().Pushback("-1"))
		if s.call(t, create) == nil {
			t.Fatal("the call succeeds")
		}
		wants(t, get(h, "").Body.String(), "pushback_stop</span>: by bufconn of "+s.conn.CanonicalTarget()) // the hop below
		s.Down()
		time.AfterFunc(time.Second, func() {
			wants(t, get(h, "").Body.String(), "1 of at most 10000: 0 for a backoff, 1 for a connection, 0 for an answer")
		})
		if s.call(t, getOrder) == nil {
			t.Fatal("the call succeeds")
		}
		wants(t, get(h, "").Body.String(), "waits</span> for a connection", "not_connected</span>")
		s.Up()
		time.Sleep(10 * time.Second)
		s.Reset()
		s.On("*", testserver.OK())
		testkit.NoError(t, s.call(t, getOrder)) // refills the budget
		s.On("*", down())
		if s.call(t, getOrder) == nil || s.call(t, create) == nil {
			t.Fatal("the calls succeed")
		}
		page := get(h, "").Body.String()
		wants(t, page, "<th>orders<", "0 of 3", "retry</span> after 100ms", "budget_exhausted</span>: orders", "not_idempotent</span>",
			"is used up: too many of the last", `explain?retrier=1&amp;method=%2facme.orders.v1.OrderService%2fGetOrder&amp;code=UNAVAILABLE`)
		wants(t, page, filepath.Base(os.Args[0])+" on ", ", process "+strconv.Itoa(os.Getpid())+", since 20", `<button id="pause" type="button" hidden>`)
		if strings.Contains(page, "secret") {
			t.Errorf("the page shows the text of an error:\n%s", page)
		}
		if got := get(revealing, "").Body.String(); !strings.Contains(got, "secret of a user") {
			t.Error("the page shows no text of an error")
		}
		if only := get(h, "?method="+create).Body.String(); strings.Contains(only, "budget_exhausted") || !strings.Contains(only, "not_idempotent") {
			t.Errorf("decisions about %s:\n%s", create, only)
		}
	})
}

// The page marks decisions in mode OBSERVE, for which no balance pays.
func TestPageModes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		h := Config{}.Handler(s.retrier)
		s.On("*", down())
		for _, mode := range []policy.Mode{policy.ModeObserve, policy.ModeOff} {
			testkit.NoError(t, s.retrier.SetMode(interceptor.ModeSwitch{Mode: mode}))
			_ = s.call(t, getOrder)
			wants(t, get(h, "").Body.String(), "<dd>"+string(mode)+"</dd>", `<p class="banner"><b>Mode `+string(mode)+":")
		}
		wants(t, get(h, "").Body.String(), "would retry</span> after 100ms: mode OBSERVE", "mode_off</span>")
		var got []retrierState
		testkit.NoError(t, json.Unmarshal(get(h, "state.json").Body.Bytes(), &got))
		d, b := got[0].Decisions, got[0].Budgets
		if len(d) != 2 || d[0].Mode != "OFF" || d[0].Announced || d[1].Mode != "OBSERVE" || !d[1].Announced || d[1].Retry || len(b) != 0 {
			t.Errorf("decisions %+v, budgets %+v", d, b)
		}
	})
}

// A key of state.json has one unit: the balance of a budget is in retries, and its samples have the share of its capacity.
func TestPageJSON_Units(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		h := Config{}.Handler(s.retrier)
		s.On("*", down())
		_ = s.call(t, getOrder)
		wants(t, get(h, "state.json").Body.String(), `"balance": 0,`, `"samples": []`)
		time.Sleep(interval + time.Second)
		wants(t, get(h, "state.json").Body.String(), `"balance": 0,`, `"share": 0,`)
	})
}

// A decision on a slow attempt has the time that the attempt has taken, also if no other attempt follows.
func TestPageJSON_SlowAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSceneOfHangs(t)
		h := Config{}.Handler(s.retrier)
		s.conn.Connect()
		synctest.Wait()
		s.On("*", testserver.OK().Delay(time.Second))
		testkit.NoError(t, s.call(t, getOrder))
		var is []retrierState
		testkit.NoError(t, json.Unmarshal(get(h, "state.json").Body.Bytes(), &is))
		if d := is[0].Decisions; len(d) != 1 || d[0].Reason != policy.ReasonNotProvenFast || d[0].Elapsed != 0.1 {
			t.Errorf("%+v", d)
		}
	})
}

func TestPageJSON(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		idle := newRetrier(t, interceptor.WithBudget("orders", same(budget.Unlimited)))
		h := Config{}.Handler(s.retrier, idle)
		s.use(t, idle)
		s.On("*", down())
		_ = s.call(t, getOrder)
		time.Sleep(interval + time.Second)
		w := get(h, "state.json?method="+getOrder)
		var got []retrierState
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Header().Get("Content-Type") != "application/json" {
			t.Fatalf("%v: %s", err, w.Body)
		}
		if len(got) != 2 || got[1].Number != 2 || len(got[1].Decisions) != 0 || len(got[1].Budgets) != 1 || got[1].Budgets[0].Capacity != nil {
			t.Fatalf("%s", w.Body)
		}
		first := got[0]
		b := first.Budgets[0]
		if len(first.Budgets) != 1 || b.Name != "orders" || *b.Balance != 0 || *b.Capacity != 3 || b.Granted != 2 ||
			b.Refused != 1 || b.Target != s.conn.CanonicalTarget() {
			t.Errorf("%+v", b)
		}
		if len(b.Samples) != 1 || numbers(b.Samples) != "[{0 2 1}]" {
			t.Errorf("samples %+v", b.Samples)
		}
		if d := first.Decisions; len(d) != 3 || d[0].Reason != "budget_exhausted" || d[0].Attempt != 3 || d[0].Peer != "bufconn" || d[0].Retry || d[2].Delay != 0.1 || d[0].Error != "" {
			t.Errorf("%+v", d)
		}
		if first.Process != thisProcess {
			t.Errorf("%q", first.Process)
		}
		if p := first.Policy; p.Source != "retry.yaml" || len(p.Hash) != 12 || len(p.Warnings) != 1 || p.Refused != "" {
			t.Errorf("%+v", p)
		}
	})
}

// The page shows the modes of the file, its entries and Retrier.SetMode.
func TestPagePolicyModes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		h := Config{}.Handler(s.retrier)
		banner := func() string {
			t.Helper()
			page := get(h, "").Body.String()
			return strings.Join(regexp.MustCompile(`<p class="banner">.*</p>`).FindAllString(page, -1), "\n")
		}
		expect := func(want ...string) {
			t.Helper()
			for i := range want {
				want[i] = `<p class="banner">` + want[i] + "</p>"
			}
			if got, want := banner(), strings.Join(want, "\n"); got != want {
				t.Errorf("banner\n%s\nwant\n%s", got, want)
			}
		}
		expect()
		observing := strings.Replace("mode: OBSERVE\n"+file, "retryPolicy: {maxAttempts: 3", "mode: OFF\n  retryPolicy: {maxAttempts: 3", 1)
		set := testkit.Must(policy.Parse("retry.yaml", []byte(observing)))(t)
		testkit.NoError(t, s.retrier.Reload(set))
		wants(t, get(h, "").Body.String(), "<dd>OBSERVE</dd>", "<dd>/acme.orders.v1.OrderService/: OFF</dd>")
		const observes, off = "<b>Mode OBSERVE: retries and hedges are decided on, but not sent.</b> ", "<b>Mode OFF: no retries and no hedges are sent.</b> "
		expect(observes + "The policy file has it.")
		testkit.NoError(t, s.retrier.SetMode(interceptor.ModeSwitch{Mode: policy.ModeOff}))
		wants(t, get(h, "").Body.String(), "<dd>OFF</dd>")
		expect(off + "It was set by hand.")
		testkit.NoError(t, s.retrier.SetMode(interceptor.ModeSwitch{Mode: policy.ModeObserve, By: "127.0.0.1:6060 (ann)"}))
		expect(observes + "The policy file has it. It was set by hand, by 127.0.0.1:6060 (ann).")
		testkit.NoError(t, s.retrier.SetMode(interceptor.ModeSwitch{Service: "acme.orders.v1.OrderService", Mode: policy.ModeOff, By: "bob"}))
		expect(observes+"The policy file has it. It was set by hand, by 127.0.0.1:6060 (ann).",
			"<b>acme.orders.v1.OrderService: mode OFF: no retries and no hedges are sent.</b> It was set by hand, by bob.")
	})
}

// A reason's meaning stands once on the page, and a note does not look like an error.
func TestPage_Reasons(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		h := Config{}.Handler(s.retrier)
		s.On("*", down())
		for range 5 {
			_ = s.call(t, getOrder)
		}
		page := get(h, "").Body.String()
		for _, reason := range []policy.Reason{policy.ReasonRetry, policy.ReasonBudgetExhausted} {
			meaning := testkit.Must(explain.MeaningOf(string(reason)))(t)
			if n := strings.Count(page, template.HTMLEscapeString(meaning.Means)); n != 1 {
				t.Errorf("the meaning of %s stands %d times on the page", reason, n)
			}
		}
		wants(t, page, `<p class="note">note: `, `<dt>budget_exhausted</dt>`)
		if strings.Contains(page, `class="warning"`) || strings.Contains(page, `class="error"`) {
			t.Errorf("there is only a note:\n%s", page)
		}
	})
}

// A slow service gets no more calls than it answers in time.
func TestPageAdmission(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const find = "/acme.orders.v1.OrderService/FindOrder"
		s := newScene(t)
		h := Config{}.Handler(s.retrier)
		if page := get(h, "").Body.String(); strings.Contains(page, "Admission") {
			t.Errorf("no method has it:\n%s", page)
		}
		for i := range 6 { // two calls a second are answered, the last ones in 700 ms
			took := 700 * time.Millisecond
			if i < 2 {
				took = 20 * time.Millisecond
			}
			s.On(find, testserver.OK().Delay(took))
			testkit.NoError(t, s.call(t, find))
			time.Sleep(750*time.Millisecond - took)
		}
		s.On(find, testserver.Fail(codes.ResourceExhausted, "full"))
		_ = s.call(t, find)
		s.On(find, testserver.Hang())
		ctx, cancel := context.WithCancel(t.Context())
		var crowd sync.WaitGroup
		for range 3 {
			crowd.Go(func() { _ = s.conn.Invoke(ctx, find, &emptypb.Empty{}, &emptypb.Empty{}) })
		}
		synctest.Wait()
		late, stop := context.WithTimeout(t.Context(), time.Second)
		_ = s.conn.Invoke(late, find, &emptypb.Empty{}, &emptypb.Empty{})
		stop()
		page := get(h, "").Body.String()
		wants(t, page, "<h2>Admission</h2>", "<td>"+find+"</td><td>"+s.conn.CanonicalTarget()+`</td><td class="figure">3</td><td class="figure">1</td><td class="figure">0</td>`, `<span class="no">overloaded</span>`)
		cancel()
		crowd.Wait()
	})
}

// Of more than 64 methods with admission, the page says how many it does not show.
func TestPageAdmissionOfMany(t *testing.T) {
	t.Parallel()
	r := newRetrier(t)
	h := Config{}.Handler(r)
	answer := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return nil }
	for i := range 70 {
		conn := testkit.Must(grpc.NewClient(fmt.Sprintf("passthrough:///target-%d", i), grpc.WithTransportCredentials(insecure.NewCredentials())))(t)
		testkit.NoError(t, r.Unary()(t.Context(), "/acme.orders.v1.OrderService/FindOrder", nil, nil, conn, answer))
		testkit.NoError(t, conn.Close())
	}
	page := get(h, "").Body.String()
	wants(t, page, "6 more methods, with no more refusals than these.")
	if n := strings.Count(page, "OrderService/FindOrder</td>"); n != 64 {
		t.Errorf("%d methods are shown; want 64", n)
	}
	wants(t, get(h, "state.json").Body.String(), `"admissionNotShown": 6`)
}

// The page counts the calls without a deadline, until there is a default for them, which is also that of the calls that it explains.
func TestPageWithoutDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		h := Config{}.Handler(s.retrier)
		s.On("*", testserver.OK())
		testkit.NoError(t, s.call(t, getOrder))
		wants(t, get(h, "").Body.String(), "0 so far; defaultTimeout would bound unary ones")
		testkit.NoError(t, s.conn.Invoke(t.Context(), getOrder, &emptypb.Empty{}, &emptypb.Empty{}))
		wants(t, get(h, "").Body.String(), "1 so far; defaultTimeout would bound unary ones")
		wants(t, get(h, "state.json").Body.String(), `"deadlines": {
      "default": 0,
      "without": 1
    }`)
		c := compiled.OfSet(s.retrier.State().Policies).Clone()
		c.DefaultTimeout = 30 * time.Second
		testkit.NoError(t, s.retrier.Reload(testkit.Must(compiled.NewSet(c))(t)))
		wants(t, get(h, "").Body.String(), "end after 30s (defaultTimeout)")
		wants(t, get(h, "explain?method="+getOrder+"&hang=on&code=UNAVAILABLE").Body.String(), "30s, since the call has none (defaultTimeout)", "The call ends after 30s")
	})
}

// The page names a refused file, with its error.
func TestPageRefusedFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "retry.yaml")
	synctest.Test(t, func(t *testing.T) {
		testkit.NoError(t, os.WriteFile(path, []byte("{}"), 0o600))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		refused := make(chan struct{}, 1)
		r := testkit.Must(interceptor.Watch(ctx, path, interceptor.WithObserver(interceptor.Observer{Diagnostic: func(policy.Diagnostic) { refused <- struct{}{} }})))(t)
		h := Config{}.Handler(r)
		if body := get(h, "").Body.String(); strings.Contains(body, "refused") {
			t.Errorf("nothing is refused:\n%s", body)
		}
		testkit.NoError(t, os.WriteFile(path, []byte("maxWaiting: <many>"), 0o600))
		<-refused
		wants(t, get(h, "").Body.String(), "The newest file is refused", "maxWaiting", "&lt;many&gt;")
	})
}

func TestPageEscapes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const evil = `/acme.orders.v1.OrderService/<script>alert("x")</script>`
		s := newScene(t)
		h := Config{ShowErrors: true}.Handler(s.retrier)
		s.On("*", testserver.Fail(14, `</td><img src=x onerror=alert(1)>`))
		_ = s.call(t, evil)
		if s.Count("*") != 1 {
			t.Fatal("the call was not made")
		}
		for _, address := range []string{"", "explain?method=/a.B/<script>alert(1)", `?method="><script>alert(1)</script>`} {
			w := get(h, strings.NewReplacer("<", "%3C", ">", "%3E", `"`, "%22").Replace(address))
			if body := w.Body.String(); w.Code != http.StatusOK || strings.Contains(body, "<script>alert") || strings.Contains(body, "<img") {
				t.Errorf("%s: %d\n%s", address, w.Code, body)
			}
		}
		p := newPage(Config{ShowErrors: true}, []*interceptor.Retrier{s.retrier})
		defer p.history.stopped.Store(true)
		_ = s.call(t, evil)
		sections := testkit.Must(p.sections(""))(t)
		for _, part := range sections {
			if strings.Contains(string(part.HTML), "<script") || strings.Contains(string(part.HTML), "<img") {
				t.Errorf("%s", part.HTML)
			}
		}
	})
}

func TestPageWithoutRetrier(t *testing.T) {
	t.Parallel()
	for _, h := range []http.Handler{Config{}.Handler(), Config{}.Handler(nil), Config{}.Handler(newRetrier(t), nil), Config{}.Handler(new(interceptor.Retrier)), Config{}.SwitchHandler(new(interceptor.Retrier))} {
		if w := get(h, ""); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "no Retrier is shown") {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
}

// same gives all targets one budget.
func same(b budget.Budget) func(string) budget.Budget { return func(string) budget.Budget { return b } }

// ill is a budget of a program's own, which panics when it is read.
type ill struct{ budget.Budget }

func (ill) State(time.Time) budget.State { panic(`<b>ill</b>`) }

func TestPageOfABudgetThatPanics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		r := newRetrier(t, interceptor.WithBudget("orders", same(ill{budget.Unlimited})))
		h := Config{}.Handler(r)
		s.use(t, r)
		time.Sleep(2 * interval) // the sampler reads it too
		w := get(h, "")
		wants(t, w.Body.String(), "budget: orders: cannot be read, since it panics: &lt;b&gt;ill&lt;/b&gt;", "The last decisions")
	})
}

func TestPageFiles(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.Handle("/debug/stagger/", Config{}.Handler(newRetrier(t)))
	mux.Handle("/x/", http.StripPrefix("/x", Config{}.Handler(newRetrier(t))))
	for address, row := range map[string]struct {
		code       int
		kind, part string
	}{
		"/debug/stagger/":          {200, "text/html; charset=utf-8", `<script src="page.js" defer>`},
		"/debug/stagger/page.css":  {200, "text/css; charset=utf-8", "font:"},
		"/debug/stagger/page.js":   {200, "text/javascript; charset=utf-8", "EventSource"},
		"/debug/stagger/icon.svg":  {200, "image/svg+xml", "<svg"},
		"/debug/stagger/page.html": {404, "", ""},
		"/debug/stagger/page.go":   {404, "", ""},
		"/debug/stagger":           {307, "", ""},
		"/x/":                      {200, "", "<html"},
		"/x/explain":               {200, "", "<form"},
	} {
		r := httptest.NewRequest(http.MethodGet, "http://localhost"+address, nil)
		r.RemoteAddr = "127.0.0.1:1"
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, tcp("127.0.0.1:80")))
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		if w.Code != row.code || row.kind != "" && w.Header().Get("Content-Type") != row.kind || !strings.Contains(w.Body.String(), row.part) {
			t.Errorf("%s: %d %s\n%s", address, w.Code, w.Header(), w.Body)
		}
	}
}

func TestReadBudgetsOfMany(t *testing.T) {
	t.Parallel()
	var all []interceptor.BudgetState
	for i := range maxBudgets + 10 {
		b := interceptor.BudgetState{Name: "b" + string(rune('A'+i)), Balance: 5, Capacity: 5}
		if i%8 == 7 {
			b.Balance = 4
		}
		all = append(all, b)
	}
	list, hidden := scarcest(all)
	scarce := 0
	for i, b := range list {
		if share(b) < 1 {
			scarce++
		}
		if i > 0 && b.Name < list[i-1].Name {
			t.Errorf("%s stands after %s", b.Name, list[i-1].Name)
		}
	}
	if len(list) != maxBudgets || hidden != 10 || scarce != 9 {
		t.Errorf("%d shown, of which %d have spent something, %d hidden", len(list), scarce, hidden)
	}
}
