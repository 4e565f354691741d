// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"errors"
	"fmt"

	"github.com/stagger-go/stagger/internal/policyfile/document"
	"github.com/stagger-go/stagger/policy"
)

// Watch returns a Retrier as [Load] does, and reloads the file within five seconds of each change until ctx ends ([Retrier.Reload]). The
// file may be written in place or slowly, it may be replaced with or without its folder, and it may be behind links, as in a Kubernetes
// ConfigMap. But a ConfigMap that is mounted with subPath never changes. If a changed file is invalid, the last valid one stays in use,
// observers are notified, and [Retrier.State] has the error. If the file is already invalid when Watch is called, or is a named pipe, Watch
// returns an error and no Retrier.
func Watch(ctx context.Context, path string, options ...Option) (*Retrier, error) {
	if err := document.CheckNoPipe(path); err != nil {
		return nil, fmt.Errorf("interceptor: Watch: %w", err)
	}
	set, err := policy.Load(path)
	if err != nil {
		return nil, err
	}
	r, err := New(set, options...)
	if err != nil {
		return nil, err
	}
	policy.Follow(ctx, path, set, func(set *policy.Set, err error) { r.followFile(path, set, err) })
	return r, nil
}

// followFile applies a change of the file, unless it is invalid, by err or by Reload.
func (r *Retrier) followFile(path string, set *policy.Set, err error) {
	var before, after *rules
	if err == nil {
		before, after, err = r.replace(set)
	}
	if err == nil {
		r.refusal.Store(nil)
		r.announce(set, before, after, nil)
		return
	}
	r.refusal.Store(&err)
	r.announce(set, nil, nil, err)
	r.diagnoseError(policy.Diagnostic{File: path, Message: "a change of the policy file is refused; the previous policies apply"})
	if wrong, ok := errors.AsType[*policy.Error](err); ok {
		for _, d := range wrong.Diagnostics {
			r.diagnoseError(d)
		}
		return
	}
	r.diagnoseError(policy.Diagnostic{Message: err.Error()})
}
