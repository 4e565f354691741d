// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"slices"
	"strconv"

	"google.golang.org/grpc/metadata"

	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/policy"
)

// criticalityHeader is the metadata key of a call's criticality, whose value is spelled as in a policy file. An entry with
// sendCriticality sends it; a call without it has [policy.CriticalityDefault].
const criticalityHeader = "stagger-criticality"

// The metadata keys of failsafe-go: a priority from 0 to 4, or a level from 0 to 499, with 100 levels per priority.
const (
	failsafePriority = "x-failsafe-priority"
	failsafeLevel    = "x-failsafe-level"
)

type criticalityKey struct{}

// ContextWithCriticality returns a context whose calls have a criticality: whether they are refused before or after others, if
// their policy has admission: REFUSE. Policies with sendCriticality also send it to the server. If a call's policy has another
// one, SHEDDABLE wins, then CRITICAL. An undefined value has no effect, with a warning. A server interceptor with
// [IncomingCriticality] makes a context for each incoming call.
func ContextWithCriticality(ctx context.Context, c policy.Criticality) context.Context {
	return context.WithValue(ctx, criticalityKey{}, c)
}

// CriticalityFromContext returns the criticality of the incoming call that a context belongs to, up to the limit of
// [IncomingCriticality], or of [ContextWithCriticality]; else [policy.CriticalityDefault]. A server that sheds load
// should refuse SHEDDABLE calls first, and CRITICAL ones last.
func CriticalityFromContext(ctx context.Context) policy.Criticality {
	if c, _ := ctx.Value(criticalityKey{}).(policy.Criticality); isCriticality(c) {
		return c
	}
	return policy.CriticalityDefault
}

// criticalities has all of them, in the order of refusal.
var criticalities = []policy.Criticality{policy.CriticalitySheddable, policy.CriticalityDefault, policy.CriticalityCritical}

func isCriticality(c policy.Criticality) bool { return slices.Contains(criticalities, c) }

// IncomingCriticality makes a server interceptor read the criticality of incoming calls (metadata key stagger-criticality) and
// put it into their contexts. highest limits what callers can claim; "" means [policy.CriticalityDefault], so that callers can
// only lower the criticality of their calls. For calls without the key, the headers of failsafe-go's
// clients count (x-failsafe-priority, x-failsafe-level): VeryLow and Low are SHEDDABLE, High and
// VeryHigh CRITICAL. Without this option an incoming call has no criticality, so an edge service passes none on.
func IncomingCriticality(highest policy.Criticality) ServerOption {
	return func(s *server) {
		if s.highest = highest; !isCriticality(highest) {
			s.highest = policy.CriticalityDefault
		}
	}
}

// readCriticality puts the criticality of an incoming call into its context.
func (s *server) readCriticality(ctx context.Context) context.Context {
	if s.highest == "" {
		return ctx
	}
	c := one(ctx, criticalityHeader, levels)
	if c == "" {
		c = one(ctx, failsafeLevel, hundreds)
	}
	if c == "" {
		c = one(ctx, failsafePriority, priorities)
	}
	if c == "" {
		c = policy.CriticalityDefault
	}
	if slices.Index(criticalities, c) > slices.Index(criticalities, s.highest) {
		c = s.highest
	}
	if c == policy.CriticalityDefault {
		return ctx
	}
	return ContextWithCriticality(ctx, c)
}

// one parses the only value of a metadata key. It returns "" without a value, or with several or an invalid one.
func one(ctx context.Context, key string, parse func(string) policy.Criticality) policy.Criticality {
	values := metadata.ValueFromIncomingContext(ctx, key)
	if len(values) != 1 {
		return ""
	}
	return parse(values[0])
}

func levels(text string) policy.Criticality {
	if c := policy.Criticality(text); isCriticality(c) {
		return c
	}
	return ""
}

func hundreds(text string) policy.Criticality {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return ""
	}
	return priorities(strconv.FormatUint(n/100, 10))
}

func priorities(text string) policy.Criticality {
	switch text {
	case "0", "1":
		return policy.CriticalitySheddable
	case "2":
		return policy.CriticalityDefault
	case "3", "4":
		return policy.CriticalityCritical
	default:
		return ""
	}
}

// assignCriticality sets the criticality of a call, and returns the context that sends it, if its policy says so. It is
// SHEDDABLE if its policy or its context has it, else CRITICAL if one of them has it.
func (o *callOptions) assignCriticality(ctx context.Context, p *decision.Policy) context.Context {
	sends := p.SendsCriticality()
	if sends || p.Refuses() {
		if c, _ := ctx.Value(criticalityKey{}).(policy.Criticality); c != "" && !isCriticality(c) {
			o.retrier.warnOnce(&wrongCriticality, string(c), strconv.Quote(string(c)))
		}
		if o.criticality = CriticalityFromContext(ctx); o.criticality == policy.CriticalityDefault || p.Criticality() == policy.CriticalitySheddable {
			o.criticality = p.Criticality()
		}
	}
	sends = sends && o.criticality != policy.CriticalityDefault
	if !sends && len(metadata.ValueFromIncomingContext(ctx, criticalityHeader)) == 0 {
		return ctx // nothing to send, nor to remove from metadata that a proxy has copied
	}
	md, said := metadata.FromOutgoingContext(ctx)
	switch {
	case sends && !said:
		md = metadata.Pairs(criticalityHeader, string(o.criticality))
	case sends:
		md.Set(criticalityHeader, string(o.criticality))
	case len(md.Get(criticalityHeader)) == 0:
		return ctx
	default:
		md.Delete(criticalityHeader)
	}
	return metadata.NewOutgoingContext(ctx, md)
}
