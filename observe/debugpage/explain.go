// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package debugpage

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stagger-go/stagger/internal/explain"
	"github.com/stagger-go/stagger/internal/methods"
	"github.com/stagger-go/stagger/internal/policyfile/codename"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
)

// explanation is the data of the explain page.
type explanation struct {
	Form           url.Values // as typed, with defaults
	Checks         []explain.Condition
	Retriers       int
	Methods, Codes []string
	Answer         string // "" until a method is given
}

func (p *page) explanation(r *http.Request) (explanation, error) {
	q := r.URL.Query()
	form := url.Values{"retrier": {cmp.Or(q.Get("retrier"), "1")}, "code": {cmp.Or(q.Get("code"), "UNAVAILABLE")}}
	for _, name := range []string{"method", "latency", "deadline", "pushback"} {
		form.Set(name, q.Get(name))
	}
	question := explain.Question{Pushback: form.Get("pushback")}
	e := explanation{Form: form, Checks: question.Conditions(), Retriers: len(p.retriers), Methods: p.methods(), Codes: codename.Failures()}
	var errs []error
	for name, values := range q {
		i := slices.IndexFunc(e.Checks, func(c explain.Condition) bool { return c.Name == name })
		switch {
		case i < 0 && !form.Has(name):
			errs = append(errs, fmt.Errorf("%.50q: there is no such parameter", name))
		case len(values) > 1:
			errs = append(errs, fmt.Errorf("%s: is given %d times; once is enough", name, len(values)))
		case i >= 0:
			*e.Checks[i].Holds = true
		}
	}
	number, err := strconv.Atoi(form.Get("retrier"))
	if err != nil || number < 1 || number > len(p.retriers) {
		errs = append(errs, fmt.Errorf("retrier %.50q: must be a number from 1 to %d", form.Get("retrier"), len(p.retriers)))
	}
	method := form.Get("method")
	question.Method = "/" + strings.TrimPrefix(method, "/")
	if parts := strings.Split(question.Method, "/"); method != "" && (len(parts) != 3 || parts[1] == "" || parts[2] == "") {
		errs = append(errs, fmt.Errorf("method %.200q: must be a full name such as /acme.orders.v1.OrderService/GetOrder", method))
	}
	var ok bool
	if question.Code, ok = codename.Parse(form.Get("code")); !ok {
		errs = append(errs, fmt.Errorf("code %.50q: must be the name of a status code other than OK, such as UNAVAILABLE", form.Get("code")))
	}
	errs = append(errs, setDuration(&question.Latency, "latency", form), setDuration(&question.Deadline, "deadline", form))
	if err := errors.Join(errs...); err != nil || method == "" {
		if err != nil {
			err = requestError{err}
		}
		return e, err
	}
	retrier := p.retriers[number-1]
	is := retrier.State()
	question.MaxAttempts, question.DefaultTimeout = compiled.OfSet(is.Policies).MaxAttemptsLimit, is.DefaultTimeout
	a := explain.Explain(methods.Describe(is.Policies, retrier.Descriptors()...), question, explain.Draw(1))
	e.Answer = a.Text()
	return e, nil
}

func setDuration(to *time.Duration, name string, form url.Values) (err error) {
	text := form.Get(name)
	if text == "" {
		return nil
	}
	if *to, err = time.ParseDuration(text); err != nil || *to < 0 {
		return fmt.Errorf("%s %.50q: must be a duration that is not negative, such as 300ms", name, text)
	}
	return nil
}
