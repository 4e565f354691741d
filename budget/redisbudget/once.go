// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package redisbudget

import (
	"context"

	"github.com/redis/go-redis/v9"
)

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
