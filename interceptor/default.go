// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stagger-go/stagger/internal/policyfile/document"
	"github.com/stagger-go/stagger/policy"
)

// DefaultPolicy has the settings of [Default]. The zero value is ready to use.
type DefaultPolicy struct {
	// Idempotent has full names of methods that may run twice, in addition to those that their .proto declares idempotent
	// (idempotency_level): "/acme.orders.v1.OrderService/GetOrder", for which generated code has the constant
	// OrderService_GetOrder_FullMethodName. A method that isn't declared is retried only if the attempt never left the client.
	Idempotent []string

	// PerAttemptTimeout is how long an attempt may take before another one is sent in parallel. The first good response counts. Choose a
	// time that is longer than nearly all responses take. 0 means no limit: an attempt may take all of the call's time. If the client also
	// makes long polls, whose waits would spend the budget, write a policy file, in which they have no such timeout.
	PerAttemptTimeout time.Duration

	// OnAttemptTimeout is what happens after PerAttemptTimeout, as onAttemptTimeout in a policy file. "" or "HEDGE" sends another attempt
	// in parallel, once the method has had five responses. "RETRY" cancels the slow attempt and sends another one, also for a method's
	// first call. Choose "RETRY" for a command, a job or a function that makes a few calls and ends.
	OnAttemptTimeout string
}

// Default returns a Retrier with a policy for all methods, without a file: 3 attempts, retries after UNAVAILABLE, backoffs of 0.1 s that
// double up to 1 s, with full jitter, and the default budget. Only calls that may run twice are retried: see [DefaultPolicy]. Calls need
// deadlines, as always in gRPC. The error names the wrong field of p, or the wrong option.
//
// For other settings, write a policy file: [Watch] follows one, and [Retrier.Reload] gives its policies to this Retrier.
func Default(p DefaultPolicy, options ...Option) (*Retrier, error) {
	if p.PerAttemptTimeout < 0 {
		return nil, fmt.Errorf("interceptor: DefaultPolicy.PerAttemptTimeout: %v: must be positive, or 0 for no limit", p.PerAttemptTimeout)
	}
	switch {
	case p.OnAttemptTimeout != "" && p.OnAttemptTimeout != "HEDGE" && p.OnAttemptTimeout != "RETRY":
		return nil, fmt.Errorf(`interceptor: DefaultPolicy.OnAttemptTimeout: %q: must be "HEDGE" or "RETRY"`, p.OnAttemptTimeout)
	case p.OnAttemptTimeout != "" && p.PerAttemptTimeout == 0:
		return nil, fmt.Errorf("interceptor: DefaultPolicy.OnAttemptTimeout: %q: has no effect without PerAttemptTimeout: set that, or leave this out",
			p.OnAttemptTimeout)
	}
	seen := map[string]int{}
	for i, method := range p.Idempotent {
		if !isFullMethod(method) {
			return nil, fmt.Errorf("interceptor: DefaultPolicy.Idempotent[%d]: %q: must be the full name of a method, such as "+
				`"/acme.orders.v1.OrderService/GetOrder"`, i, method)
		}
		if first, twice := seen[method]; twice {
			return nil, fmt.Errorf("interceptor: DefaultPolicy.Idempotent[%d]: %q: is there twice, first at %d", i, method, first)
		}
		seen[method] = i
	}
	file, err := p.file()
	if err != nil {
		return nil, fmt.Errorf("interceptor: %w", err)
	}
	set, err := policy.Parse(defaultSource, file)
	if wrong, ok := errors.AsType[*policy.Error](err); ok {
		for i, d := range wrong.Diagnostics {
			wrong.Diagnostics[i] = inDefaultsWords(d)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("interceptor: %w", err)
	}
	return New(set, options...)
}

// defaultSource is the name of the text that Default writes.
const defaultSource = "interceptor.Default"

// inDefaultsWords returns what a diagnostic says about a policy file in the words of [DefaultPolicy]: its users have no file.
func inDefaultsWords(d policy.Diagnostic) policy.Diagnostic {
	if d.File != "" && d.File != defaultSource {
		return d // of a file that the Retrier is given later
	}
	d.File, d.Line, d.Column = "", 0, 0
	switch index := nameInDefault.FindStringSubmatch(d.Field); {
	case index != nil:
		d.Field = "DefaultPolicy.Idempotent[" + index[1] + "]"
	case strings.HasSuffix(d.Field, "perAttemptTimeout"):
		d.Field = "DefaultPolicy.PerAttemptTimeout"
	case d.Field == "retryPolicy":
		d.Field = "DefaultPolicy"
	case d.Field == "" && d.Severity == document.SeverityError, strings.HasPrefix(d.Field, "methodConfig"):
		d.Field = "DefaultPolicy.Idempotent"
	}
	d.Message = defaultsWords.Replace(d.Message)
	return d
}

var (
	nameInDefault = regexp.MustCompile(`^methodConfig\[1\]\.name\[([0-9]+)\]`)
	defaultsWords = strings.NewReplacer(
		`"stagger lint" names them, and says how to declare them`, "name those that may run twice, or set their idempotency_level",
		"; a service without a method stands for all its methods, and {} for everything", "; write the full name of each method",
		"; give each a map of its own: name: [{service: …, method: …}, {service: …, method: …}]", "; give each an element of its own",
		"set a timeout of the entry, or defaultTimeout at the top of the policy file", "give the Retrier interceptor.WithDefaultTimeout",
		"Declare it in the policy file, or pass it with interceptor.WithBudget", "Pass it with interceptor.WithBudget",
		"; maxAttemptsLimit in the policy file allows more", "",
		"the policy file has no entry for the method, or mode OBSERVE", "the mode is OBSERVE",
		"A budget with scope PROCESS needs only one", "A function of interceptor.WithBudget may return one for all targets",
	)
)

// byDefault reports whether the policies are those of [Default].
func (r *rules) byDefault() bool { return r != nil && r.set.Source() == defaultSource }

// isFullMethod reports whether name is the path of a method, as gRPC and its generated code write it.
func isFullMethod(name string) bool {
	rest, rooted := strings.CutPrefix(name, "/")
	service, method, whole := strings.Cut(rest, "/")
	return rooted && utf8.ValidString(name) && whole && service != "" && method != "" && !strings.Contains(method, "/")
}

// file returns the policy as a policy file in JSON.
func (p DefaultPolicy) file() ([]byte, error) {
	type object map[string]any
	retry := object{
		"maxAttempts":          3,
		"initialBackoff":       "0.1s",
		"maxBackoff":           "1s",
		"backoffMultiplier":    2,
		"retryableStatusCodes": []string{"UNAVAILABLE"},
	}
	if p.PerAttemptTimeout > 0 {
		retry["perAttemptTimeout"] = fmt.Sprintf("%d.%09ds", p.PerAttemptTimeout/time.Second, p.PerAttemptTimeout%time.Second)
	}
	if p.OnAttemptTimeout != "" {
		retry["onAttemptTimeout"] = p.OnAttemptTimeout
	}
	entries := []object{{"name": []object{{}}, "retryPolicy": retry}}
	names := make([]object, 0, len(p.Idempotent))
	for _, method := range p.Idempotent { // naming a method declares it idempotent
		service, name, _ := strings.Cut(method[1:], "/")
		names = append(names, object{"service": service, "method": name})
	}
	if len(names) > 0 {
		entries = append(entries, object{"name": names, "retryPolicy": retry})
	}
	return json.Marshal(object{"methodConfig": entries})
}
