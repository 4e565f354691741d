// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import "github.com/stagger-go/stagger/internal/inside"

func init() {
	inside.Admission = func(retrier any) []inside.AdmissionState {
		r, _ := retrier.(*Retrier)
		return r.admissions()
	}
}
