// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stagger-go/stagger/interceptor"
)

func TestADayThatCannotBePlayedEndsAtOnce(t *testing.T) {
	t.Parallel()
	set := builtIn(t)
	synctest.Test(t, func(t *testing.T) {
		who, err := contenders(set, interceptor.Observer{})
		if err != nil {
			t.Fatal(err)
		}
		d := newDay(1)
		calls := schedule(d, 1)
		d.fleet.workers = 0
		start := time.Now()
		if _, err := play(t.Context(), d, calls, who, lines{screen{Writer: t.Output()}}); err == nil {
			t.Error("servers without workers were accepted")
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("the users went on for %v; want none", took)
		}
	})
}
