// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"crypto/sha256"
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"

	"github.com/stagger-go/stagger/policy"
)

// Resolver wraps a resolver, so that a Retrier with [FromServiceConfig] sees all of the service configs that
// it delivers: hedgingPolicy, retryThrottling, and stagger's own keys, as in a policy file.
//
//	grpc.WithResolvers(retrier.Resolver(resolver.Get("dns")))
//
// It changes nothing that gRPC does. Of a config with problems that gRPC does not mind, only the retry
// policies and timeouts hold, as gRPC has read them.
func (r *Retrier) Resolver(b resolver.Builder) resolver.Builder {
	w := wrapped{b, r}
	if o, ok := b.(resolver.AuthorityOverrider); ok {
		return overriding{w, o}
	}
	return w
}

// wrapped builds resolvers whose service configs a Retrier reads too.
type wrapped struct {
	resolver.Builder

	retrier *Retrier
}

// overriding is wrapped, for a resolver that names the authority.
type overriding struct {
	wrapped
	resolver.AuthorityOverrider
}

// Build implements [resolver.Builder].
func (w wrapped) Build(to resolver.Target, cc resolver.ClientConn, opts resolver.BuildOptions) (resolver.Resolver, error) {
	if w.retrier.delivered != nil {
		cc = listening{cc, w.retrier, to.String()}
	}
	return w.Builder.Build(to, cc, opts)
}

// listening is where a resolver has its service configs read.
type listening struct {
	resolver.ClientConn

	retrier *Retrier
	target  string
}

// ParseServiceConfig implements [resolver.ClientConn].
func (l listening) ParseServiceConfig(text string) *serviceconfig.ParseResult {
	parsed := l.ClientConn.ParseServiceConfig(text)
	if parsed.Err != nil {
		l.report(text, policy.Diagnostic{Message: "is refused by gRPC, and not followed: " + parsed.Err.Error()})
		return parsed
	}
	config, ok := parsed.Config.(*grpc.ServiceConfig) //nolint:staticcheck // gRPC tells in no other way
	if !ok {
		return parsed
	}
	t := l.retrier.delivered.texts.read(text)
	if t.err != nil {
		l.reportAll(text, t.err)
		return parsed
	}
	for _, p := range append(t.set.Warnings(), l.retrier.cuts(t.set)...) {
		l.report(text, p)
	}
	t.mark(config)
	return parsed
}

func (l listening) reportAll(text string, err error) {
	wrong, ok := errors.AsType[*policy.Error](err)
	if !ok {
		return
	}
	l.report(text, policy.Diagnostic{Message: "has problems that gRPC does not mind; only its retry policies and timeouts are followed, as gRPC reads them"})
	for _, p := range wrong.Diagnostics {
		l.report(text, p)
	}
}

// report tells of a problem once for each text.
func (l listening) report(text string, p policy.Diagnostic) {
	p.File = "service config of " + l.target
	sum := sha256.Sum256([]byte(text))
	l.retrier.report(string(sum[:])+p.String(), p)
}
