// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "github.com/stagger-go/stagger/internal/document"

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
		names = append(names, CodeName(c))
	}
	return names
}
