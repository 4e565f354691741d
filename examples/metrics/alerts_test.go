// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// alert is a rule of alerts.yaml.
type alert struct {
	Alert, Expr string
	Annotations map[string]string
}

func alerts(t *testing.T) (list []alert) {
	t.Helper()
	var file struct{ Groups []struct{ Rules []alert } }
	load(t, "alerts.yaml", &file)
	for _, g := range file.Groups {
		list = append(list, g.Rules...)
	}
	if len(list) < 5 {
		t.Fatalf("%d alerts", len(list))
	}
	return list
}

func load(t *testing.T, path string, to any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = yaml.Unmarshal(text, to)
	}
	if err != nil {
		t.Fatal(path, err)
	}
}

// Each alert has a page to look at, and promtool sees it fire and not fire.
func TestAlertsAreTested(t *testing.T) {
	t.Parallel()
	var file struct {
		Tests []struct {
			Cases []struct {
				Name   string `yaml:"alertname"`
				Expect []any  `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	load(t, "alerts_test.yaml", &file)
	fires, rests := map[string]bool{}, map[string]bool{}
	for _, test := range file.Tests {
		for _, c := range test.Cases {
			fires[c.Name] = fires[c.Name] || len(c.Expect) > 0
			rests[c.Name] = rests[c.Name] || len(c.Expect) == 0
		}
	}
	for _, a := range alerts(t) {
		if !fires[a.Alert] || !rests[a.Alert] {
			t.Errorf("%s: alerts_test.yaml has it fire: %v, not fire: %v", a.Alert, fires[a.Alert], rests[a.Alert])
		}
		if want := "/docs/runbook.md#" + strings.ToLower(a.Alert); !strings.HasSuffix(a.Annotations["runbook_url"], want) {
			t.Errorf("%s: runbook_url %q; want …%s", a.Alert, a.Annotations["runbook_url"], want)
		}
		if len(names(a.Expr)) == 0 {
			t.Errorf("%s asks for no metric: %s", a.Alert, a.Expr)
		}
	}
}
