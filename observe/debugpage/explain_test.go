// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package debugpage

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/testkit"
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
			"names the method", "backoff   100ms, × 2 each time, up to 1s; jitter NONE",
			"The call ends after 700ms with UNAVAILABLE: attempts_exhausted (4 attempts).", "  FAILED  Is an attempt left?", "  –       ",
		},
		"method=" + create: {"which names its service", "no: nothing declares it idempotent", "not_idempotent (1 attempt)"},
		"method=acme.orders.v1.OrderService/GetOrder&code=ABORTED": {"fails with ABORTED", "non_retryable"},
		"method=" + getOrder + "&budget-empty=on&latency=10ms":     {"orders, which is empty", "after 10ms", "budget_exhausted (1 attempt)", `name="budget-empty" checked`},
		"method=" + getOrder + "&hang=on":                          {"does not end"},
		"method=" + getOrder + "&pushback=-1&deadline=1s":          {"pushback_stop", "1s for the whole call"},
		"method=/a.B/C": {"no entry names it, its service or everything: one attempt\n"},
	} {
		w := get(h, "explain?"+query)
		if w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
		wants(t, w.Body.String(), parts...)
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
		"method=" + getOrder + "&dedline=1s":        `"dedline": there is no such parameter`,
		"method=" + getOrder + "&code=OK&latency=x": `latency "x"`,
		"method=/a.B/C&method=/a.B/D":               "method: is given 2 times",
	} {
		if w := get(h, "explain?"+query); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s; want %q", query, w.Code, w.Body, want)
		}
	}
}

// The cap is that of the current policies.
func TestExplainManyAttempts(t *testing.T) {
	t.Parallel()
	for limit, want := range map[string]string{"": "attempts_exhausted (5 attempts)", "maxAttemptsLimit: 100\n": "attempts_exhausted (7 attempts)"} {
		set := testkit.Must(policy.Parse("retry.yaml", []byte(limit+strings.ReplaceAll(file, "maxAttempts: 4", "maxAttempts: 7"))))(t)
		r := testkit.Must(interceptor.New(set, interceptor.WithObserver(interceptor.Observer{Diagnostic: func(policy.Diagnostic) {}})))(t)
		wants(t, get(Config{}.Handler(r), "explain?method="+getOrder).Body.String(), want)
	}
}
