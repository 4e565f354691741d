// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package interceptor_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
)

// A named pipe in the place of the file is an error, and the file that comes after it is followed.
func TestWatch_NamedPipe(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "retry.yaml")
	testkit.NoError(t, os.WriteFile(path, []byte("maxWaiting: 7"), 0o600))
	synctest.Test(t, func(t *testing.T) {
		var (
			mu     sync.Mutex
			errors []string
		)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r := testkit.Must(interceptor.Watch(ctx, path, interceptor.WithObserver(interceptor.Observer{Diagnostic: func(d policy.Diagnostic) {
			mu.Lock()
			defer mu.Unlock()
			errors = append(errors, d.String())
		}})))(t)
		testkit.NoError(t, os.Remove(path))
		testkit.NoError(t, syscall.Mkfifo(path, 0o600))
		time.Sleep(time.Minute)
		synctest.Wait()
		mu.Lock()
		if text := strings.Join(errors, "\n"); !strings.Contains(text, "is a named pipe: must be a file") ||
			compiled.OfSet(r.State().Policies).MaxWaiting != 7 {
			t.Errorf("diagnostics %q; want one that says what is there, and the old policies", text)
		}
		mu.Unlock()
		if _, err := interceptor.Watch(ctx, path); err == nil || !strings.Contains(err.Error(), path+": is a named pipe") {
			t.Errorf("Watch of a named pipe: %v; want an error", err)
		}
		testkit.NoError(t, os.Remove(path))
		testkit.NoError(t, os.WriteFile(path, []byte("maxWaiting: 8"), 0o600))
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if is := r.State(); compiled.OfSet(is.Policies).MaxWaiting != 8 || is.Err != nil {
			t.Errorf("maxWaiting %d, %v; want the file's 8", compiled.OfSet(is.Policies).MaxWaiting, is.Err)
		}
		cancel()
		synctest.Wait()
	})
}
