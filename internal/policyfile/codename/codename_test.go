// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package codename_test

import (
	"strconv"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/policyfile/codename"
)

func TestNames(t *testing.T) {
	t.Parallel()
	for i, name := range codename.Failures() {
		want := codes.Code(i + 1)
		if codename.Of(want) != name {
			t.Errorf("%v is %s; want %s", want, codename.Of(want), name)
		}
		for _, text := range []string{name, strings.ToLower(name), want.String(), strconv.Itoa(i + 1)} {
			if c, ok := codename.Parse(text); !ok || c != want {
				t.Errorf("Parse(%q) = %v, %v; want %v", text, c, ok, want)
			}
		}
	}
	if got := codename.List([]codes.Code{codes.Canceled, codes.OK, 17, 1<<32 - 14}); got != "CANCELLED, OK, 17, 4294967282" {
		t.Errorf("List = %s", got)
	}
	for _, text := range []string{"", "OK", "0", "17", "-1", "014", "UNAVAILABLE "} {
		if c, ok := codename.Parse(text); ok {
			t.Errorf("Parse(%q) = %v", text, c)
		}
	}
}
