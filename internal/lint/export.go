// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/backoff"
	"github.com/stagger-go/stagger/internal/hooks/balancing"
	"github.com/stagger-go/stagger/internal/methods"
	"github.com/stagger-go/stagger/internal/policyfile/codename"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/policyfile/defaults"
	"github.com/stagger-go/stagger/internal/policyfile/document"
	"github.com/stagger-go/stagger/internal/policyfile/lookup"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/policy"
)

// Export returns the set as a plain gRPC service config in JSON, with only gRPC's keys, and notes on everything that
// plain gRPC will not do, or do differently: each has the entry's key, its value if there is one, and the effect. Entries are
// in the order of the config.
//
// Plain gRPC does not check whether a method is idempotent. So methods that aren't declared idempotent, or only send an
// idempotency key, which gRPC does not send, get an entry without retryPolicy and hedgingPolicy, and a note. With
// assumeIdempotent they keep their policies. Plain gRPC has no modes: an entry that stagger does not enforce ([policy.ModeObserve],
// [policy.ModeOff]) gets no policy. maxAttempts is written as maxAttemptsLimit cuts it.
//
// gRPC for Go accepts the result ([grpc.WithDefaultServiceConfig]), with one exception: it refuses a loadBalancingConfig with
// no policy that is linked into the program.
//
// [grpc.WithDefaultServiceConfig]: https://pkg.go.dev/google.golang.org/grpc#WithDefaultServiceConfig
func Export(set *methods.Set, assumeIdempotent bool) (config []byte, notes []policy.Diagnostic) {
	var (
		plain plainConfig
		n     configNotes
		c     = set.Compiled()
	)
	channel := set.Compiled().Channel()
	_ = json.Unmarshal([]byte(channel), &plain) // the set is checked
	if needsElsewhere(plain.LoadBalancingConfig) {
		n.add(balancingKey, "", "clients without stagger refuse the whole config; list {round_robin: {}} behind "+balancing.Policy)
	}
	for i, m := range c.Methods {
		path := document.Item("methodConfig", i)
		m, key, why := enforced(set, capped(m, c.MaxAttemptsLimit))
		if key != "" {
			n.add(path+"."+key, "", "left out: "+why)
		}
		parts := []spec.MethodConfig{m}
		if !assumeIdempotent {
			var left []leftOut
			parts, left = split(set, m)
			for _, l := range left {
				n.add(document.Item(path+".name", l.index), l.name, l.key+" left out: "+l.why)
			}
		}
		for _, part := range parts {
			plain.MethodConfig = append(plain.MethodConfig, plainEntry(part))
			n.entry(set, path, part)
		}
	}
	n.time("defaultTimeout", c.DefaultTimeout, 0, "gRPC lets calls without a deadline wait for ever; an entry's timeout "+
		"would also end streams, and cut longer deadlines")
	if t := c.RetryThrottling; t != nil {
		plain.RetryThrottling = &plainThrottling{MaxTokens: t.MaxTokens, TokenRatio: t.TokenRatio}
		n.add("retryThrottling", "", "gRPC for Go counts for each connection, and stagger for all connections to a target together")
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(plain); err != nil { // a checked set always encodes
		return nil, []policy.Diagnostic{{Severity: document.SeverityError, Message: "cannot be written as JSON: " + err.Error()}}
	}
	return document.PrintableJSON(b.Bytes()), n
}

// needsElsewhere reports whether a client without stagger finds no policy in the list, and so refuses the whole config.
func needsElsewhere(config json.RawMessage) bool {
	var list []json.RawMessage
	_ = json.Unmarshal(config, &list) // the set is checked
	for _, one := range list {
		if !bytes.Contains(one, []byte(strconv.Quote(balancing.Policy))) {
			return false
		}
	}
	return len(list) > 0
}

// enforced returns an entry for clients without modes: without a policy that stagger does not enforce. The entry stays even if
// it is otherwise empty, because it hides less specific entries from its methods. key is the removed key, or "".
func enforced(set *methods.Set, m spec.MethodConfig) (left spec.MethodConfig, key, why string) {
	if len(m.Names) == 0 || m.Retry == nil && m.Hedge == nil {
		return m, "", ""
	}
	mode := set.Lookup(m.Names[0]).Mode()
	if mode == policy.ModeEnforce {
		return m, "", ""
	}
	why = "the mode is " + string(mode)
	key = strategy(m)
	m.Retry, m.Hedge, m.IdempotencyKey = nil, nil, ""
	return m, key, why
}

// strategy returns the key of an entry's policy.
func strategy(m spec.MethodConfig) string {
	if m.Hedge != nil {
		return "hedgingPolicy"
	}
	return "retryPolicy"
}

// leftOut is a name whose policy is removed for clients that don't check whether a method is idempotent.
type leftOut struct {
	index int // methodConfig[…].name[index]
	name  string
	key   string // "retryPolicy" or "hedgingPolicy"
	why   string
}

// split splits an entry in two: one for the methods that any client may retry, and one without a policy for the others. The
// second stays even if it is otherwise empty, because it hides less specific entries from its methods.
func split(set *methods.Set, m spec.MethodConfig) (parts []spec.MethodConfig, left []leftOut) {
	if m.Retry == nil && m.Hedge == nil {
		return []spec.MethodConfig{m}, nil
	}
	safe, rest := m, m
	safe.Names, safe.Idempotency = nil, "ASSUME"
	rest.Names, rest.Retry, rest.Hedge, rest.IdempotencyKey = nil, nil, nil, ""
	keyed := m.IdempotencyKey != "" && cmp.Or(m.Idempotency, set.Compiled().Idempotency) != "ASSUME"
	for j, name := range m.Names {
		declared := compiled.Of(set.Lookup(name)).Idempotency
		if declared == "ASSUME" && !keyed {
			safe.Names = append(safe.Names, name)
			continue
		}
		var methods []string // declared idempotent by their descriptors
		if declared != "NONE" {
			methods, _ = set.SafeMethods(name)
		}
		safe.Names = append(safe.Names, methods...)
		if !strings.HasSuffix(name, "/") && len(methods) > 0 {
			continue
		}
		rest.Names = append(rest.Names, name)
		left = append(left, leftOut{j, name, strategy(m), why(declared, keyed, methods)})
	}
	if len(safe.Names) > 0 || len(m.Names) == 0 {
		parts = append(parts, safe)
	}
	if len(rest.Names) > 0 {
		parts = append(parts, rest)
	}
	return parts, left
}

func why(declared string, keyed bool, but []string) string {
	because := "nothing declares it idempotent"
	switch {
	case keyed:
		because = "gRPC sends no idempotency key"
	case declared == "NONE":
		because = "idempotency is NONE"
	}
	if len(but) == 0 {
		return because
	}
	list := make([]string, len(but))
	for i, n := range but {
		_, list[i] = lookup.Split(n)
	}
	return because + ", but for " + strings.Join(list, ", ")
}

// otherClients warns of entries and names whose methods other clients would retry, if they used the same file.
func (l *linter) otherClients() {
	const (
		says       = `other gRPC clients that are given this file retry it anyway (%s); give them what "stagger export" writes`
		saysOfSome = `other gRPC clients that are given this file retry %s anyway (%s); give them what "stagger export" writes`
	)
	for i, m := range l.config.Methods {
		path := document.Item("methodConfig", i)
		m, key, why := enforced(l.set, m)
		if key != "" {
			l.warn(path+"."+key, nil, says, why)
		}
		_, left := split(l.set, m)
		var reasons []string
		names := map[string][]leftOut{} // by reason
		for _, name := range left {
			if names[name.why] == nil {
				reasons = append(reasons, name.why)
			}
			names[name.why] = append(names[name.why], name)
		}
		for _, why := range reasons {
			switch list := names[why]; len(list) {
			case 1:
				l.warn(document.Item(path+".name", list[0].index), list[0].name, says, why)
			default:
				l.warn(path+".name", nil, saysOfSome, atMost(namesOf(list)), why)
			}
		}
	}
}

func namesOf(list []leftOut) []string {
	names := make([]string, len(list))
	for i, l := range list {
		names[i] = l.name
	}
	return names
}

// plainConfig is gRPC's service config, with the keys in the usual order.
type plainConfig struct {
	LoadBalancingPolicy string           `json:"loadBalancingPolicy,omitempty"`
	LoadBalancingConfig json.RawMessage  `json:"loadBalancingConfig,omitempty"`
	HealthCheckConfig   json.RawMessage  `json:"healthCheckConfig,omitempty"`
	ConnectionScaling   json.RawMessage  `json:"connectionScaling,omitempty"`
	MethodConfig        []plainMethod    `json:"methodConfig,omitempty"`
	RetryThrottling     *plainThrottling `json:"retryThrottling,omitempty"`
}

type plainMethod struct {
	Name                    []plainName   `json:"name"`
	WaitForReady            *bool         `json:"waitForReady,omitempty"`
	Timeout                 string        `json:"timeout,omitempty"`
	MaxRequestMessageBytes  *int          `json:"maxRequestMessageBytes,omitempty"`
	MaxResponseMessageBytes *int          `json:"maxResponseMessageBytes,omitempty"`
	RetryPolicy             *plainRetry   `json:"retryPolicy,omitempty"`
	HedgingPolicy           *plainHedging `json:"hedgingPolicy,omitempty"`
}

type plainName struct {
	Service string `json:"service,omitempty"`
	Method  string `json:"method,omitempty"`
}

type plainRetry struct {
	MaxAttempts          int      `json:"maxAttempts"`
	InitialBackoff       string   `json:"initialBackoff"`
	MaxBackoff           string   `json:"maxBackoff"`
	BackoffMultiplier    float64  `json:"backoffMultiplier"`
	RetryableStatusCodes []string `json:"retryableStatusCodes"`
}

type plainHedging struct {
	MaxAttempts         int      `json:"maxAttempts"`
	HedgingDelay        string   `json:"hedgingDelay"`
	NonFatalStatusCodes []string `json:"nonFatalStatusCodes,omitempty"`
}

type plainThrottling struct {
	MaxTokens  int     `json:"maxTokens"`
	TokenRatio float64 `json:"tokenRatio"`
}

func plainEntry(m spec.MethodConfig) plainMethod {
	e := plainMethod{
		Name:                    []plainName{},
		WaitForReady:            m.WaitForReady,
		MaxRequestMessageBytes:  m.MaxRequestMessageBytes,
		MaxResponseMessageBytes: m.MaxResponseMessageBytes,
	}
	for _, n := range m.Names {
		service, method := lookup.Split(n)
		e.Name = append(e.Name, plainName{service, method})
	}
	if m.Timeout > 0 {
		e.Timeout = document.FormatDuration(m.Timeout)
	}
	if r := m.Retry; r != nil {
		e.RetryPolicy = &plainRetry{
			MaxAttempts:          r.MaxAttempts,
			InitialBackoff:       document.FormatDuration(r.Backoff.Initial),
			MaxBackoff:           document.FormatDuration(r.Backoff.Max),
			BackoffMultiplier:    r.Backoff.Multiplier,
			RetryableStatusCodes: codeNames(r.RetryableStatusCodes),
		}
	}
	if h := m.Hedge; h != nil {
		e.HedgingPolicy = &plainHedging{
			MaxAttempts: h.MaxAttempts, HedgingDelay: document.FormatDuration(h.HedgingDelay),
			NonFatalStatusCodes: codeNames(h.NonFatalStatusCodes),
		}
	}
	return e
}

func codeNames(list []codes.Code) []string {
	names := make([]string, len(list))
	for i, c := range list {
		names[i] = codename.Of(c)
	}
	return names
}

// configNotes collects notes on what plain gRPC will not do.
type configNotes []policy.Diagnostic

func (n *configNotes) add(field, value, message string) {
	*n = append(*n, policy.Diagnostic{Severity: document.SeverityNote, Field: field, Value: value, Message: message})
}

// entry notes the parts of an entry that plain gRPC lacks.
func (n *configNotes) entry(set *methods.Set, path string, m spec.MethodConfig) {
	if len(m.Names) == 0 {
		return
	}
	if m.IdempotencyKey != "" {
		n.add(path+".idempotencyKey", m.IdempotencyKey, "gRPC sends no such key")
	}
	if m.Admission == "REFUSE" {
		n.add(path+".admission", "REFUSE", "gRPC also sends calls that can't be served in time")
	}
	if m.Retry == nil && m.Hedge == nil {
		return
	}
	n.unsafe(set, path, m)
	if m.Retry != nil {
		n.retry(path+".retryPolicy", &m.Policy)
	} else {
		n.hedge(path+".hedgingPolicy", &m.Policy)
	}
}

// unsafe notes the most important difference.
func (n *configNotes) unsafe(set *methods.Set, path string, m spec.MethodConfig) {
	if m.IdempotencyKey != "" || m.Idempotency == "ASSUME" {
		return
	}
	for _, name := range m.Names {
		switch said := compiled.Of(set.Lookup(name)).Idempotency; said {
		case "ASSUME":
			continue
		case "NONE":
			n.add(path+".idempotency", said, "gRPC retries these methods as if they were idempotent")
		default:
			n.add(path+".idempotency", said, "gRPC does not check whether a method is idempotent, and retries all methods of the entry")
		}
		return
	}
}

func (n *configNotes) attempts(path string, most int) {
	if most > defaults.MaxAttempts {
		n.add(path+".maxAttempts", strconv.Itoa(most), fmt.Sprintf("gRPC cuts it to %d (gRFC A6)", defaults.MaxAttempts))
	}
}

func (n *configNotes) budget(path, name string) {
	if name != "NONE" {
		n.add(path+".budget", name, "gRPC has no budget except retryThrottling; without that, nothing bounds what all calls together add")
	}
}

func (n *configNotes) pushback(path string, s *spec.Policy) {
	n.time(path+".maxPushback", s.MaxPushback, defaults.MaxPushback, "gRPC waits for as long as a server says")
}

// time notes a duration that is set, and isn't the usual one.
func (n *configNotes) time(field string, d, usual time.Duration, message string) {
	if d != 0 && d != usual {
		n.add(field, document.FormatDuration(d), message)
	}
}

// retry notes the parts of a retry policy that plain gRPC lacks.
func (n *configNotes) retry(path string, s *spec.Policy) {
	r := s.Retry
	b := r.Backoff
	n.attempts(path, r.MaxAttempts)
	if b.Growth == backoff.GrowthLinear {
		n.add(path+".growth", "LINEAR", "gRPC multiplies the backoff each time (EXPONENTIAL)")
	}
	if b.Jitter != backoff.JitterProportional {
		n.add(path+".jitter", string(cmp.Or(b.Jitter, backoff.JitterFull)), "gRPC spreads a backoff by 20 % to both sides (PROPORTIONAL)")
	}
	if r.FirstRetry == "AT_ONCE" {
		n.add(path+".firstRetry", "AT_ONCE", "gRPC waits initialBackoff before the first retry")
	}
	n.time(path+".perAttemptTimeout", r.PerAttemptTimeout, 0, "gRPC waits for a slow attempt until the call's deadline")
	n.time(path+".messageTimeout", r.MessageTimeout, 0, "gRPC waits for a silent stream until the call's deadline")
	n.budget(path, r.Budget)
	n.pushback(path, s)
	for i, c := range r.PerCode {
		n.add(document.Item(path+".perCode", i), codename.List(c.Codes), "gRPC has no separate settings for codes")
	}
	if r.Chain != "ALLOW" && r.Chain != "" {
		n.add(path+".chain", r.Chain, "gRPC retries inside of retried calls too")
	}
	if wait := s.MaxConnectionWait; wait != nil {
		n.time(path+".maxConnectionWait", *wait, 0, "with gRPC, retries fail immediately while there is no connection, unless waitForReady holds")
	}
}

// hedge notes the parts of a hedging policy that plain gRPC lacks.
func (n *configNotes) hedge(path string, s *spec.Policy) {
	h := s.Hedge
	n.add(path, "", "gRPC for Go does not hedge: one attempt")
	n.attempts(path, h.MaxAttempts)
	if h.Quantile > 0 {
		n.add(path+".hedgingQuantile", "", "gRPC hedges after hedgingDelay, "+document.FormatDuration(h.HedgingDelay))
	}
	n.budget(path, h.Budget)
	n.pushback(path, s)
}
