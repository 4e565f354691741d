// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
)

func TestFollowerReads(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		events   time.Duration // from one to the next
		failure  error
		want     time.Duration // from the change to its report
		wantErrs int
	}{
		"after_a_rest": {events: time.Hour, want: rest},
		"at_the_latest_when_others_change_all_the_time": {events: rest / 2, want: maxRest},
		"after_an_overflow":                             {failure: fsnotify.ErrEventOverflow, events: time.Hour, want: rest},
		"nothing_after_another_failure":                 {failure: errors.New("no more watches"), events: time.Hour, wantErrs: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "retry.yaml")
			if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				var (
					events   = make(chan fsnotify.Event)
					failures = make(chan error)
					seen     time.Time
					errs     int
				)
				f := &follower{path: path, changed: func(_ *Set, err error) {
					if err != nil {
						errs++
					}
					seen = time.Now()
				}}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() { defer close(done); f.run(ctx, events, failures) }()
				time.Sleep(time.Minute)
				synctest.Wait()
				seen, errs = time.Time{}, 0
				if err := os.WriteFile(path, []byte("maxWaiting: 7"), 0o600); err != nil {
					t.Error(err)
				}
				began := time.Now()
				if tt.failure != nil {
					failures <- tt.failure
				}
				for tt.failure == nil && seen.IsZero() && time.Since(began) < time.Minute {
					events <- fsnotify.Event{Name: "another file"}
					time.Sleep(tt.events)
					synctest.Wait()
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				cancel()
				<-done
				if tt.want > 0 && seen.Sub(began) != tt.want {
					t.Errorf("seen after %v; want %v", seen.Sub(began), tt.want)
				}
				if errs != tt.wantErrs {
					t.Errorf("%d errors; want %d", errs, tt.wantErrs)
				}
			})
		})
	}
}
