// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package payments_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stagger-go/stagger/examples/payments"
)

func TestAnswersExpire(t *testing.T) {
	open(t, time.Minute, 2, func(t *testing.T, b bank) {
		want(t, "a", b.send(t.Context(), 1, "a"), "1[]")
		time.Sleep(30 * time.Second)
		want(t, "b", b.send(t.Context(), 2, "b"), "2[]")
		time.Sleep(30*time.Second - time.Nanosecond)
		want(t, "no room", b.send(t.Context(), 3, "c"), "ResourceExhausted")
		want(t, "a is kept", b.send(t.Context(), 1, "a"), "1[true]")
		time.Sleep(time.Nanosecond)
		want(t, "a has expired, and makes room", b.send(t.Context(), 3, "c"), "3[]")
		want(t, "b is kept", b.send(t.Context(), 2, "b"), "2[true]")
		want(t, "kept", fmt.Sprint(b.answers.Len()), "2")
		time.Sleep(time.Minute)
		want(t, "kept after all have expired", fmt.Sprint(b.answers.Len()), "0")
	})
}

func TestNewAnswersErrors(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		keep time.Duration
		room int
	}{{0, 1}, {-1, 1}, {1, 0}, {1, -1}} {
		if a, err := payments.NewAnswers(row.keep, row.room); err == nil || a != nil {
			t.Errorf("NewAnswers(%v, %d) = %v, %v", row.keep, row.room, a, err)
		}
	}
}
