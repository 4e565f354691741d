// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// query is a query of one of the dashboard's panels.
type query struct{ panel, text string }

// dashboard returns the queries of dashboard.json, as Grafana sends them for all jobs.
func dashboard(t *testing.T) []query {
	t.Helper()
	var d struct {
		Panels []struct {
			Title   string `json:"title"`
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
	}
	text, err := os.ReadFile("dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	variable := regexp.MustCompile(`\$\w+`)
	values := map[string]string{"$job": ".*", "$__rate_interval": "5s", "$__range": "30s"}
	var list []query
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			list = append(list, query{p.Title, variable.ReplaceAllStringFunc(target.Expr, func(name string) string {
				if values[name] == "" {
					t.Errorf("%s: %s has no value", p.Title, name)
				}
				return values[name]
			})})
		}
	}
	if len(list) < 10 {
		t.Fatalf("%d queries", len(list))
	}
	return list
}

// metricNames returns the metrics in a query, and what rules record. Labels begin with grpc_ too, but none with grpc_client_; and one is
// stagger_backend.
func metricNames(query string) []string {
	names := regexp.MustCompile(`\b(?:stagger|grpc_client)[_:][\w:]+`).FindAllString(query, -1)
	return slices.DeleteFunc(names, func(name string) bool { return name == "stagger_backend" })
}

// checkRecorded checks that the dashboard and the alerts use only metrics that programs or rules record.
func checkRecorded(t *testing.T, metrics map[string]bool) {
	t.Helper()
	there := maps.Clone(metrics)
	there["stagger_client_oldest_seconds"] = true // while a call runs; TestPrometheus sees it
	for _, rule := range recorded(t) {
		there[rule.Record] = true
	}
	wanted := map[string]string{} // the position of each name
	for _, q := range dashboard(t) {
		for _, name := range metricNames(q.text) {
			wanted[name] = q.panel
		}
	}
	for _, a := range rules(t) {
		for _, name := range metricNames(a.Expr) {
			wanted[name] = a.Alert + a.Record
		}
	}
	if len(wanted) < 10 {
		t.Errorf("%d metrics", len(wanted))
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if !there[name] {
			t.Errorf("%s: nothing records %s", wanted[name], name)
		}
	}
}

// alert is a rule of alerts.yaml.
type alert struct {
	Alert, Record, Expr string
	Annotations         map[string]string
}

// alerts returns the rules that alert; recorded those that record.
func alerts(t *testing.T) []alert {
	t.Helper()
	list := slices.DeleteFunc(rules(t), func(a alert) bool { return a.Record != "" })
	if len(list) < 5 {
		t.Fatalf("%d alerts", len(list))
	}
	return list
}

func recorded(t *testing.T) []alert {
	t.Helper()
	list := slices.DeleteFunc(rules(t), func(a alert) bool { return a.Record == "" })
	if len(list) != 5 {
		t.Fatalf("%d rules that record", len(list))
	}
	return list
}

func rules(t *testing.T) (list []alert) {
	t.Helper()
	var file struct{ Groups []struct{ Rules []alert } }
	load(t, "alerts.yaml", &file)
	for _, g := range file.Groups {
		list = append(list, g.Rules...)
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

// Each alert has a page to look at, and promtool sees it both firing and not firing.
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
		want := "/docs/runbook.md#" + strings.ToLower(a.Alert)
		if a.Alert == "StaggerBackendFails" {
			want = "/docs/runbook.md#a-backend-fails-hangs-or-is-slow" // the entry with the remedy
		}
		if !strings.HasSuffix(a.Annotations["runbook_url"], want) {
			t.Errorf("%s: runbook_url %q; want …%s", a.Alert, a.Annotations["runbook_url"], want)
		}
		if len(metricNames(a.Expr)) == 0 {
			t.Errorf("%s asks for no metric: %s", a.Alert, a.Expr)
		}
	}
}
