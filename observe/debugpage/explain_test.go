// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package debugpage

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/tools/explain"
	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/policy"
)

func TestExplain(t *testing.T) {
	t.Parallel()
	h := Config{}.Handler(newRetrier(t))
	form := get(h, "explain").Body.String()
	wants(t, form, `<option value="/acme.orders.v1.OrderService/GetOrder">`, "<option selected>UNAVAILABLE</option>")
	if strings.Contains(form, "The call ends") {
		t.Errorf("an answer to nothing:\n%s", form)
	}
	for query, parts := range map[string][]string{
		"method=" + getOrder: {
			"names the method", "<dt>backoff</dt><dd>100ms, × 2 each time, up to 1s; jitter NONE</dd>", "<td>attempts_exhausted</td>",
			"The call ends after 700ms with UNAVAILABLE: attempts_exhausted (4 attempts).", `explain.json?method=%2Facme.orders.v1.OrderService%2FGetOrder"`,
			`<td class="no">no</td><td>Is an attempt left?</td>`, `<td class="soft">not asked</td>`,
		},
		"method=" + create: {"which names its service", "no: nothing declares it idempotent", "not_idempotent (1 attempt)"},
		"method=acme.orders.v1.OrderService/GetOrder&code=ABORTED": {"fails with ABORTED", "non_retryable"},
		"method=" + getOrder + "&budget-empty=on&latency=10ms":     {"orders, which is empty", "after 10ms", "budget_exhausted (1 attempt)", `name="budget-empty" checked`},
		"method=" + getOrder + "&hang=on":                          {"does not end"},
		"method=" + getOrder + "&pushback=-1&deadline=1s":          {"pushback_stop", "1s for the whole call"},
		"method=" + getOrder + "&breaker-open=on":                  {"breaker_open"},
		"method=/a.B/C": {"no entry names it, its service or everything: one attempt."},
	} {
		w := get(h, "explain?"+query)
		if w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
		wants(t, w.Body.String(), parts...)
	}
}

// Every reason can be played.
func TestExplainPlaysAllReasons(t *testing.T) {
	t.Parallel()
	set := must.Get(policy.Parse("retry.yaml", []byte(`
methodConfig:
- name: [{service: acme.orders.v1.OrderService, method: GetOrder}]
  admission: REFUSE
  retryPolicy: {maxAttempts: 4, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE], jitter: NONE, perAttemptTimeout: 1s, chain: SUPPRESS}
- name: [{service: acme.orders.v1.OrderService, method: ListOrders}]
  hedgingPolicy: {maxAttempts: 2, hedgingDelay: 0.1s}
- name: [{service: acme.orders.v1.OrderService}]
  retryPolicy: {maxAttempts: 3, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE]}
`)))(t)
	r := must.Get(interceptor.New(set, interceptor.WithObserver(interceptor.Observer{Diagnostic: func(policy.Diagnostic) {}})))(t)
	h := Config{}.Handler(r)
	play := map[policy.Reason]string{
		policy.ReasonNonRetryable:      "&code=NOT_FOUND",
		policy.ReasonCommitted:         "&committed=on",
		policy.ReasonAttemptsExhausted: "",
		policy.ReasonNotIdempotent:     "&method=" + create,
		policy.ReasonPushbackStop:      "&pushback=-1",
		policy.ReasonFollowed:          "&latency=1.5s",
		policy.ReasonChainStop:         "&in-retry=on",
		policy.ReasonBreakerOpen:       "&breaker-open=on",
		policy.ReasonLatencyUnknown:    "&method=acme.orders.v1.OrderService/ListOrders&latency-unknown=on&hang=on&deadline=9s",
		policy.ReasonSlowEverywhere:    "&slow-everywhere=on&hang=on&deadline=9s",
		policy.ReasonOverloaded:        "&overloaded=on&deadline=9s",
		policy.ReasonDeadlineTooClose:  "&deadline=50ms",
		policy.ReasonTooManyWaiting:    "&crowded=on",
		policy.ReasonBudgetExhausted:   "&budget-empty=on",
		policy.ReasonRetry:             "",
		policy.ReasonHedge:             "&hang=on&deadline=9s",
		policy.ReasonSucceeded:         "&succeed=2",
		policy.ReasonDeadlineExceeded:  "&hang=on&deadline=9s",
		policy.ReasonCancelled:         "&cancel=50ms",
		policy.ReasonClosed:            "&close=50ms",
		policy.ReasonNotConnected:      "&down=on",
		policy.ReasonModeOff:           "&mode-off=on",
	}
	for _, reason := range decision.Reasons() {
		query, ok := play[reason]
		if !ok {
			t.Errorf("nothing plays %s", reason)
			continue
		}
		if !strings.Contains(query, "method=") {
			query += "&method=" + getOrder
		}
		var got explain.AnswerJSON
		w := get(h, "explain.json?"+query[1:])
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got.End == nil {
			t.Errorf("%s: %v: %s", reason, err, w.Body)
			continue
		}
		played := []policy.Reason{got.End.Reason}
		for _, e := range got.Events {
			played = append(played, e.Reason)
		}
		if !slices.Contains(played, reason) {
			t.Errorf("%s plays %s and not %s", query, played, reason)
		}
	}
}

