// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package redisbudget

import (
	"errors"
	"strings"
	"testing"
)

// Answers of several versions of Redis.
func TestAdvice(t *testing.T) {
	for says, want := range map[string]string{
		"WRONGTYPE Operation against a key holding the wrong kind of value script: 3a, on @user_script:6.":      "remove that, or give",
		"NOPERM this user has no permissions to run the 'evalsha' command":                                      "~stagger:* +eval +evalsha",
		"ERR The user executing the script can't run this command or subcommand script: 3a, on @user_script:5.": "~stagger:* +eval +evalsha",
		"NOAUTH Authentication required.":                       "user and password",
		"READONLY You can't write against a read only replica.": "follow the primary",
		"ERR unknown command 'EVALSHA'":                         "Redis 5 or newer",
		"ERR Error running script (call to f_3a): @user_script:5: Write commands not allowed after non deterministic commands. Call redis.replic": "Redis 5 or newer",
		"OOM command not allowed when used memory > 'maxmemory'.":                                                                                 "give it more memory",
		"dial tcp 127.0.0.1:6379: connect: connection refused":                                                                                    "",
	} {
		cause := errors.New(says)
		if got := explained(cause, "k"); !errors.Is(got, cause) || !strings.Contains(got.Error(), want) || !strings.HasPrefix(got.Error(), "redisbudget: key k: "+says) {
			t.Errorf("%v; want the cause, and %q", got, want)
		}
	}
}
