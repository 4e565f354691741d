// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package debugpage

import (
	"cmp"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/stagger-go/stagger/internal/codename"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/tools/explain"
	"github.com/stagger-go/stagger/policy"
)

// form has the fields of the form, as typed.
type form struct {
	Retrier, Method, Code, Latency, Deadline, Pushback, Succeed, Cancel, Close string

	Checks []check
}

// check is a checkbox of the form.
type check struct {
	Name, Label string
	On          bool
}

// parameters are the allowed fields of a form, in addition to the conditions.
var parameters = []string{"retrier", "method", "code", "latency", "deadline", "pushback", "succeed", "cancel", "close"}

func newForm(q url.Values) form {
	f := form{
		Retrier: cmp.Or(q.Get("retrier"), "1"), Method: q.Get("method"), Code: cmp.Or(q.Get("code"), "UNAVAILABLE"),
		Latency: q.Get("latency"), Deadline: q.Get("deadline"), Pushback: q.Get("pushback"),
		Succeed: q.Get("succeed"), Cancel: q.Get("cancel"), Close: q.Get("close"),
	}
	for _, c := range new(explain.Question).Conditions() {
		f.Checks = append(f.Checks, check{c.Name, c.Says, q.Has(c.Name)})
	}
	return f
}

// explanation is the data of the explain page.
type explanation struct {
	form

	Retriers       int
	Methods, Codes []string
	Answer         *explain.Answer // nil until a method is given
	Steps          []step
	JSON           template.URL // of the same answer
}

// step is a check of the pipeline, and its result after the last attempt.
type step struct {
	Said     string // yes, no or not asked
	Question string
	No       policy.Reason
}

func (p *page) explanation(r *http.Request) (explanation, error) {
	q := r.URL.Query()
	e := explanation{form: newForm(q), Retriers: len(p.retriers), Methods: p.methods(), Codes: codename.Failures()}
	if e.Method == "" {
		return e, nil
	}
	a, err := p.answer(q)
	if err != nil {
		return e, err
	}
	e.Answer, e.JSON = &a, template.URL("explain.json?"+q.Encode()) // Encode escapes all special characters
	if last := a.Refusal(); last != nil {
		e.Steps = steps(last.Decision.Reason)
	}
	return e, nil
}

func (p *page) explanationJSON(r *http.Request) (explain.AnswerJSON, error) {
	a, err := p.answer(r.URL.Query())
	if err != nil {
		return explain.AnswerJSON{}, err
	}
	return a.JSON(), nil
}

// answer answers a form's question, by the current policies.
func (p *page) answer(q url.Values) (explain.Answer, error) {
	r, question, err := p.question(q)
	if err != nil {
		return explain.Answer{}, requestError{err}
	}
	is := p.retriers[r].State()
	question.MaxAttempts = is.Policies.Config().MaxAttemptsLimit
	set := decision.Compile(is.Policies)
	level := func(method string) string { return explain.Level(method, protoregistry.GlobalFiles) }
	return explain.Explain(set, level, question, explain.Draw(1)), nil
}

// question parses a form, and returns its question and the number of the Retrier.
func (p *page) question(q url.Values) (retrier int, _ explain.Question, err error) {
	f := newForm(q)
	question := explain.Question{Method: "/" + strings.TrimPrefix(f.Method, "/"), Pushback: f.Pushback}
	known := slices.Clone(parameters)
	for _, c := range question.Conditions() {
		*c.Holds = q.Has(c.Name)
		known = append(known, c.Name)
	}
	var errs []error
	for name, values := range q {
		if !slices.Contains(known, name) {
			errs = append(errs, fmt.Errorf("%.50q: there is no such parameter; there are %s", name, strings.Join(known, ", ")))
		} else if len(values) > 1 {
			errs = append(errs, fmt.Errorf("%s: is given %d times; once is enough", name, len(values)))
		}
	}
	retrier, err = strconv.Atoi(f.Retrier)
	if err != nil || retrier < 1 || retrier > len(p.retriers) {
		errs = append(errs, fmt.Errorf("retrier %.50q: must be a number from 1 to %d", f.Retrier, len(p.retriers)))
	}
	if f.Method == "" {
		errs = append(errs, errors.New("method: must be given, such as /acme.orders.v1.OrderService/GetOrder"))
	}
	if parts := strings.Split(question.Method, "/"); f.Method != "" && (len(parts) != 3 || parts[1] == "" || parts[2] == "") {
		errs = append(errs, fmt.Errorf("method %.200q: must be a full name such as /acme.orders.v1.OrderService/GetOrder", f.Method))
	}
	errs = append(errs, setCode(&question.Code, f.Code), setDuration(&question.Latency, "latency", f.Latency), setDuration(&question.Deadline, "deadline", f.Deadline),
		setDuration(&question.Cancel, "cancel", f.Cancel), setDuration(&question.Close, "close", f.Close), setAttempt(&question.Succeed, f.Succeed))
	return retrier - 1, question, errors.Join(errs...)
}

func setCode(to *codes.Code, name string) error {
	if c, ok := codename.Parse(name); ok {
		*to = c
		return nil
	}
	return fmt.Errorf("code %.50q: must be the name of a status code other than OK, such as UNAVAILABLE", name)
}

func setAttempt(to *int, text string) error {
	if text == "" {
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return fmt.Errorf("succeed %.50q: must be the number of an attempt, from 1", text)
	}
	*to = n
	return nil
}

func setDuration(to *time.Duration, name, text string) error {
	if text == "" {
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return fmt.Errorf("%s %.50q: must be a duration that is not negative, such as 300ms", name, text)
	}
	*to = d
	return nil
}

// steps returns the checks of the pipeline, of which one has failed.
func steps(reason policy.Reason) []step {
	var list []step
	said := "yes"
	for _, s := range decision.Steps() {
		if s.No == reason {
			list, said = append(list, step{"no", s.Question, s.No}), "not asked"
			continue
		}
		list = append(list, step{said, s.Question, s.No})
	}
	return list
}
