// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// TestSchemaStore checks SchemaStore's requirements on an entry, and that it leads to this schema.
func TestSchemaStore(t *testing.T) {
	t.Parallel()
	var entry struct {
		Name, Description, URL string
		FileMatch              []string
	}
	var schema struct {
		ID     string `json:"$id"`
		Schema string `json:"$schema"`
	}
	for file, to := range map[string]any{"schemastore.json": &entry, "../../proto/stagger/policy/v1/policy.json": &schema} {
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, to)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if entry.URL != schema.ID || schema.ID != home || schema.Schema != draft {
		t.Errorf("the entry leads to %s, and the schema is %s of %s", entry.URL, schema.ID, schema.Schema)
	}
	if entry.Name == "" || entry.Description == "" || strings.Contains(strings.ToLower(entry.Description), "schema") || len(entry.FileMatch) == 0 {
		t.Errorf("%+v", entry)
	}
	for _, match := range entry.FileMatch {
		if !strings.Contains(match, "stagger") {
			t.Errorf("%s matches files of others", match)
		}
	}
}
