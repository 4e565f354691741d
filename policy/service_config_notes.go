// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"strconv"
	"time"

	"github.com/stagger-go/stagger/internal/defaults"
	"github.com/stagger-go/stagger/internal/document"
)

// configNotes collects notes on what plain gRPC will not do.
type configNotes []Diagnostic

func (n *configNotes) add(field, value, message string) {
	*n = append(*n, Diagnostic{Severity: SeverityNote, Field: field, Value: value, Message: message})
}

// entry notes the parts of an entry that plain gRPC lacks.
func (n *configNotes) entry(path string, m MethodConfig) {
	if len(m.Names) == 0 {
		return
	}
	n.transparent(path+".transparentRetry", m.TransparentRetry)
	if m.IdempotencyKey != "" {
		n.add(path+".idempotencyKey", m.IdempotencyKey, "gRPC sends no such key")
	}
	if m.SendCriticality {
		n.add(path+".sendCriticality", "true", "gRPC sends no criticality")
	}
	if m.refuses() {
		n.add(path+".admission", string(m.Admission), "gRPC sends calls that cannot be answered in time")
	}
	switch {
	case m.Retry != nil:
		n.unsafe(path, m)
		n.retry(path+".retryPolicy", m.Retry)
	case m.Hedge != nil:
		n.unsafe(path, m)
		n.hedge(path+".hedgingPolicy", m.Hedge)
	}
}

// transparent notes settings that no service config has.
func (n *configNotes) transparent(field string, said *bool) {
	if denies(said) {
		n.add(field, deny, "gRPC itself retries a call once if its stream is refused")
	}
}

// unsafe notes the most important difference.
func (n *configNotes) unsafe(path string, m MethodConfig) {
	switch {
	case m.IdempotencyKey != "" || m.Idempotency == IdempotencyAssume || m.Idempotency == "":
	case m.Idempotency == IdempotencyNone:
		n.add(path+".idempotency", string(m.Idempotency),
			"gRPC retries these methods as if they were idempotent")
	default:
		n.add(path+".idempotency", string(m.Idempotency),
			"gRPC does not check whether a method is idempotent, and retries all methods of the entry")
	}
}

func (n *configNotes) attempts(path string, most int) {
	if most > defaults.MaxAttempts {
		n.add(path+".maxAttempts", strconv.Itoa(most), fmt.Sprintf("gRPC cuts it to %d (gRFC A6)", defaults.MaxAttempts))
	}
}

func (n *configNotes) budget(path, name string) {
	if name != NoBudget {
		n.add(path+".budget", name, "gRPC knows no budget but retryThrottling; without that, nothing bounds what all calls together add")
	}
}

func (n *configNotes) pushback(path string, longest, least time.Duration) {
	n.time(path+".maxPushback", longest, defaults.MaxPushback, "gRPC waits for as long as a server says")
	n.time(path+".minAttemptTime", least, defaults.MinAttemptTime, "gRPC retries however little time is left")
}

// time notes a duration that is set, and isn't the usual one.
func (n *configNotes) time(field string, d, usual time.Duration, message string) {
	if d != 0 && d != usual {
		n.add(field, document.FormatDuration(d), message)
	}
}
