// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package measure

import "time"

func (process) Processor() time.Duration { return 0 }
