// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/policyfile/document"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
)

func TestWatchFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "retry.yaml")
	synctest.Test(t, func(t *testing.T) {
		write := func(attempts string) {
			text := "methodConfig:\n- name: [{service: acme.orders.v1.OrderService, method: GetOrder}]\n  retryPolicy: {maxAttempts: " + attempts +
				", initialBackoff: 0.000000001s, maxBackoff: 0.000000001s, backoffMultiplier: 2, retryableStatusCodes: [14], budget: NONE}\n"
			testkit.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		}
		write("2")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		warnings, reloads := make(chan string, 10), make(chan string, 10)
		r := testkit.Must(interceptor.Watch(ctx, path, interceptor.WithObserver(interceptor.Observer{
			Diagnostic: func(d policy.Diagnostic) {
				if ofNoDeadline(d) {
					return
				}
				d.File = filepath.Base(d.File)
				warnings <- d.Severity + " " + d.String()
			},
			Reload: func(set *policy.Set, changes []string, err error) {
				of := "no set"
				if set != nil {
					of = set.Source() + " " + set.Hash()
				}
				reloads <- fmt.Sprint(of, " ", changes, " ", err)
			},
		})))(t)
		first := r.State()
		if first.Policies.Source() != path || len(first.Policies.Hash()) != 12 {
			t.Errorf("at first: %+v", first)
		}
		unary := r.Unary()
		attempts := func() (n int) {
			_ = unary(ctx, get, nil, nil, nil, func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
				n++
				return status.Error(codes.Unavailable, "down")
			})
			return n
		}
		if got := attempts(); got != 2 || r.State().Err != nil {
			t.Errorf("%d attempts, %v", got, r.State().Err)
		}
		write("many")
		for _, want := range []string{"error retry.yaml: a change of the policy file is refused", "error retry.yaml:3:30: methodConfig[0].retryPolicy.maxAttempts: many: must be"} {
			if w := <-warnings; !strings.HasPrefix(w, want) {
				t.Errorf("%s; want %s", w, want)
			}
		}
		if e := <-reloads; !strings.HasPrefix(e, "no set [] ") || !strings.Contains(e, "retry.yaml:3:") {
			t.Errorf("of a bad change: %s", e)
		}
		if now := r.State(); now.Policies != first.Policies {
			t.Errorf("after a bad change: %+v; want %+v", now, first)
		}
		if got := attempts(); got != 2 || !strings.Contains(fmt.Sprint(r.State().Err), "retry.yaml:3:") {
			t.Errorf("after a bad change: %d attempts, %v", got, r.State().Err)
		}
		write("7") // more than a Retrier allows, which is a warning to wait for
		if w := <-warnings; !strings.Contains(w, "is cut to 5") {
			t.Error(w)
		}
		if got := attempts(); got != 5 {
			t.Errorf("after a good change: %d attempts", got)
		}
		now := r.State()
		if e := <-reloads; e != path+" "+now.Policies.Hash()+" [hash "+first.Policies.Hash()+" → "+now.Policies.Hash()+" maxAttempts of GetOrder 2 → 7] <nil>" {
			t.Errorf("of a good change: %s", e)
		}
		if now.Policies.Hash() == first.Policies.Hash() {
			t.Errorf("after a good change: %+v, and before it %+v", now, first)
		}
	})
}

// A refused file is reported once: without an observer, to the default logger.
func TestLoad_SaysThatItDoesNotFollow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "retry.yaml")
	testkit.NoError(t, os.WriteFile(path, []byte("maxWaiting: 7"), 0o600))
	var text bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&text, nil)))
	defer slog.SetDefault(before)
	r := testkit.Must(interceptor.Load(path))(t)
	want := `level=INFO msg="stagger: ` + path + ": hash: " + r.State().Policies.Hash() + ": changes of the file are not followed until the program starts again. interceptor.Watch follows them\"\n"
	if got := text.String(); !strings.HasSuffix(got, want) || strings.Count(got, "\n") != 1 {
		t.Errorf("%s\nwant one line %s", got, want)
	}
	text.Reset()
	var notes []policy.Diagnostic
	observer := interceptor.WithObserver(interceptor.Observer{Diagnostic: func(d policy.Diagnostic) { notes = append(notes, d) }})
	testkit.Must(interceptor.Load(path, observer))(t)
	if len(notes) != 1 || notes[0].Severity != document.SeverityNote || text.Len() > 0 {
		t.Errorf("%v, logged %s; want one note", notes, &text)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if r, err := interceptor.Watch(ctx, path, observer); err != nil || r == nil || len(notes) != 1 {
		t.Errorf("Watch: %v, notes %v; want no other", err, notes)
	}
	if r, err := interceptor.Watch(ctx, path+".gone", observer); err == nil || r != nil {
		t.Errorf("Watch of no file: %v, %v; want an error and no Retrier", r, err)
	}
}
