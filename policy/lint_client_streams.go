// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"strings"

	"github.com/stagger-go/stagger/internal/document"
)

// notHedged warns of entries with parallel attempts for methods whose client sends a stream.
func (s *Set) notHedged(report *document.Report, c Config) []Diagnostic {
	var list []Diagnostic
	for i, m := range c.Methods {
		field := document.Item("methodConfig", i)
		var what string
		switch {
		case m.Hedge != nil:
			field, what = field+".hedgingPolicy", "is not hedged, since its client sends a stream: the next attempt follows a failure; write a retryPolicy"
		case m.Retry != nil && !m.Retry.CancelOnTimeout && report.Written(field+".retryPolicy.onAttemptTimeout"):
			field, what = field+".retryPolicy.onAttemptTimeout", "gives a slow attempt up for the next (RETRY), since its client sends a stream; write RETRY"
		default:
			continue
		}
		var found []string
		for _, n := range m.Names {
			found = append(found, s.clientStreamsOf(n)...)
		}
		if len(found) > 0 {
			list = append(list, locate(report, Diagnostic{
				Severity: SeverityWarning, Field: field, Message: atMost(found) + " " + what + " for it, in an entry of its own",
			}))
		}
	}
	return list
}

// clientStreamsOf returns the methods that use the entry of a name, and whose clients send streams.
func (s *Set) clientStreamsOf(name string) (list []string) {
	for service := range s.servicesOf(name) {
		for i := range service.Methods().Len() {
			m := service.Methods().Get(i)
			path := pathOf(m)
			if p := s.Lookup(path); m.IsStreamingClient() && p != nil && p.name == name {
				list = append(list, path)
			}
		}
	}
	return list
}

// atMost lists methods, or the first ones and the number of the others.
func atMost(methods []string) string {
	n := len(methods)
	which := strings.Join(methods[:min(n, maxNamed)], ", ")
	if n > maxNamed {
		which += fmt.Sprintf(" and %d more", n-maxNamed)
	}
	return which
}
