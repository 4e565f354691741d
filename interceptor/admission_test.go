// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/policy"
)

// These tests do not import package admission, and no test of this package may: its own tests have the Retrier with it.

const notImported = `: REFUSE: the program does not have admission; add to its code: import _ "github.com/stagger-go/stagger/admission"`

// A program that does not import package admission refuses a file that turns it on, and says what to import: calls that are quietly sent
// into an overload are what the file's author wanted to prevent.
func TestAdmission_NotImported(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		file string
		want []string
	}{
		"one entry": {
			"methodConfig:\n- name: [{service: acme.orders.v1.OrderService}]\n  admission: REFUSE", []string{"retry.yaml:3:14: methodConfig[0].admission" + notImported},
		},
		"two of three": {
			"methodConfig:\n- {name: [{service: a.B}], admission: REFUSE}\n- {name: [{service: a.C}], admission: NONE}\n- {name: [{service: a.D}], admission: REFUSE}",
			[]string{"retry.yaml:2:39: methodConfig[0].admission" + notImported, "retry.yaml:4:39: methodConfig[2].admission" + notImported},
		},
		"switched off": {
			"mode: OFF\nmethodConfig: [{name: [{}], admission: REFUSE}]", []string{"retry.yaml:2:40: methodConfig[0].admission" + notImported},
		},
		"none": {"methodConfig: [{name: [{}], admission: NONE}]", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := mustParse(t, row.file)
			retrier := mustNew(t, mustSet(t, config(plain())), quiet)
			_, err := interceptor.New(set, quiet)
			for _, err := range []error{err, retrier.Reload(set)} {
				if row.want == nil {
					if err != nil {
						t.Error(err)
					}
					continue
				}
				if wrong, ok := errors.AsType[*policy.Error](err); !ok || wrong.Error() != strings.Join(row.want, "\n") {
					t.Errorf("%v; want %s", err, row.want)
				}
			}
		})
	}
}

// A policy that a caller gives can't be refused: it has no admission, and the Retrier says so once.
func TestAdmission_NotImportedByCallers(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, text("fine"))
		own := interceptor.Policy(mustPolicy(t, spec.Policy{Admission: "REFUSE"}))
		for range 3 {
			if err := s.conn.Invoke(t.Context(), get, &emptypb.Empty{}, &emptypb.Empty{}, own); err != nil {
				t.Error(err)
			}
		}
		if len(s.warnings) != 1 || !strings.Contains(s.warnings[0], "REFUSE in a policy of interceptor.Policy has no effect: the program does not have admission; ") {
			t.Errorf("%q; want one warning", s.warnings)
		}
	})
}
