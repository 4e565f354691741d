// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	faultserverv1 "github.com/stagger-go/stagger/proto/stagger/faultserver/v1"
	"github.com/stagger-go/stagger/testserver"
)

func (b *builder) random(path string, r *faultserverv1.Random, depth int) testserver.Step {
	p := r.GetProbability()
	if !(p >= 0 && p <= 1) { // not the inverse: NaN must fail too
		b.report.Errorf(path+".probability", p, "must be 0 to 1")
		p = 0
	}
	if depth >= maxDepth {
		b.report.Errorf(path+".step", nil, "must not be more than %d deep", maxDepth)
		return testserver.Step{}
	}
	return testserver.Random(r.GetSeed(), p, b.step(path+".step", r.GetStep(), depth+1))
}
