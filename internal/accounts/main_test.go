// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package accounts

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
