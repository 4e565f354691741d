// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package debugpage

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/explain"
	"github.com/stagger-go/stagger/internal/methods"
	"github.com/stagger-go/stagger/internal/policyfile/codename"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/running"
	"github.com/stagger-go/stagger/policy"
)

// maxAdmissions bounds the methods whose admission the page shows.
const maxAdmissions = 64

// retrierState is the data about a Retrier, on the page and in state.json.
type retrierState struct {
	Number    int              `json:"number"` // from 1, in the order of the handler's arguments
	Process   string           `json:"process"`
	Policy    policyState      `json:"policy"`
	Waiting   waitingState     `json:"waiting"`
	Deadlines deadlineState    `json:"deadlines"`
	Running   []runningState   `json:"running"`          // the method with the oldest call first
	Idle      int              `json:"runningNotShown"`  // methods whose oldest calls began later than those
	Backends  []backendState   `json:"backends"`         // those with most slow attempts first
	Others    int              `json:"backendsNotShown"` // with no more slow attempts than those
	Budgets   []budgetState    `json:"budgets"`
	Hidden    int              `json:"budgetsNotShown"`   // they have more left than the shown ones
	Admission []admissionState `json:"admission"`         // methods with most refusals first
	Unlisted  int              `json:"admissionNotShown"` // methods with no more refusals than those
	Decisions []decisionState  `json:"decisions"`         // the newest first

	ShowErrors bool      `json:"-"`
	Meanings   []meaning `json:"-"` // of the decisions' reasons, each once
}

// meaning is what a reason means.
type meaning struct {
	Reason policy.Reason
	Means  string
}

// policyState is the data about the current policies.
type policyState struct {
	Source   string   `json:"source"` // "" if they were made in code
	Hash     string   `json:"hash"`
	Mode     string   `json:"mode"`
	SetMode  string   `json:"setMode"` // set by Retrier.SetMode; the mode is the stricter of this and the file's
	SetBy    string   `json:"setBy"`   // who has set it, if that is known
	Entries  []string `json:"entries"` // with another mode than the file's, and services set by hand
	Warnings []string `json:"warnings"`
	Refused  string   `json:"refused,omitempty"` // why the newest file is refused

	Banners     []banner     `json:"-"`
	Diagnostics []diagnostic `json:"-"` // the warnings, with their severities
}

// banner says of all calls, or of a service's, that they are not retried, and who wants that.
type banner struct{ Title, By string }

// diagnostic is a warning or a note.
type diagnostic struct{ Severity, Text string }

// waitingState counts the calls that wait for their next attempt, by what they wait for.
type waitingState struct {
	Calls      int `json:"calls"`
	Backoff    int `json:"backoff"`
	Connection int `json:"connection"`
	Answer     int `json:"answer"`
	Most       int `json:"most"`
}

// deadlineState is about unary calls without a deadline.
type deadlineState struct {
	Default float64 `json:"default"` // their timeout in seconds; 0 for none
	Without uint64  `json:"without"` // how many calls have had neither
}

// admissionState is an [interceptor.AdmissionState].
type admissionState struct {
	Target      string `json:"target"`
	Method      string `json:"method"`
	Running     int    `json:"running"`
	Refused     uint64 `json:"refused"`
	WouldRefuse uint64 `json:"wouldRefuse"`
}

// runningState has the calls of a method that run.
type runningState struct {
	Method string    `json:"method"`
	Target string    `json:"target"`
	Calls  int       `json:"calls"`
	Since  time.Time `json:"since"` // the start of the oldest

	Age string `json:"-"` // of the oldest
}

// budgetState is the data about a balance.
type budgetState struct {
	Name     string   `json:"name"`
	Target   string   `json:"target"`
	Service  string   `json:"service"`
	Kind     string   `json:"kind"`
	Balance  *float64 `json:"balance"` // null: no limit
	Capacity *float64 `json:"capacity"`
	Granted  uint64   `json:"granted"`
	Refused  uint64   `json:"refused"`
	Samples  []sample `json:"samples"` // one every two seconds, the oldest first

	Plot plot `json:"-"`
}

