// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"crypto/sha256"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/internal/clock"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/inside"
	"github.com/stagger-go/stagger/policy"
)

// targets has the configs that open wrapped resolvers have delivered. Calls read it without a lock.
type targets struct {
	wrapped atomic.Bool // a wrapped resolver exists or existed
	byName  sync.Map    // *targetConfig by canonical target
	names   targetNames

	mu    sync.Mutex // guards the fields below, and changes of byName
	conns map[string][]*configConn
	texts map[string]*configText // those that connections have received
}

// targetConfig is the config of a target's connections. It is immutable.
type targetConfig struct {
	answered bool          // by at least one resolver
	agree    bool          // all connections with an answer have the same config
	config   *configText   // nil: they don't agree, or have none
	changed  time.Duration // when config changed, on the budgets' clock
}

// configText is a service config as text, with gRPC's reading of it.
type configText struct {
	configSet

	text  string
	err   error // why it is not used
	grpcs *grpc.ServiceConfig
	users int // connections; targets.mu guards it
}

// findConfig returns the config of the target of cc, or nil if none of its connections has a wrapped
// resolver.
func (t *targets) findConfig(cc *grpc.ClientConn) *targetConfig {
	if !t.wrapped.Load() {
		return nil
	}
	return t.loadConfig(t.names.canonical(cc))
}

func (t *targets) loadConfig(target string) *targetConfig {
	found, _ := t.byName.Load(target)
	c, _ := found.(*targetConfig)
	return c
}

// changed returns the time of a target's last change of config; not ok if none of its connections has a
// wrapped resolver.
func (t *targets) changed(target string) (at time.Duration, ok bool) {
	if c := t.loadConfig(target); c != nil {
		return c.changed, true
	}
	return 0, false
}

// governs reports whether a connection follows the config for a method, whose entry gRPC reads as mc. Connections
// with another config, or whose resolver is not wrapped, may not.
func (c *targetConfig) governs(method string, mc *grpc.MethodConfig) bool {
	if c == nil || c.config == nil || c.config.err != nil {
		return false
	}
	own := c.config.methodConfig(method)
	if own.RetryPolicy == nil || mc.RetryPolicy == nil {
		return own.RetryPolicy == nil && mc.RetryPolicy == nil && sameLimits(&own, mc)
	}
	a, b := own.RetryPolicy, mc.RetryPolicy // maxAttempts depends on the connection's options
	return a.InitialBackoff == b.InitialBackoff && a.MaxBackoff == b.MaxBackoff && a.BackoffMultiplier == b.BackoffMultiplier &&
		maps.Equal(a.RetryableStatusCodes, b.RetryableStatusCodes) && sameLimits(&own, mc)
}

func sameLimits(a, b *grpc.MethodConfig) bool {
	return same(a.Timeout, b.Timeout) && same(a.WaitForReady, b.WaitForReady) &&
		same(a.MaxReqSize, b.MaxReqSize) && same(a.MaxRespSize, b.MaxRespSize)
}

func same[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// methodConfig returns gRPC's reading of the config for a method, by gRPC's rules.
func (t *configText) methodConfig(method string) grpc.MethodConfig {
	service := method[:strings.LastIndex(method, "/")+1]
	for _, name := range []string{method, service} {
		if mc, ok := t.grpcs.Methods[name]; ok {
			return mc
		}
	}
	return t.grpcs.Methods[""]
}

// join adds a connection whose resolver is being built.
func (t *targets) join(c *configConn) {
	t.wrapped.Store(true)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.conns == nil {
		t.conns, t.texts = map[string][]*configConn{}, map[string]*configText{}
	}
	t.conns[c.target] = append(t.conns[c.target], c)
	c.answered, c.received = c.ignores, c.ignores
	t.update(c.target)
}

// removeConn removes a connection whose resolver is closed.
func (t *targets) removeConn(c *configConn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.closed = true
	t.releaseText(c.config)
	t.conns[c.target] = slices.DeleteFunc(t.conns[c.target], func(other *configConn) bool { return other == c })
	t.update(c.target)
}

// receive records that a connection has received a config. It returns the config, and whether the target's
// connections agree.
func (t *targets) receive(c *configConn, text string, grpcs *grpc.ServiceConfig) (read *configText, agree bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.closed {
		return nil, true
	}
	read = t.texts[text]
	if read == nil {
		read = &configText{text: text, grpcs: grpcs}
		parsed, err := inside.ParseServiceConfig([]byte(text))
		if set, ok := parsed.(*policy.Set); ok && err == nil {
			read.set = decision.Compile(set)
		}
		read.err = err
		t.texts[text] = read
	}
	read.users++
	t.releaseText(c.config)
	c.answered, c.received, c.config = true, true, read
	return read, t.update(c.target).agree
}

// answer records that a resolver has delivered anything but a config that it has just had parsed. If received,
// the connection keeps its last config, or has none. It reports whether there is one, and
// whether the target's connections agree.
func (t *targets) answer(c *configConn, received bool) (read, agree bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.closed {
		return true, true
	}
	c.answered = true
	c.received = c.received || received
	return c.config != nil, t.update(c.target).agree
}

// releaseText drops a text that no connection has any more. t.mu must be held.
func (t *targets) releaseText(c *configText) {
	if c == nil {
		return
	}
	if c.users--; c.users == 0 {
		delete(t.texts, c.text)
	}
}

// update publishes the config of a target's connections to calls. t.mu must be held.
func (t *targets) update(target string) *targetConfig {
	now := &targetConfig{agree: true}
	if len(t.conns[target]) == 0 {
		delete(t.conns, target)
		t.byName.Delete(target)
		return now
	}
	first := true
	for _, c := range t.conns[target] {
		now.answered = now.answered || c.answered
		if !c.received {
			continue
		}
		if !first && c.config != now.config {
			now.agree = false
		}
		now.config, first = c.config, false
	}
	if !now.agree {
		now.config = nil
	}
	now.changed = clock.Now()
	if before := t.loadConfig(target); before != nil && before.config == now.config {
		now.changed = before.changed
	}
	t.byName.Store(target, now)
	return now
}

// digest returns a short key for a text, which may be long.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return string(sum[:])
}
