// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/testserver"
)

// Observers own what they are told: one that writes to it changes nothing for another.
func TestEvent_Copies(t *testing.T) {
	vandal := interceptor.WithObserver(interceptor.Observer{
		Decision: func(_ context.Context, e interceptor.Event) {
			_ = append(e.Codes, codes.DataLoss)
			for i := range e.Codes {
				e.Codes[i] = codes.DataLoss
			}
		},
		Call: func(_ context.Context, e interceptor.Event) {
			for i := range e.Codes {
				e.Codes[i] = codes.DataLoss
			}
		},
	})
	j := new(journal)
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, down(), down(), down(), testserver.Fail(codes.NotFound))
		_, _ = s.call(t.Context(), get)
		var heard []string
		for _, e := range j.decisions {
			heard = append(heard, fmt.Sprint(e.Codes))
		}
		want := "[[] [Unavailable] [Unavailable Unavailable] [Unavailable Unavailable Unavailable]]"
		if fmt.Sprint(heard) != want {
			t.Errorf("heard %s; want %s", heard, want)
		}
		if got := fmt.Sprint(j.calls[0].Codes); got != "[Unavailable Unavailable Unavailable NotFound]" {
			t.Errorf("the call's: %s", got)
		}
	}, vandal, withJournal(j))
}
