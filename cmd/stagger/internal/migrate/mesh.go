// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// object is a part of a mesh's configuration.
type object = map[string]any

// meshPolicy is the part of a mesh's configuration that a policy file can express.
type meshPolicy struct {
	budget  string // of kind ratio or concurrent, in YAML; "" if there is none
	head    []string
	entries []meshEntry
}

// meshEntry is a route with retries.
type meshEntry struct {
	comments []string
	names    []string // in YAML
	timeout  time.Duration
	attempts int
	codes    []string
	perTry   time.Duration
	base     time.Duration
	max      time.Duration
}

func (e *meshEntry) comment(format string, args ...any) {
	e.comments = append(e.comments, fmt.Sprintf(format, args...))
}

// fromMesh returns the policy file for a configuration of Envoy, Istio, Linkerd or the Gateway API, or nil for any other
// text.
func fromMesh(name string, data []byte) ([]byte, error) {
	var p meshPolicy
	found := false
	for decoder := yaml.NewDecoder(bytes.NewReader(data)); ; {
		var resource object
		err := decoder.Decode(&resource)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, nil //nolint:nilerr // policy.Parse reports it, with the line
		}
		before := len(p.entries)
		known := p.add(resource)
		found = found || known
		if known && len(p.entries) == before && p.budget == "" {
			p.head = append(p.head, fmt.Sprintf("%v %v has no settings for retries.", resource["kind"], at(resource, "metadata", "name")))
		}
	}
	if !found {
		return nil, nil
	}
	if len(p.entries) == 0 && p.budget == "" {
		return nil, fmt.Errorf("%s: has no settings for retries that a policy file can express", name)
	}
	return p.yaml(), nil
}

// add adds a resource. It reports whether the kind is known.
func (p *meshPolicy) add(r object) bool {
	switch kind := text(r["kind"]); {
	case kind == "VirtualService":
		p.virtualService(r)
	case kind == "DestinationRule":
		p.destinationRule(r)
	case kind == "BackendTrafficPolicy" || kind == "XBackendTrafficPolicy":
		p.backendTraffic(r)
	case kind == "ServiceProfile":
		p.serviceProfile(r)
	case kind == "GRPCRoute" || kind == "Service" && annotated(r):
		p.linkerd(r)
	case kind == "" && contains(r, "retry_policy", "retry_budget"):
		p.envoy(r)
	default:
		return false
	}
	return true
}

// yaml writes the policy file.
func (p *meshPolicy) yaml() []byte {
	var b strings.Builder
	b.WriteString(schema)
	for _, line := range p.head {
		b.WriteString("# " + line + "\n")
	}
	if p.budget != "" {
		fmt.Fprintf(&b, "budgets:\n  - name: mesh\n    %s\n", p.budget)
	} else {
		b.WriteString("# No retry budget: each policy has the default one, 10 % of the calls to a target. The proxy had its own limits.\n")
	}
	if len(p.entries) == 0 {
		b.WriteString("# Entries whose retryPolicy says \"budget: mesh\" use it.\n")
		return []byte(b.String())
	}
	b.WriteString("methodConfig:\n")
	for _, e := range p.entries {
		for _, c := range e.comments {
			b.WriteString("  # " + c + "\n")
		}
		fmt.Fprintf(&b, "  - name: [%s]\n", strings.Join(e.names, ", "))
		if e.timeout > 0 {
			fmt.Fprintf(&b, "    timeout: %s\n", seconds(e.timeout))
		}
		fmt.Fprintf(&b, "    retryPolicy:\n      maxAttempts: %d\n      initialBackoff: %s\n      maxBackoff: %s\n      backoffMultiplier: 2\n      retryableStatusCodes: [%s]\n",
			e.attempts, seconds(e.base), seconds(e.max), strings.Join(e.codes, ", "))
		if e.perTry > 0 {
			fmt.Fprintf(&b, "      perAttemptTimeout: %s\n      onAttemptTimeout: RETRY\n", seconds(e.perTry))
		}
		if p.budget != "" {
			b.WriteString("      budget: mesh\n")
		}
	}
	return []byte(b.String())
}

func seconds(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "s"
}

// newEntry returns an entry with Envoy's defaults, which Istio and Linkerd share: one retry, after 0 to 25 ms.
func newEntry() meshEntry {
	return meshEntry{attempts: 2, base: 25 * time.Millisecond, max: 250 * time.Millisecond}
}

