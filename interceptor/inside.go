// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"time"

	"github.com/stagger-go/stagger/internal/inside"
)

func init() {
	inside.Admission = func(retrier any) []inside.AdmissionState {
		r, _ := retrier.(*Retrier)
		return r.admissions()
	}
	inside.Since = func(retrier any) time.Time {
		r, _ := retrier.(*Retrier)
		return r.rules.Load().since
	}
}
