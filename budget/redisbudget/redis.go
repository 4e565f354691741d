// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package redisbudget

import (
	"context"
	_ "embed" // lease.lua
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed lease.lua
var source string

var script = redis.NewScript(source)

// checkClient refuses a client that ignores deadlines, and one with several Redis for one
// pool. It accepts any Scripter that isn't a client of go-redis.
func checkClient(client redis.Scripter) error {
	is, ends := client != nil, true
	switch c := client.(type) {
	case *redis.Client:
		if is = c != nil; is {
			ends = c.Options().ContextTimeoutEnabled
		}
	case *redis.ClusterClient:
		if is = c != nil; is {
			ends = c.Options().ContextTimeoutEnabled
		}
	case *redis.Ring:
		return errors.New("redisbudget: New: the client is a Ring: while a shard is down, or seems so to some clients, a pool " +
			"has a second life on another, and grants its rate twice; use redis.NewClient, NewFailoverClient (Sentinel) or NewClusterClient")
	}
	switch {
	case !is:
		return errors.New("redisbudget: New(nil): must be a client of Redis")
	case !ends:
		return errors.New("redisbudget: New: the client's ContextTimeoutEnabled is false: must be true, so that requests end in time")
	}
	return nil
}

// once runs scripts with commands that the client sends once, whatever its options: a repeated request would be
// granted twice. A cluster client repeats a command after a lost connection even without MaxRetries.
type once struct {
	redis.Scripter

	process func(context.Context, redis.Cmder) error
}

// onceOnly returns the client with scripts that are sent once. Other Scripters than those of go-redis stay unchanged.
func onceOnly(client redis.Scripter) redis.Scripter {
	if c, ok := client.(interface {
		Process(ctx context.Context, cmd redis.Cmder) error
	}); ok {
		return once{client, c.Process}
	}
	return client
}

// Eval implements [redis.Scripter].
func (o once) Eval(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd {
	return o.run(ctx, "eval", script, keys, args)
}

// EvalSha implements [redis.Scripter].
func (o once) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	return o.run(ctx, "evalsha", sha, keys, args)
}

func (o once) run(ctx context.Context, name, script string, keys []string, args []any) *redis.Cmd {
	words := append(make([]any, 0, 3+len(keys)+len(args)), name, script, len(keys))
	for _, key := range keys {
		words = append(words, key)
	}
	cmd := redis.NewCmd(ctx, append(words, args...)...)
	cmd.SetFirstKeyPos(3)            // for the slot of a cluster
	_ = o.process(ctx, noRetry{cmd}) // the command has the error
	return cmd
}

// noRetry is a command that go-redis does not repeat.
type noRetry struct{ *redis.Cmd }

// NoRetry implements [redis.Cmder].
func (noRetry) NoRetry() bool { return true }

// keepAsking asks for what the lease needs, until ctx ends.
func (b *leased) keepAsking(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		r, wait, ok := b.lease.next(time.Now())
		if ok {
			b.exchange(ctx, r)
			continue
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-b.lease.woken:
		case <-ctx.Done():
		}
	}
}

// exchange makes one request, and reports the response to the lease. It reports each change once, while no request runs: so Close,
// which waits for that, may be called in Changed.
func (b *leased) exchange(ctx context.Context, r request) {
	if changed, err := b.request(ctx, r); changed && b.config.Changed != nil {
		b.config.Changed(b.config.Pool, err)
	}
}

// request makes one request, unless the budget is closed, and reports the response to the lease. It returns whether the pool has become
// unavailable, by err, or is back.
func (b *leased) request(ctx context.Context, r request) (changed bool, err error) {
	b.requesting <- struct{}{}
	defer func() { <-b.requesting }()
	a, err := b.draw(ctx, r)
	switch {
	case ctx.Err() != nil:
		return false, nil // closed meanwhile
	case err != nil:
		b.lease.failed(time.Now())
	default:
		b.lease.answered(time.Now(), r, a)
	}
	before := b.err.Swap(&err)
	return (err == nil) != (before == nil || *before == nil), err
}

// mostClients bounds the number of clients. With a bogus number in the pool, clients would ask all the time or never.
const mostClients = 1e9

// draw makes the request: one run of the script. Errors include the remedy for a response of Redis.
func (b *leased) draw(ctx context.Context, r request) (a answer, err error) {
	defer func() {
		if v := recover(); v != nil { // of the user's client: it would end the process
			err = fmt.Errorf("redisbudget: the client panics: %v", v)
		}
	}()
	if ctx.Err() != nil {
		return answer{}, ctx.Err() // closed: the client may be closed as well
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	key, rate := "stagger:{"+b.config.Pool+"}", int64(math.Round(b.config.PerSecond*token))
	values, err := script.Run(ctx, b.client, []string{key}, rate, r.tokens, r.least, r.covered.Milliseconds()).Slice()
	if err != nil {
		return answer{}, explained(err, key)
	}
	if len(values) != 2 {
		return answer{}, fmt.Errorf("redisbudget: the script returned %d values; want 2", len(values))
	}
	tokens, isNumber := values[0].(int64)
	text, _ := values[1].(string)
	clients, err := strconv.ParseFloat(text, 64)
	if err != nil || !isNumber || tokens < 0 || tokens > 0 && tokens < r.least || tokens > max(r.tokens, 0) || !(clients >= 0 && clients <= mostClients) {
		return answer{}, fmt.Errorf("redisbudget: the script returned %v for %d tokens, at least %d", values, r.tokens, r.least)
	}
	return answer{tokens, clients}, nil
}

// advice has the remedy for a response of Redis, by a part of its text.
var advice = []struct{ says, remedy string }{
	{"WRONGTYPE", "the key holds something else: remove that, or give the pool another name"},
	{"NOPERM", permissions},
	{"The user executing the script can't", permissions}, // Redis 7, for a command in a script
	{"NOAUTH", "the client has to name user and password"},
	{"WRONGPASS", "the client names a wrong user or password"},
	{"READONLY", "this is a replica: the client has to follow the primary, as with Sentinel or a cluster"},
	{"unknown command", version},
	{"non deterministic", version}, // Redis 4, for a script that reads the time and then writes
	{"OOM", "Redis is full: give it more memory, or evict other keys"},
}

const (
	permissions = "the user needs ~stagger:* +eval +evalsha +time +hmget +hset +pexpire"
	version     = "this needs Redis 5 or newer, or Valkey"
)

// explained is an error with the key and the advice on it, if there is any.
func explained(err error, key string) error {
	for _, a := range advice {
		if strings.Contains(err.Error(), a.says) {
			return fmt.Errorf("redisbudget: key %s: %w: %s", key, err, a.remedy)
		}
	}
	return fmt.Errorf("redisbudget: key %s: %w", key, err)
}
