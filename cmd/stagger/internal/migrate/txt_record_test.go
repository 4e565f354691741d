// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"strings"
	"testing"

	"github.com/stagger-go/stagger/internal/tools/must"
)

const config = `{"methodConfig": [{"name": [{"service": "a.B", "method": "C"}], "timeout": "1s"}]}`

func TestMigrate_Record(t *testing.T) {
	t.Parallel()
	want := must.Get(run(t, config, "-"))(t)
	quoted := `"` + strings.ReplaceAll(`grpc_config=[{"serviceConfig": `+config+`}]`, `"`, `\"`) + `"`
	for name, tc := range map[string]struct{ record, head string }{
		"bare":             {`grpc_config=[{"serviceConfig": ` + config + `}]` + "\n", ""},
		"in quotes":        {quoted, ""},
		"in two strings":   {strings.Replace(quoted, "methodConfig", "method\" \"Config", 1), ""},
		"escaped numbers":  {strings.ReplaceAll(quoted, "{", `\123`), ""},
		"another language": {`grpc_config=[{"clientLanguage": ["java"], "serviceConfig": {}}, {"clientLanguage": ["GO"], "serviceConfig": ` + config + `}]`, "Element 2 of the 2 in the TXT record, the first for Go."},
		"some clients": {`grpc_config=[{"percentage": 5, "clientHostname": ["a", "b"], "serviceConfig": ` + config + `}]`, "Element 1 of the 1 in the TXT record, " +
			"the first for Go. The record has it for 5 % of the clients on the hosts a, b only; this file is for all."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := run(t, tc.record, "-")
			if tc.head != "" {
				got = strings.Replace(got, "# "+tc.head+"\n\n", "", 1)
			}
			if err != nil || got != want {
				t.Errorf("%v\n%s\nwant\n%s", err, got, want)
			}
		})
	}
}

func TestMigrate_RefusesRecords(t *testing.T) {
	t.Parallel()
	for record, want := range map[string]string{
		`grpc_config={}`:                     "<stdin>: TXT record: grpc_config= must be followed by a JSON list",
		`grpc_config=[]`:                     "<stdin>: TXT record: none of its 0 elements has a serviceConfig for Go",
		`grpc_config=[{"percentage": 5}]`:    "none of its 1 elements",
		`"grpc_config=[]`:                    "a quote is not closed",
		`"grpc_config=[]" and more`:          `'a' is outside of the quotes`,
		`"grpc_config=[]\`:                   `ends with \`,
		`grpc_config=[{"serviceConfig": 5}]`: "<stdin>:1:1: ",
	} {
		if got, err := run(t, record, "-"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q, %v; want %s", record, got, err, want)
		}
	}
}

// TestMigrate_Spellings has spellings that gRPC for Go reads, but not a policy file.
func TestMigrate_Spellings(t *testing.T) {
	t.Parallel()
	const laxer = `{"MethodConfig": [{"NAME": [{"Service": "a.B", "method": "C"}], "TimeOut": "1.s", "waitForReady": null}]}`
	want := must.Get(run(t, config, "-"))(t)
	if got, err := run(t, laxer, "-"); err != nil || got != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
}
