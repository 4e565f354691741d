// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package otelstagger_test

import (
	"context"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/observe/otelstagger"
	"github.com/stagger-go/stagger/testserver"
)

// The table in README.md has every instrument with its kind, unit and labels, and no other.
func TestMetricsAreDocumented(t *testing.T) {
	page := testkit.Must(os.ReadFile("README.md"))(t)
	documented := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `((?:stagger|grpc)\\.[^`]+)` \\| ((?:up-down )?(?:counter|gauge|histogram)[^|]*) \\| ([^|]*)\\|").FindAllStringSubmatch(string(page), -1) {
		documented[row[1]] = row[2] + " of " + strings.TrimSpace(strings.ReplaceAll(row[3], "`", ""))
	}
	play(t, func(t *testing.T, s scene) {
		s.On(method, down().Times(1), testserver.OK())
		s.knows(t)
		s.On(hedged, testserver.Hang().Times(1), testserver.OK())
		s.call(t.Context(), method)
		s.call(t.Context(), hedged)
		s.outer(t.Context())
		s.Down()
		s.conn.Connect()
		synctest.Wait()
		s.call(t.Context(), method)
		set := testkit.Must(compiled.NewSet(spec.Config{}))(t)
		testkit.NoError(t, s.retrier.Reload(set))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan error)
		go func() { // it runs until ctx ends
			ended <- s.conn.Invoke(ctx, method, &emptypb.Empty{}, &emptypb.Empty{}, grpc.StaticMethod(), grpc.WaitForReady(true))
		}()
		synctest.Wait()
		recorded := map[string]string{}
		for _, m := range s.collect(t) {
			kind, keys := shape(t, m)
			if m.Unit != "" {
				kind += ", " + m.Unit
			}
			recorded[m.Name] = kind + " of " + keys
		}
		for _, name := range slices.Sorted(maps.Keys(recorded)) {
			if documented[name] != recorded[name] {
				t.Errorf("%s is a %s; the page says %q", name, recorded[name], documented[name])
			}
		}
		if len(documented) != len(recorded) {
			t.Errorf("documented are %q; recorded are %q", slices.Sorted(maps.Keys(documented)), slices.Sorted(maps.Keys(recorded)))
		}
		cancel()
		<-ended
	}, otelstagger.Backends())
}

// So is every attribute that spans and their events get here.
func TestTracesAreDocumented(t *testing.T) {
	page := testkit.Must(os.ReadFile("README.md"))(t)
	playTraces(t, alone, func(t *testing.T, s traced) {
		s.On(method, down())
		s.call(t.Context(), method)
		seen := map[string]bool{}
		for _, span := range s.spans.GetSpans() {
			list := span.Attributes
			for _, e := range span.Events {
				list = append(list, e.Attributes...)
			}
			for _, kv := range list {
				seen[string(kv.Key)] = true
			}
		}
		delete(seen, "rpc.system.name")
		if len(seen) != 15 {
			t.Errorf("%d attributes: %v", len(seen), seen)
		}
		for key := range seen {
			if !strings.Contains(string(page), "`"+key+"`") {
				t.Errorf("%s is not documented", key)
			}
		}
	})
}

// shape is the kind of an instrument and its labels.
func shape(t *testing.T, m metricdata.Metrics) (kind, labels string) {
	t.Helper()
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		kind = "up-down counter"
		if data.IsMonotonic {
			kind = "counter"
		}
		return kind, keys(data.DataPoints[0].Attributes)
	case metricdata.Sum[float64]:
		return "counter", keys(data.DataPoints[0].Attributes)
	case metricdata.Gauge[int64]:
		return "gauge", keys(data.DataPoints[0].Attributes)
	case metricdata.Gauge[float64]:
		return "gauge", keys(data.DataPoints[0].Attributes)
	case metricdata.Histogram[int64]:
		return "histogram", keys(data.DataPoints[0].Attributes)
	case metricdata.Histogram[float64]:
		return "histogram", keys(data.DataPoints[0].Attributes)
	default:
		t.Fatalf("%s is a %T", m.Name, data)
		return "", ""
	}
}

// order is that of the table.
var order = []string{"grpc.method", "budget", "kind", "grpc.target", "stagger.backend", "grpc.status", "service", "result", "reason", "slow", "hash", "source", "mode"}

func keys(set attribute.Set) string {
	var list []string
	for _, kv := range set.ToSlice() {
		list = append(list, string(kv.Key))
	}
	slices.SortFunc(list, func(a, b string) int { return slices.Index(order, a) - slices.Index(order, b) })
	return strings.Join(list, ", ")
}
