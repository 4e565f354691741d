// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"
	"errors"

	"github.com/stagger-go/stagger/internal/inside"
	"github.com/stagger-go/stagger/policy"
)

// Watch makes a Retrier as [Load] does, and has it follow the file until ctx ends, within five seconds of a change
// ([Retrier.Reload]). It does not matter how the file changes: it may be written in place or slowly, be replaced with or
// without its folder, or stand behind links, as where Kubernetes mounts a ConfigMap. Only a ConfigMap that is mounted by
// subPath never changes, says Kubernetes. A file that is bad is refused: the last good one holds, the observers are told, and
// [Retrier.State] says why. The error is that the file is bad now; then there is no Retrier.
func Watch(ctx context.Context, path string, options ...Option) (*Retrier, error) {
	set, err := policy.Load(path)
	if err != nil {
		return nil, err
	}
	r, err := New(set, options...)
	if err != nil {
		return nil, err
	}
	inside.Watch(ctx, path, set, func(changed any, err error) {
		set, _ := changed.(*policy.Set)
		r.followFile(path, set, err)
	})
	return r, nil
}

// followFile follows a change of the file, which err says is refused, or may be refused here.
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
	r.refuse(policy.Diagnostic{File: path, Message: "a change of the policy file is refused, and the policies from before hold"})
	if wrong, ok := errors.AsType[*policy.Error](err); ok {
		for _, d := range wrong.Diagnostics {
			r.refuse(d)
		}
		return
	}
	r.refuse(policy.Diagnostic{Message: err.Error()})
}
