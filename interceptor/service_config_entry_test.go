// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"strings"
	"testing"

	"github.com/stagger-go/stagger/policy"
)

func TestServiceConfigEntry_ListsOK(t *testing.T) {
	lax := strings.Replace(retries("2", ""), `"UNAVAILABLE"`, `"UNAVAILABLE", "OK"`, 1)
	playLive(t, nil, func(t *testing.T, s scene) {
		s.On("*", down())
		l := dialLive(t, s, lax, nil)
		for range 3 {
			l.wants(t, "a call", get, 2, policy.ReasonAttemptsExhausted)
			l.deliver(lax) // as DNS does, again and again
		}
		want := "service config of live:///orders: retryPolicy for " + get + ": OK: is not a failure, and is ignored in retryableStatusCodes"
		if len(s.warnings) != 1 || s.warnings[0] != want {
			t.Errorf("warned: %s\nwant %s", strings.Join(s.warnings, "\n"), want)
		}
		if all := s.retrier.State().Warnings; len(all) != 1 || all[0].String() != want {
			t.Errorf("Warnings() = %v", all)
		}
	})
}

func TestServiceConfigEntry_MaxAttempts(t *testing.T) {
	playLive(t, mustSet(t, policy.Config{MaxAttemptsLimit: 3}), func(t *testing.T, s scene) {
		s.On("*", down())
		l := dialLive(t, s, retries("4", ""), nil)
		l.wants(t, "a call", get, 3, policy.ReasonAttemptsExhausted)
		l.wants(t, "a call", get, 3, policy.ReasonAttemptsExhausted)
		if len(s.warnings) != 1 || !strings.Contains(s.warnings[0], "4: maxAttempts is cut to 3") {
			t.Errorf("warned: %s", s.warnings)
		}
	})
}
