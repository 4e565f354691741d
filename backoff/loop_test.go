// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package backoff_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stagger-go/stagger/backoff"
)

// The loops that docs/backoff.md names.
func TestKeepConnected(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := backoff.Config{Initial: time.Second, Max: 4 * time.Second, Multiplier: 2, Jitter: backoff.JitterNone}
		ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
		defer stop()
		began, lost := time.Now(), errors.New("lost")
		var at []int // seconds
		err := keepConnected(ctx, b, func(context.Context) error {
			at = append(at, int(time.Since(began)/time.Second))
			if len(at) == 4 {
				time.Sleep(5 * time.Second) // the one good connection
			}
			return lost
		})
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, lost) {
			t.Error(err)
		}
		// 1, 2 and 4 s after failures; 1 s after the good connection of 5 s, then 2, 4 and 4.
		if want := []int{0, 1, 3, 7, 13, 15, 19, 23, 27}; !slices.Equal(at, want) {
			t.Errorf("at %d seconds; want %d", at, want)
		}
	})
}

func TestRepeat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		onFailure := backoff.Config{Initial: time.Second, Max: 4 * time.Second, Multiplier: 2, Jitter: backoff.JitterNone}
		ctx, stop := context.WithTimeout(t.Context(), 150*time.Second)
		defer stop()
		began := time.Now()
		var at []time.Duration
		repeat(ctx, time.Minute, onFailure, func(context.Context) error {
			at = append(at, time.Since(began))
			if len(at) < 4 {
				return errors.New("unavailable")
			}
			return nil
		})
		if want := []time.Duration{0, time.Second, 3 * time.Second, 7 * time.Second}; len(at) < 5 || !slices.Equal(at[:4], want) {
			t.Fatalf("at %v; want %v, and a minute later", at, want)
		}
		if between := at[4] - at[3]; between < 48*time.Second || between >= 72*time.Second {
			t.Errorf("%v between two successes; want a minute, give or take 20 %%", between)
		}
	})
}
