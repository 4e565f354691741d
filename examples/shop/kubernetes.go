// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed" // for the manifests and their files
	"io"
	"strings"
	"text/template"
)

var (
	//go:embed kubernetes.yaml
	manifests string
	//go:embed alerts.yaml
	alertRules string
)

// printManifests prints the shop's Kubernetes manifests: kubernetes.yaml with the policy file, the alerts and the services
// filled in.
func printManifests(out io.Writer) error {
	functions := template.FuncMap{
		"indent": func(spaces int, text string) string {
			pad := strings.Repeat(" ", spaces)
			return pad + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+pad)
		},
		"calls": func(service string) string {
			return callsOf(service, func(name string) string { return name + ":50051" })
		},
	}
	parsed, err := template.New("kubernetes.yaml").Funcs(functions).Parse(manifests)
	if err != nil {
		return err
	}
	return parsed.Execute(out, struct {
		Services       []string
		Policy, Alerts string
	}{order, string(policies), alertRules})
}