// decisionState is the data about a decision.
type decisionState struct {
	Time      time.Time     `json:"time"`
	Method    string        `json:"method"`
	Target    string        `json:"target"`
	Attempt   int           `json:"attempt"`
	Peer      string        `json:"peer,omitempty"` // its backend
	Code      string        `json:"code"`
	TimedOut  bool          `json:"timedOut"`
	Retry     bool          `json:"retry"`
	Waits     bool          `json:"waits"`             // for a connection, before anything is sent
	ForAnswer bool          `json:"forAnswer"`         // all attempts fail: the next one waits for an answer to another one
	Announced bool          `json:"announced"`         // mode ENFORCE would have sent another attempt, if the budget had paid for it
	Mode      string        `json:"mode"`              // of the call
	Elapsed   float64       `json:"elapsed,omitempty"` // seconds; of an attempt that is slow, when that was found
	Delay     float64       `json:"delay"`             // seconds, before the next attempt
	Reason    policy.Reason `json:"reason"`
	Budget    string        `json:"budget"`
	Error     string        `json:"error,omitempty"`

	After string `json:"-"` // when the next attempt follows: since the end of one that has failed, or since the start of a slow one
}

// banners returns a banner for all calls, if they are not retried, and for each service of which that was set by hand.
func banners(set *methods.Set, switches []interceptor.ModeSwitch) (list []banner) {
	for _, s := range switches {
		mode, title, by := s.Mode, "Mode ", ""
		if s.Service == "" {
			mode = policy.StrictestMode(mode, set.Mode())
			if mode == set.Mode() {
				by = "The policy file has it. "
			}
		} else {
			title = s.Service + ": mode "
		}
		switch mode {
		case policy.ModeOff:
			title += "OFF: no retries and no hedges are sent."
		case policy.ModeObserve:
			title += "OBSERVE: retries and hedges are decided on, but not sent."
		default:
			continue
		}
		switch {
		case s.Mode != mode:
		case s.By != "":
			by += "It was set by hand, by " + s.By + "."
		default:
			by += "It was set by hand."
		}
		list = append(list, banner{title, strings.TrimSpace(by)})
	}
	return list
}

// byHand returns the services whose mode was set by hand.
func byHand(is interceptor.State) (list []string) {
	for _, s := range is.Switches {
		if s.Service != "" {
			list = append(list, s.Service+": "+string(s.Mode)+", set by hand")
		}
	}
	return list
}

// state returns the data about a Retrier, with the decisions about one method, or all for "".
func (p *page) state(i int, method string) retrierState {
	is := p.retriers[i].State()
	set := methods.Describe(is.Policies)
	s := retrierState{
		Number: i + 1, Process: thisProcess, ShowErrors: p.config.ShowErrors,
		Policy: policyState{
			Source: is.Policies.Source(), Hash: is.Policies.Hash(),
			Mode:    string(policy.StrictestMode(set.Mode(), is.Switches[0].Mode)),
			SetMode: string(is.Switches[0].Mode), SetBy: is.Switches[0].By, Banners: banners(set, is.Switches),
			Entries: append(otherModes(set), byHand(is)...), Warnings: []string{},
		},
		Waiting: waitingState{
			Calls: is.Waiting.All(), Backoff: is.Waiting.Backoff, Connection: is.Waiting.Connection, Answer: is.Waiting.Answer,
			Most: compiled.OfSet(is.Policies).MaxWaiting,
		},
		Deadlines: deadlineState{Without: is.WithoutDeadline},
		Budgets:   []budgetState{},
		Decisions: []decisionState{},
	}
	if is.DefaultTimeout > 0 {
		s.Deadlines.Default = is.DefaultTimeout.Seconds()
	}
	s.Admission, s.Unlisted = admissions(is.Admission)
	for _, w := range is.Warnings {
		s.Policy.Warnings = append(s.Policy.Warnings, w.String())
		s.Policy.Diagnostics = append(s.Policy.Diagnostics, diagnostic{w.Severity, w.String()})
	}
	if is.Err != nil {
		s.Policy.Refused = is.Err.Error()
	}
	now := time.Now()
	s.Running, s.Idle = runningCalls(p.logs[i].running.Methods(), now)
	s.Backends, s.Others = p.logs[i].backends.states(now)
	var budgets []interceptor.BudgetState
	budgets, s.Hidden = scarcest(is.Budgets)
	for _, b := range budgets {
		s.Budgets = append(s.Budgets, p.budget(i, b))
	}
	for _, d := range slices.Backward(p.logs[i].all()) {
		if method == "" || method == d.Method {
			s.Decisions = append(s.Decisions, p.decision(d))
		}
	}
	s.Meanings = meanings(s.Decisions)
	return s
}

