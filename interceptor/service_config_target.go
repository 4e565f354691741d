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

// targets are what wrapped resolvers have delivered, for as long as they are open. Calls read it without a lock.
type targets struct {
	wrapped atomic.Bool // there has been a wrapped resolver
	byName  sync.Map    // *targetConfig by canonical target
	names   targetNames

	mu    sync.Mutex // guards what follows, and changes of byName
	conns map[string][]*configConn
	texts map[string]*configText // those that connections have received
}

// targetConfig is what the connections of a target have received. It does not change.
type targetConfig struct {
	answered bool          // by a resolver at least
	agree    bool          // all that have received anything have received config
	config   *configText   // nil: they do not agree, or have received none
	changed  time.Duration // when config did, on the budgets' clock
}

// configText is a service config as its text says, beside what gRPC makes of it.
type configText struct {
	configSet

	text  string
	err   error // why it is not followed
	grpcs *grpc.ServiceConfig
	users int // connections; targets.mu guards it
}

// find returns what the connections have received that lead where cc leads; nil if there are none with a wrapped
// resolver.
func (t *targets) find(cc *grpc.ClientConn) *targetConfig {
	if !t.wrapped.Load() {
		return nil
	}
	return t.load(t.names.canonical(cc))
}

func (t *targets) load(target string) *targetConfig {
	found, _ := t.byName.Load(target)
	c, _ := found.(*targetConfig)
	return c
}

// changed is when what the connections of a target have received has changed last; not ok if there are none with a
// wrapped resolver.
func (t *targets) changed(target string) (at time.Duration, ok bool) {
	if c := t.load(target); c != nil {
		return c.changed, true
	}
	return 0, false
}

// governs reports whether a connection follows the config, for a method that gRPC reads as mc there. Connections
// whose resolver is not wrapped, or which have a config of their own, may not.
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

// methodConfig is what gRPC makes of the config for a method, found as gRPC finds it.
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

// removeConn takes out a connection whose resolver is closed.
func (t *targets) removeConn(c *configConn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.closed = true
	t.releaseText(c.config)
	t.conns[c.target] = slices.DeleteFunc(t.conns[c.target], func(other *configConn) bool { return other == c })
	t.update(c.target)
}

// receive notes that a connection has received a config. It returns that config, and whether the target's
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

// answer notes that a resolver has delivered something other than a config that it has just had parsed; with
// received, the connection now has the config that it had before, or none. It reports whether there is one, and
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

// releaseText forgets a text that no connection has any more. It requires mu.
func (t *targets) releaseText(c *configText) {
	if c == nil {
		return
	}
	if c.users--; c.users == 0 {
		delete(t.texts, c.text)
	}
}

// update lets calls see what the connections of a target have received. It requires mu.
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
	if before := t.load(target); before != nil && before.config == now.config {
		now.changed = before.changed
	}
	t.byName.Store(target, now)
	return now
}

// digest stands for a text, which may be long.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return string(sum[:])
}
