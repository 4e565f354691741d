// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

func TestFilesHaveALineForEveryClient(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	table, objects := filepath.Join(folder, "storm.csv"), filepath.Join(folder, "storm.json")
	if _, err := played(t, target{success: 0.5}, "-csv", table, "-json", objects); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(table)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(objects)
	if err != nil {
		t.Fatal(err)
	}
	var list []map[string]any
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	if n := len(contenders(1)); len(rows) != n+1 || len(list) != n {
		t.Fatalf("%d lines of CSV, %d of JSON; want %d, a heading, and %d", len(rows), len(list), n+1, n)
	}
	for i, name := range rows[0] {
		if _, ok := list[0][name]; !ok || len(list[0]) != len(rows[0]) {
			t.Errorf("column %d is %q; want the %d keys of JSON: %v", i, name, len(list[0]), list[0])
		}
	}
	if got := rows[1][:2]; got[0] != "drizzle" || got[1] != "no retries" || list[1]["judgement"] != "PASS" {
		t.Errorf("first line %v, second judgement %v; want drizzle, no retries, PASS", got, list[1]["judgement"])
	}
}