// maxRunning bounds the methods of which the page shows the calls that run.
const maxRunning = 64

// runningCalls returns the methods with the oldest calls, and how many others there are.
func runningCalls(all []running.Method, now time.Time) (shown []runningState, others int) {
	most := all[:min(len(all), maxRunning)]
	shown = make([]runningState, 0, len(most)) // [] in JSON, not null
	for _, m := range most {
		shown = append(shown, runningState{m.Method, m.Target, m.Calls, m.Since.UTC(), now.Sub(m.Since).Round(100 * time.Millisecond).String()})
	}
	return shown, len(all) - len(shown)
}

// meanings returns those of the decisions' reasons, in the order in which these first stand there.
func meanings(decisions []decisionState) (list []meaning) {
	for _, d := range decisions {
		if slices.ContainsFunc(list, func(m meaning) bool { return m.Reason == d.Reason }) {
			continue
		}
		if m, err := explain.MeaningOf(string(d.Reason)); err == nil {
			list = append(list, meaning{d.Reason, m.Means})
		}
	}
	return list
}

// otherModes returns the entries with another mode than the file's.
func otherModes(set *methods.Set) []string {
	list := []string{}
	for _, p := range set.Policies() {
		if p.Mode() != set.Mode() {
			list = append(list, fmt.Sprintf("%s: %s", p.Name(), p.Mode()))
		}
	}
	return list
}

func (p *page) budget(retrier int, b interceptor.BudgetState) budgetState {
	samples := append([]sample{}, p.history.of(balanceOf(retrier, b))...) // [] in JSON, not null
	s := budgetState{
		Name: cmp.Or(b.Name, "default"), Target: b.Target, Service: b.Service, Kind: b.Kind,
		Granted: b.Granted, Refused: b.Refused, Samples: samples, Plot: newPlot(samples),
	}
	if !math.IsInf(b.Capacity, 1) { // JSON has no infinity
		s.Balance, s.Capacity = &b.Balance, &b.Capacity
	}
	return s
}

func (p *page) decision(d loggedDecision) decisionState {
	s := decisionState{
		Time: d.Time.UTC(), Method: d.Method, Target: d.Target, Attempt: d.Attempt, Code: codename.Of(d.Code), TimedOut: d.Slow,
		Retry: d.WillRetry, Waits: d.Waits, ForAnswer: d.ForAnswer, Announced: announced(d.Event), Mode: string(d.Mode), Reason: d.Reason,
		Budget: cmp.Or(d.Budget, "default"), Elapsed: d.Elapsed.Seconds(),
	}
	if d.Peer != nil {
		s.Peer = d.Peer.String()
	}
	if s.Retry || s.Announced {
		s.Delay = d.Delay.Seconds()
		s.After = explain.Short(d.Elapsed + d.Delay)
	}
	if p.config.ShowErrors {
		s.Error = d.Error
	}
	return s
}

// admissions returns the admission of the methods with most refusals, and the number of the other methods.
func admissions(all []interceptor.AdmissionState) (shown []admissionState, unlisted int) {
	slices.SortStableFunc(all, func(a, b interceptor.AdmissionState) int { return cmp.Compare(b.Refused, a.Refused) })
	most := all[:min(len(all), maxAdmissions)]
	shown = make([]admissionState, 0, len(most)) // [] in JSON, not null
	for _, a := range most {
		shown = append(shown, admissionState(a))
	}
	return shown, len(all) - len(most)
}

// scarcest returns the balances to show, without those that are gone, and the number of hidden ones. If there are too many, it shows those with the smallest share left.
func scarcest(list []interceptor.BudgetState) (shown []interceptor.BudgetState, hidden int) {
	list = slices.DeleteFunc(slices.Clone(list), func(b interceptor.BudgetState) bool { return b.Dropped })
	if len(list) <= maxBudgets {
		return list, 0
	}
	scarce := make([]int, len(list)) // indices of the list
	for i := range list {
		scarce[i] = i
	}
	slices.SortStableFunc(scarce, func(a, b int) int { return cmp.Compare(share(list[a]), share(list[b])) })
	scarce = scarce[:maxBudgets]
	slices.Sort(scarce)
	for _, i := range scarce {
		shown = append(shown, list[i])
	}
	return shown, len(list) - len(shown)
}