func TestExplainJSON(t *testing.T) {
	t.Parallel()
	var got explain.AnswerJSON
	w := get(Config{}.Handler(newRetrier(t)), "explain.json?method="+getOrder)
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || len(got.Events) != 4 || got.End.Reason != policy.ReasonAttemptsExhausted || got.Budget != "orders" {
		t.Errorf("%v: %s", err, w.Body)
	}
}

func TestExplainErrors(t *testing.T) {
	t.Parallel()
	h := Config{}.Handler(newRetrier(t))
	for query, want := range map[string]string{
		"method=x":                                  `method "x": must be a full name such as`,
		"method=//x":                                `must be a full name`,
		"method=" + getOrder + "&code=NOPE":         `code "NOPE": must be the name of a status code`,
		"method=" + getOrder + "&code=OK":           `code "OK": must be`,
		"method=" + getOrder + "&latency=fast":      `latency "fast": must be a duration`,
		"method=" + getOrder + "&deadline=-1s":      `deadline "-1s": must be a duration that is not negative`,
		"method=" + getOrder + "&retrier=2":         `retrier "2": must be a number from 1 to 1`,
		"method=" + getOrder + "&retrier=zero":      `retrier "zero": must be`,
		"method=" + getOrder + "&succeed=0":         `succeed "0": must be the number of an attempt, from 1`,
		"method=" + getOrder + "&dedline=1s":        `"dedline": there is no such parameter`,
		"method=" + getOrder + "&code=OK&latency=x": `latency "x"`,
		"method=/a.B/C&method=/a.B/D":               "method: is given 2 times",
	} {
		for _, page := range []string{"explain", "explain.json"} {
			if w := get(h, page+"?"+query); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s?%s: %d %s; want %q", page, query, w.Code, w.Body, want)
			}
		}
	}
	if w := get(h, "explain.json"); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "method: must be given") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// The cap is that of the current policies.
func TestExplainManyAttempts(t *testing.T) {
	t.Parallel()
	for limit, want := range map[string]string{"": "attempts_exhausted (5 attempts)", "maxAttemptsLimit: 100\n": "attempts_exhausted (7 attempts)"} {
		set := must.Get(policy.Parse("retry.yaml", []byte(limit+strings.ReplaceAll(file, "maxAttempts: 4", "maxAttempts: 7"))))(t)
		r := must.Get(interceptor.New(set, interceptor.WithObserver(interceptor.Observer{Diagnostic: func(policy.Diagnostic) {}})))(t)
		wants(t, get(Config{}.Handler(r), "explain?method="+getOrder).Body.String(), want)
	}
}
