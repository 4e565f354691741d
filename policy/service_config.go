// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/codename"
	"github.com/stagger-go/stagger/internal/document"
	"github.com/stagger-go/stagger/internal/lookup"
	"github.com/stagger-go/stagger/internal/tried"
)

// ServiceConfig returns the set as a plain gRPC service config in JSON, with only gRPC's keys, and notes on everything that
// plain gRPC will not do, or do differently: each has the entry's key, its value if there is one, and the effect. Entries are
// in the order of the config. The policies of APIs follow as separate entries ([Set.WithDescriptors]).
//
// Plain gRPC does not check whether a method is idempotent. So methods that aren't declared idempotent, or only send an
// idempotency key, which gRPC does not send, get an entry without retryPolicy and hedgingPolicy, and a note. With
// assumeIdempotent they keep their policies. Plain gRPC has no modes: an entry that stagger does not enforce ([ModeObserve],
// [ModeOff], percent 0) gets no policy.
//
// gRPC for Go accepts the result ([grpc.WithDefaultServiceConfig]), with one exception: it refuses a loadBalancingConfig with
// no policy that is linked into the program.
//
// [grpc.WithDefaultServiceConfig]: https://pkg.go.dev/google.golang.org/grpc#WithDefaultServiceConfig
func (s *Set) ServiceConfig(assumeIdempotent bool) (config []byte, notes []Diagnostic) {
	plain := plainConfig{channel: s.config.channel()}
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
	if err := e.Encode(plain); err != nil { // a checked set always encodes
		return nil, []Diagnostic{{Severity: SeverityError, Message: "cannot be written as JSON: " + err.Error()}}
	}
	return b.Bytes(), n
}

// entries returns those of the config, then one for each policy of an API. Settings that depend on an entry's names are filled
// in.
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
		list = append(list, MethodConfig{Names: []string{p.name}, Spec: p.spec})
	}
	return list
}

// channel is the parsed [Config.Channel].
type channel struct {
	LoadBalancingPolicy string          `json:"loadBalancingPolicy,omitempty"`
	LoadBalancingConfig json.RawMessage `json:"loadBalancingConfig,omitempty"`
	HealthCheckConfig   json.RawMessage `json:"healthCheckConfig,omitempty"`
	ConnectionScaling   json.RawMessage `json:"connectionScaling,omitempty"`
}

func (c Config) channel() (said channel) {
	_ = c.read(&said) // checkChannel reports an error
	return said
}

// read parses the channel. Unknown keys are errors.
func (c Config) read(said *channel) error {
	if c.Channel == "" {
		return nil
	}
	d := json.NewDecoder(strings.NewReader(c.Channel))
	d.DisallowUnknownFields()
	if err := d.Decode(said); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("more follows the map")
	}
	return nil
}

// text returns the channel in JSON, or "" if it is empty.
func (c channel) text() string {
	if text := string(jsonText(c)); text != "{}" {
		return text
	}
	return ""
}

// jsonText returns a value in JSON, or nil for an empty list or map.
func jsonText(v any) json.RawMessage {
	switch v := v.(type) {
	case []any:
		if len(v) == 0 {
			return nil
		}
	case map[string]any:
		if len(v) == 0 {
			return nil
		}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil { // a file's values always encode
		return nil
	}
	return bytes.TrimSpace(b.Bytes())
}

// balancers returns the loadBalancingConfig, or nil if it isn't a list.
func (c Config) balancers() (list []any) {
	_ = json.Unmarshal(c.channel().LoadBalancingConfig, &list) // checkChannel reports errors
	return list
}

// checkChannel refuses what gRPC refuses in its own keys: the file is also for gRPC.
func checkChannel(report *document.Report, c Config) {
	var said channel
	if err := c.read(&said); err != nil {
		report.Errorf("channel", c.Channel, "must be a map in JSON with keys such as loadBalancingConfig: %v", err)
		return
	}
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
	if said.LoadBalancingConfig != nil && c.balancers() == nil {
		report.Errorf(balancingKey, string(said.LoadBalancingConfig), "must be a list in JSON")
	}
	health := checkMap(report, "healthCheckConfig", said.HealthCheckConfig)
	if name, ok := health["serviceName"].(string); !ok && health["serviceName"] != nil {
		report.Errorf("healthCheckConfig.serviceName", name, "must be the name of the service that is asked for its health; put it in quotes")
	}
	checkMap(report, "connectionScaling", said.ConnectionScaling)
}

func checkMap(report *document.Report, key string, text json.RawMessage) (config map[string]any) {
	if text != nil && (json.Unmarshal(text, &config) != nil || config == nil) {
		report.Errorf(key, string(text), "must be a map in JSON")
	}
	return config
}

// balancingKey is the key of a policy file.
const balancingKey = "loadBalancingConfig"

// warnNotDone warns of parts of a config that have no effect here.
func warnNotDone(report *document.Report, c Config) {
	channel := c.channel()
	for _, said := range [][2]string{
		{"loadBalancingPolicy", channel.LoadBalancingPolicy},
		{balancingKey, string(channel.LoadBalancingConfig)},
		{"healthCheckConfig", string(channel.HealthCheckConfig)},
		{"connectionScaling", string(channel.ConnectionScaling)},
	} {
		if key := said[0]; said[1] != "" && (key != balancingKey || c.balancing() == "") {
			report.Warnf(key, nil, "belongs to the channel and has no effect here: pass it to gRPC, "+
				"with grpc.WithDefaultServiceConfig or from the resolver")
		}
	}
}

// plainConfig is gRPC's service config, with the keys in the usual order.
type plainConfig struct {
	channel

	MethodConfig    []plainMethod    `json:"methodConfig,omitempty"`
	RetryThrottling *plainThrottling `json:"retryThrottling,omitempty"`
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