// path adds the method or service of a gRPC path; prefix means that the path is only a prefix.
func (e *meshEntry) path(path string, prefix bool) {
	service, method, both := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	switch {
	case service == "":
		e.everything("the route is for all paths")
	case both && method != "" && !prefix:
		e.named(service, method)
	case method == "" && (both || !prefix):
		e.named(service, "")
	default:
		e.everything(fmt.Sprintf("a policy file cannot name methods that begin with %q", path))
	}
}

func (e *meshEntry) named(service, method string) {
	if method == "" {
		e.names = append(e.names, "{service: "+quote(service)+"}")
		e.comment("The proxy retries every method of the service. stagger retries one only if it is declared idempotent; \"idempotency: ASSUME\" declares all of them.")
		return
	}
	e.names = append(e.names, "{service: "+quote(service)+", method: "+quote(method)+"}")
	e.comment("The method is named, which declares it idempotent. Is that true?")
}

func (e *meshEntry) everything(why string) {
	e.names = append(e.names, "{}")
	e.comment("For all methods: %s. stagger retries those that are declared idempotent.", why)
}

// conditions maps Envoy's retry_on: gRPC's codes by their names, and HTTP conditions that gRPC reports as UNAVAILABLE.
func (e *meshEntry) conditions(list string) {
	for _, on := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' }) {
		switch on {
		case "cancelled", "deadline-exceeded", "internal", "resource-exhausted", "unavailable":
			e.code(strings.ToUpper(strings.ReplaceAll(on, "-", "_")))
		case "5xx", "gateway-error", "502", "503", "504":
			e.code("UNAVAILABLE")
			e.comment("%s: gRPC reports HTTP status 502, 503 and 504 as UNAVAILABLE. Other codes of HTTP aren't retried.", on)
		case "reset", "reset-before-request", "connect-failure", "refused-stream", "http3-post-connect-failure":
			e.code("UNAVAILABLE")
			e.comment("%s: gRPC reports it as UNAVAILABLE, and retries by itself what never left the client.", on)
		default:
			e.comment("%s: not mapped: a policy file has no such condition.", on)
		}
	}
	if len(e.codes) == 0 {
		e.code("UNAVAILABLE")
		e.comment("No condition maps to a code of gRPC: UNAVAILABLE is a proposal.")
	}
}

func (e *meshEntry) code(name string) {
	if slices.Contains(e.codes, name) {
		return
	}
	e.codes = append(e.codes, name)
}

// duration reads a duration in Go's form, which Kubernetes and protobuf share; 0 if there is none.
func (e *meshEntry) duration(key string, v any) time.Duration {
	if v == nil {
		return 0
	}
	d, err := time.ParseDuration(text(v))
	if err != nil || d < 0 {
		e.comment("%s: %v: not mapped: not a duration.", key, v)
		return 0
	}
	return d
}

// retries sets the number of attempts from a number of retries. It reports whether there are any.
func (e *meshEntry) retries(v any) bool {
	n, ok := number(v)
	if !ok {
		return true
	}
	if e.attempts = int(n) + 1; e.attempts > 5 {
		e.comment("%d retries: at most 4 are made, unless maxAttemptsLimit at the top of the file allows more.", int(n))
	}
	return n >= 1
}

// unmapped comments on keys that the entry drops.
func (e *meshEntry) unmapped(from object, why string, keys ...string) {
	for _, key := range keys {
		if from[key] != nil {
			e.comment("%s: not mapped: %s.", key, why)
		}
	}
}

func at(v any, keys ...string) any {
	for _, key := range keys {
		m, _ := v.(object)
		v = m[key]
	}
	return v
}

func list(v any) []any { l, _ := v.([]any); return l }

func text(v any) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

func number(v any) (float64, bool) {
	n, err := strconv.ParseFloat(text(v), 64)
	return n, err == nil && n >= 0
}

func quote(s string) string {
	if strings.ContainsAny(s, " :,{}[]\"'#*&!|>%@`\n") {
		return strconv.Quote(s)
	}
	return s
}

// contains reports whether an object has one of some keys at any depth.
func contains(v any, keys ...string) bool {
	switch v := v.(type) {
	case object:
		for _, key := range keys {
			if v[key] != nil {
				return true
			}
		}
		for _, inner := range v {
			if contains(inner, keys...) {
				return true
			}
		}
	case []any:
		for _, inner := range v {
			if contains(inner, keys...) {
				return true
			}
		}
	}
	return false
}
