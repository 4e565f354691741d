// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	network "k8s.io/api/networking/v1"
	disruption "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

// Each manifest has only keys of Kubernetes' own types; policy and alerts are those of the files.
func TestKubernetes(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := printManifests(&out); err != nil {
		t.Fatal(err)
	}
	var workloads, services []string
	for text := range strings.SplitSeq(out.String(), "\n---\n") {
		kind := regexp.MustCompile(`(?m)^kind: (\w+)$`).FindStringSubmatch(text)
		if kind == nil {
			t.Fatal("no kind:\n", text)
		}
		to, ok := map[string]any{
			"Namespace": new(core.Namespace), "ConfigMap": new(core.ConfigMap), "Service": new(core.Service),
			"Deployment": new(apps.Deployment), "StatefulSet": new(apps.StatefulSet),
			"PodDisruptionBudget": new(disruption.PodDisruptionBudget), "NetworkPolicy": new(network.NetworkPolicy),
			"PodMonitor": new(monitoring.PodMonitor), "PrometheusRule": new(monitoring.PrometheusRule),
		}[kind[1]]
		if !ok {
			t.Fatalf("kind %q is not known to this test", kind[1])
		}
		if err := yaml.UnmarshalStrict([]byte(text+"\n"), to); err != nil {
			t.Errorf("%s: %v\n%s", kind[1], err, text)
			continue
		}
		switch o := to.(type) {
		case *core.ConfigMap:
			if got := o.Data["retry.yaml"]; got != string(policies) {
				t.Errorf("the policy file of the ConfigMap is not retry.yaml:\n%s", got)
			}
		case *core.Service:
			services = append(services, o.Name)
			if o.Spec.ClusterIP != core.ClusterIPNone {
				t.Errorf("service %s is not headless: gRPC would keep to one instance", o.Name)
			}
		case *apps.Deployment:
			workloads = append(workloads, o.Name)
			checkPod(t, o.Name, &o.Spec.Template.Spec)
			if o.Spec.MinReadySeconds < 30 {
				t.Errorf("%s replaces a pod after %d s: clients that ask DNS every 30 s may know none of the new ones", o.Name, o.Spec.MinReadySeconds)
			}
		case *apps.StatefulSet:
			workloads = append(workloads, o.Name)
			checkPod(t, o.Name, &o.Spec.Template.Spec)
		case *monitoring.PrometheusRule:
			var n int
			for _, g := range o.Spec.Groups {
				n += len(g.Rules)
			}
			if n != len(rules(t)) {
				t.Errorf("%d rules; want the %d of alerts.yaml", n, len(rules(t)))
			}
		}
	}
	if !slices.Equal(workloads, order) || !slices.Equal(services, order) {
		t.Errorf("workloads %q, services %q; want %q", workloads, services, order)
	}
}

// checkPod checks that a pod has the addresses of the services that it calls, and sees changes of its policy.
func checkPod(t *testing.T, name string, pod *core.PodSpec) {
	t.Helper()
	c := pod.Containers[0]
	for _, below := range services[name].calls {
		if !strings.Contains(strings.Join(c.Args, " "), below+"=dns:///"+below+":50051") {
			t.Errorf("%s is not told of %s: %q", name, below, c.Args)
		}
	}
	for _, v := range c.VolumeMounts {
		if v.SubPath != "" {
			t.Errorf("%s mounts %s by subPath: changes would not reach it", name, v.Name)
		}
	}
}
