// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"encoding/json"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/codename"
	"github.com/stagger-go/stagger/internal/document"
	"github.com/stagger-go/stagger/internal/tried"
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
		LoadBalancingPolicy: s.config.LoadBalancingPolicy,
		LoadBalancingConfig: json.RawMessage(s.config.LoadBalancingConfig),
		HealthCheckConfig:   json.RawMessage(s.config.HealthCheckConfig),
		ConnectionScaling:   json.RawMessage(s.config.ConnectionScaling),
	}
	var n configNotes
	if s.config.needsElsewhere() {
		n.add(balancingKey, "", "clients without package balancer refuse the whole config; list {round_robin: {}} behind "+tried.Balancer)
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
			if m.Idempotency == "" || p.spec.Idempotency != IdempotencyAssume {
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

// jsonText is a list or a map in JSON; "" if nothing is in it.
func jsonText[T []any | map[string]any](v T) string {
	if len(v) == 0 {
		return ""
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil { // a file holds nothing that JSON cannot
		return ""
	}
	return strings.TrimSpace(b.String())
}

// balancers is the loadBalancingConfig; nil if it is no list.
func (c Config) balancers() (list []any) {
	_ = json.Unmarshal([]byte(c.LoadBalancingConfig), &list) // which checkChannel reports
	return list
}

// checkChannel refuses what gRPC refuses of the keys that only it carries out: the file is for it too.
func checkChannel(report *document.Report, c Config) {
	for i, one := range c.balancers() {
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
	checkElsewhere(report, balancingKey, c.balancers())
	if c.LoadBalancingConfig != "" && c.balancers() == nil {
		report.Errorf(balancingKey, c.LoadBalancingConfig, "must be a list in JSON")
	}
	health := checkMap(report, "healthCheckConfig", c.HealthCheckConfig)
	if name, ok := health["serviceName"].(string); !ok && health["serviceName"] != nil {
		report.Errorf("healthCheckConfig.serviceName", name, "must be the name of the service that is asked for its health; put it in quotes")
	}
	checkMap(report, "connectionScaling", c.ConnectionScaling)
}

func checkMap(report *document.Report, key, text string) (config map[string]any) {
	if text != "" && (json.Unmarshal([]byte(text), &config) != nil || config == nil) {
		report.Errorf(key, text, "must be a map in JSON")
	}
	return config
}

// balancingKey is the key of a policy file.
const balancingKey = "loadBalancingConfig"

// warnNotDone says what of a config has no effect here.
func warnNotDone(report *document.Report, c Config) {
	for _, said := range [][2]string{
		{"loadBalancingPolicy", c.LoadBalancingPolicy},
		{balancingKey, c.LoadBalancingConfig},
		{"healthCheckConfig", c.HealthCheckConfig},
		{"connectionScaling", c.ConnectionScaling},
	} {
		if key := said[0]; said[1] != "" && (key != balancingKey || c.balancing() == "") {
			report.Warnf(key, nil, "belongs to the channel and has no effect here: pass it to gRPC, "+
				"with grpc.WithDefaultServiceConfig or from the resolver")
		}
	}
}

// plainConfig is gRPC's service config, with the keys in the order in which people write them.
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

func codeNames(list []codes.Code) []string {
	names := make([]string, len(list))
	for i, c := range list {
		names[i] = codename.Of(c)
	}
	return names
}
