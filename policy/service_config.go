// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"encoding/json"

	"github.com/stagger-go/stagger/internal/codename"
	"github.com/stagger-go/stagger/internal/document"
	policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"
)

// ServiceConfig returns the set as a plain gRPC service config, in JSON with only the keys that gRPC
// defines, and notes on what plain gRPC will not do of it, or do otherwise: each names the entry's key,
// has its value if there is one, and says what follows. Entries stand in the order of the config;
// policies that come with APIs follow as entries of their own ([Set.WithDescriptors]).
//
// Plain gRPC does not ask whether a method is safe to repeat. So methods that nobody declares safe, or only an
// idempotency key, which gRPC does not send, get an entry without retryPolicy and hedgingPolicy, and a note of
// that. With assumeIdempotent they keep their policies. Nor does plain gRPC know modes: an entry that stagger does not
// enforce ([ModeObserve], [ModeOff], percent 0) gets no policy.
//
// gRPC for Go takes it ([grpc.WithDefaultServiceConfig]), with one exception: it refuses a
// loadBalancingConfig that lists no policy which is linked into the program.
//
// [grpc.WithDefaultServiceConfig]: https://pkg.go.dev/google.golang.org/grpc#WithDefaultServiceConfig
func (s *Set) ServiceConfig(assumeIdempotent bool) (config []byte, notes []Diagnostic) {
	plain := plainConfig{
		LoadBalancingPolicy: s.config.channel.policy,
		LoadBalancingConfig: s.config.channel.config,
		HealthCheckConfig:   s.config.channel.health,
		ConnectionScaling:   s.config.channel.scaling,
	}
	var n configNotes
	if s.config.channel.needsElsewhere() {
		n.add(balancingKey, "", "clients without package balancer refuse the whole config; list {round_robin: {}} behind "+RetryElsewhere)
	}
	n.transparent("transparentRetry", s.config.TransparentRetry)
	for i, m := range s.entries() {
		path, of := document.Item("methodConfig", i), reachOf(s.config.Mode, s.config.Percent).and(reachOf(m.Mode, m.Percent))
		m, key, why := s.enforced(m)
		n.mode(path, key, why, of, m)
		entry := m
		m, at, unknown := s.withoutPatterns(m)
		n.unknownPackages(path, entry.Names, unknown)
		if len(m.Names) == 0 && len(unknown) > 0 {
			continue
		}
		parts := []MethodConfig{m}
		if !assumeIdempotent {
			var left []leftOut
			parts, left = s.split(i, m, at)
			n.leftOut(path, left)
		}
		for _, part := range parts {
			plain.MethodConfig = append(plain.MethodConfig, plainEntry(part))
			n.entry(path, part)
		}
	}
	if t := s.config.Throttling; t != nil {
		plain.RetryThrottling = &plainThrottling{MaxTokens: t.MaxTokens, TokenRatio: t.TokenRatio}
		n.add("retryThrottling", "", "gRPC for Go counts for each connection, and stagger for all connections to a target together")
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(plain); err != nil { // a checked set holds nothing that JSON cannot
		return nil, []Diagnostic{{Severity: SeverityError, Message: "cannot be written as JSON: " + err.Error()}}
	}
	return b.Bytes(), n
}

// entries are those of the config, then one for each policy that comes with an API. What an entry leaves to
// its names is settled.
func (s *Set) entries() []MethodConfig {
	list := make([]MethodConfig, 0, len(s.config.Methods))
	next := 0
	for _, m := range s.config.Methods {
		for _, p := range s.policies[next : next+len(m.Names)] {
			if m.Idempotency == IdempotencyByName || p.spec.Idempotency != IdempotencyAssume {
				m.Idempotency = p.spec.Idempotency // the strictest of its names
			}
		}
		next += len(m.Names)
		list = append(list, m)
	}
	for _, p := range s.policies[next:] {
		list = append(list, MethodConfig{Names: []Name{p.name}, Spec: p.spec})
	}
	return list
}

// channel is what a service config says of the channel, for gRPC alone.
type channel struct {
	policy          string
	config          []any
	health, scaling map[string]any
}

func channelOf(f *policyv1.PolicyFile) channel {
	c := channel{policy: f.GetLoadBalancingPolicy()}
	if f.GetLoadBalancingConfig() != nil {
		c.config = f.GetLoadBalancingConfig().AsSlice()
	}
	if f.GetHealthCheckConfig() != nil {
		c.health = f.GetHealthCheckConfig().AsMap()
	}
	if f.GetConnectionScaling() != nil {
		c.scaling = f.GetConnectionScaling().AsMap()
	}
	return c
}

// checkChannel refuses what gRPC refuses of the keys that only it carries out: the file is for it too.
func checkChannel(report *document.Report, c channel) {
	for i, one := range c.config {
		field := document.Item(balancingKey, i)
		entry, ok := one.(map[string]any)
		if !ok || len(entry) != 1 {
			report.Errorf(field, nil, oneBalancing)
			continue
		}
		for name, config := range entry {
			if _, ok := config.(map[string]any); !ok {
				report.Errorf(document.Under(field, name), nil, "must be a map of the policy's settings; {} for none")
			}
		}
	}
	checkElsewhere(report, balancingKey, c.config)
	if name, ok := c.health["serviceName"].(string); !ok && c.health["serviceName"] != nil {
		report.Errorf("healthCheckConfig.serviceName", name, "must be the name of the service that is asked for its health; put it in quotes")
	}
}

// plainConfig is gRPC's service config, with the keys in the order in which people write them.
type plainConfig struct {
	LoadBalancingPolicy string           `json:"loadBalancingPolicy,omitempty"`
	LoadBalancingConfig []any            `json:"loadBalancingConfig,omitempty"`
	HealthCheckConfig   map[string]any   `json:"healthCheckConfig,omitempty"`
	ConnectionScaling   map[string]any   `json:"connectionScaling,omitempty"`
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

func plainEntry(m MethodConfig) plainMethod {
	e := plainMethod{
		Name:                    []plainName{},
		WaitForReady:            m.WaitForReady,
		MaxRequestMessageBytes:  m.MaxRequestBytes,
		MaxResponseMessageBytes: m.MaxResponseBytes,
	}
	for _, n := range m.Names {
		e.Name = append(e.Name, plainName(n))
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
			RetryableStatusCodes: codeNames(r.Codes),
		}
	}
	if h := m.Hedge; h != nil {
		e.HedgingPolicy = &plainHedging{
			MaxAttempts: h.MaxAttempts, HedgingDelay: document.FormatDuration(h.Delay), NonFatalStatusCodes: codeNames(h.NonFatal),
		}
	}
	return e
}

func codeNames(s CodeSet) []string {
	names := make([]string, 0, maxCode)
	for _, c := range s.List() {
		names = append(names, codename.Of(c))
	}
	return names
}
