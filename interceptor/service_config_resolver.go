// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"

	"github.com/stagger-go/stagger/policy"
)

// Resolver wraps a resolver, so that a Retrier with [WithServiceConfig] sees its complete service
// configs: hedgingPolicy, retryThrottling, and stagger's own keys, as in a policy file.
//
//	grpc.WithResolvers(retrier.Resolver(resolver.Get("dns")))
//
// It does not change gRPC's behavior: a config applies to a connection only if gRPC follows it too. The Retrier
// keeps configs per target ([grpc.ClientConn.CanonicalTarget]), until the target's last resolver closes. If the
// connections of one target have received different configs, the Retrier warns once, and each connection uses only its own retry
// policies and timeouts, as read by gRPC. The same applies to a connection whose config has problems that
// gRPC ignores.
func (r *Retrier) Resolver(b resolver.Builder) resolver.Builder {
	if r.serviceConfigs != nil {
		r.serviceConfigs.whole.Store(true)
	}
	w := configBuilder{b, r}
	if o, ok := b.(resolver.AuthorityOverrider); ok {
		return authorityBuilder{w, o}
	}
	return w
}

// configBuilder builds resolvers that pass their service configs to a Retrier too.
type configBuilder struct {
	resolver.Builder

	retrier *Retrier
}

// authorityBuilder is a configBuilder for a resolver with its own authority.
type authorityBuilder struct {
	configBuilder
	resolver.AuthorityOverrider
}

// Build implements [resolver.Builder].
func (b configBuilder) Build(to resolver.Target, cc resolver.ClientConn, opts resolver.BuildOptions) (resolver.Resolver, error) {
	if b.retrier.serviceConfigs == nil {
		return b.Builder.Build(to, cc, opts)
	}
	c := &configConn{ClientConn: cc, retrier: b.retrier, target: to.String(), ignores: opts.DisableServiceConfig}
	c.targets().join(c)
	r, err := b.Builder.Build(to, c, opts)
	if err != nil {
		c.targets().removeConn(c)
		return nil, err
	}
	return configResolver{r, c}, nil
}

// configResolver is a wrapped resolver.
type configResolver struct {
	resolver.Resolver

	conn *configConn
}

// Close implements [resolver.Resolver].
func (r configResolver) Close() {
	r.Resolver.Close()
	r.conn.targets().removeConn(r.conn)
}

// configConn is a connection of a wrapped resolver.
type configConn struct {
	resolver.ClientConn

	retrier *Retrier
	target  string // canonical
	ignores bool   // the connection ignores delivered configs (grpc.WithDisableServiceConfig)

	// targets.mu guards the fields below.
	closed   bool
	answered bool        // the resolver has answered
	received bool        // the connection has its config, or none
	config   *configText // nil: none, or none parsed for this connection
}

func (c *configConn) targets() *targets { return &c.retrier.serviceConfigs.targets }

// ParseServiceConfig implements [resolver.ClientConn]. A parsed config counts as received. It applies to
// calls as soon as gRPC follows it ([targetConfig.governs]).
func (c *configConn) ParseServiceConfig(text string) *serviceconfig.ParseResult {
	parsed := c.ClientConn.ParseServiceConfig(text)
	config, ok := parsed.Config.(*grpc.ServiceConfig)
	switch {
	case c.ignores:
	case parsed.Err != nil:
		c.warnOfServiceConfig(text, policy.Diagnostic{Message: "is refused by gRPC, and not followed: " + parsed.Err.Error()})
	case ok:
		read, agree := c.targets().receive(c, text, config)
		c.reportText(read)
		c.reportAgree(agree)
	}
	return parsed
}

// UpdateState implements [resolver.ClientConn]. If it brings no service config, gRPC keeps the last one.
func (c *configConn) UpdateState(s resolver.State) error {
	given := s.ServiceConfig
	if given != nil && given.Err != nil { // gRPC keeps the last one here, too
		c.targets().answer(c, false)
		return c.ClientConn.UpdateState(s)
	}
	read, agree := c.targets().answer(c, true)
	if given != nil && !read && !c.ignores {
		c.warnOfServiceConfig("", policy.Diagnostic{Message: "was parsed for another connection; only its retry policies and timeouts apply, as gRPC has read them"})
	}
	c.reportAgree(agree)
	return c.ClientConn.UpdateState(s)
}

// NewAddress implements [resolver.ClientConn], for old resolvers.
func (c *configConn) NewAddress(addresses []resolver.Address) {
	_, agree := c.targets().answer(c, true)
	c.reportAgree(agree)
	c.ClientConn.NewAddress(addresses)
}

// ReportError implements [resolver.ClientConn].
func (c *configConn) ReportError(err error) {
	c.targets().answer(c, false)
	c.ClientConn.ReportError(err)
}

// reportText warns of the problems of a config.
func (c *configConn) reportText(t *configText) {
	if t == nil {
		return
	}
	if wrong, ok := errors.AsType[*policy.Error](t.err); ok {
		c.warnOfServiceConfig(t.text, policy.Diagnostic{Message: "has errors in keys that gRPC ignores; only its retry policies and timeouts apply, as gRPC reads them"})
		for _, d := range wrong.Diagnostics {
			c.warnOfServiceConfig(t.text, d)
		}
		return
	}
	for _, d := range append(t.set.Warnings(), c.retrier.cuts(t.set)...) {
		c.warnOfServiceConfig(t.text, d)
	}
}

// reportAgree warns once of a target whose connections have received different configs.
func (c *configConn) reportAgree(agree bool) {
	if !agree {
		c.warnOfServiceConfig("", policy.Diagnostic{Message: "is not the same for all connections of this target; " +
			"until it is, each connection follows only its own retry policies and timeouts, as gRPC has read them"})
	}
}

// warnOfServiceConfig warns of a config, once per text.
func (c *configConn) warnOfServiceConfig(text string, d policy.Diagnostic) {
	d.File = "service config of " + c.target
	c.retrier.warnOfServiceConfig(digest(text)+d.String(), d)
}
