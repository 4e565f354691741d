// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package redisbudget

import (
	"fmt"
	"strings"
)

// advice has the remedy for an answer of Redis, by a part of its text.
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

// adviceOn returns the index of the advice on an error, or -1 if there is none, as when Redis can't be reached.
func adviceOn(err error) int {
	for i, a := range advice {
		if strings.Contains(err.Error(), a.says) {
			return i
		}
	}
	return -1
}

// explained is an error with the key and the advice on it.
func explained(err error, key string) error {
	if i := adviceOn(err); i >= 0 {
		return fmt.Errorf("redisbudget: key %s: %w: %s", key, err, advice[i].remedy)
	}
	return fmt.Errorf("redisbudget: key %s: %w", key, err)
}
