// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	_ "google.golang.org/grpc/balancer/leastrequest" // the policy least_request_experimental
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// These tests do not import package elsewhere, and no test of this package may: its own tests have the Retrier with its policy.

const elsewhereFile = `
methodConfig:
- name: [{service: acme.orders.v1.OrderService, method: GetOrder}]
  retryPolicy: {maxAttempts: 4, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE]}
loadBalancingConfig:
`

// A program that does not import package elsewhere refuses a file that names its policy, and says what to import: a retry that quietly
// goes anywhere is what the file's author wanted to prevent.
func TestElsewhere_NotImported(t *testing.T) {
	t.Parallel()
	const says = ": the program does not have the load balancing policy stagger_retry_elsewhere; " +
		`add to its code: import _ "github.com/stagger-go/stagger/elsewhere"`
	for name, row := range map[string]struct{ config, want string }{
		"alone":           {"- stagger_retry_elsewhere: {childPolicy: [{round_robin: {}}]}", "retry.yaml:5:3: loadBalancingConfig[0]" + says},
		"with a fallback": {"- stagger_retry_elsewhere: {childPolicy: [{round_robin: {}}]}\n- round_robin: {}", "retry.yaml:5:3: loadBalancingConfig[0]" + says},
		"never reached":   {"- round_robin: {}\n- stagger_retry_elsewhere: {childPolicy: [{round_robin: {}}]}", "retry.yaml:6:3: loadBalancingConfig[1]" + says},
		"inside":          {"  [{outlier_detection_experimental: {childPolicy: [{stagger_retry_elsewhere: {}}]}}]", "retry.yaml:5:4: loadBalancingConfig[0]" + says},
		"another policy":  {"- round_robin: {}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := mustParse(t, elsewhereFile[1:]+row.config)
			retrier := mustNew(t, mustSet(t, config(plain())), quiet)
			_, err := interceptor.New(set, quiet)
			for _, err := range []error{err, retrier.Reload(set)} {
				if row.want == "" {
					if err != nil {
						t.Error(err)
					}
					continue
				}
				if wrong, ok := errors.AsType[*policy.Error](err); !ok || wrong.Error() != row.want {
					t.Errorf("%v; want %s", err, row.want)
				}
			}
		})
	}
}

const (
	pickFirst  = `{"loadBalancingConfig": [{"pick_first": {}}]}`
	roundRobin = `{"loadBalancingConfig": [{"round_robin": {}}]}`
)

// visited makes a connection to three backends, with default service configs before and after the Retrier's options. It returns to how many
// backends ten calls have gone.
func visited(t *testing.T, r *interceptor.Retrier, before, after string) int {
	t.Helper()
	servers := []*testserver.Server{testserver.Start(t), testserver.Start(t), testserver.Start(t)}
	options := append([]grpc.DialOption{grpc.WithDefaultServiceConfig(before)}, r.DialOptions()...)
	if after != "" {
		options = append(options, grpc.WithDefaultServiceConfig(after))
	}
	conn := testkit.Must(testserver.DialAll(servers, options...))(t)
	defer func() { testkit.NoError(t, conn.Close()) }()
	conn.Connect()
	synctest.Wait()
	for range 10 {
		testkit.NoError(t, exchange(t.Context(), conn, nil, get))
	}
	n := 0
	for _, s := range servers {
		if s.Count("*") > 0 {
			n++
		}
	}
	return n
}

// DialOptions carry out the load balancing that a file names, as gRPC does with a service config.
func TestLoadBalancing(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		file          string
		before, after string // default service configs before the options, and behind them
		backends      int
		used          string // what the note says that connections have
		warning       string
	}{
		"round_robin":          {"loadBalancingConfig: [{round_robin: {}}]", pickFirst, "", 3, "retry.yaml:1:22: loadBalancingConfig: round_robin: ", ""},
		"pick_first":           {"loadBalancingConfig: [{pick_first: {}}]", roundRobin, "", 1, "retry.yaml:1:22: loadBalancingConfig: pick_first: ", ""},
		"the first known":      {"loadBalancingConfig: [{no_such: {}}, {round_robin: {}}, {pick_first: {}}]", pickFirst, "", 3, "retry.yaml:1:22: loadBalancingConfig: round_robin: ", ""},
		"the older key":        {"loadBalancingPolicy: round_robin", pickFirst, "", 3, "retry.yaml:1:22: loadBalancingPolicy: round_robin: ", ""},
		"both keys":            {"loadBalancingPolicy: pick_first\nloadBalancingConfig: [{round_robin: {}}]", pickFirst, "", 3, "retry.yaml:2:22: loadBalancingConfig: round_robin: ", ""},
		"a config behind":      {"loadBalancingConfig: [{round_robin: {}}]", roundRobin, pickFirst, 1, "retry.yaml:1:22: loadBalancingConfig: round_robin: ", ""},
		"no balancer":          {"maxWaiting: 3", roundRobin, "", 3, "", ""},
		"health only":          {"healthCheckConfig: {serviceName: a.B}", roundRobin, "", 3, "", "retry.yaml:1:20: healthCheckConfig: has no effect without loadBalancingConfig"},
		"unknown":              {"loadBalancingConfig: [{no_such: {}}]", roundRobin, "", 3, "", "retry.yaml:1:22: loadBalancingConfig: is left out, and connections have the load balancing of their other options: the program has no policy no_such; import the package that registers it"},
		"several unknown":      {"loadBalancingConfig: [{one: {}}, {two: {}}]", roundRobin, "", 3, "", "retry.yaml:1:22: loadBalancingConfig: is left out, and connections have the load balancing of their other options: the program has no policy one, two; import the package that registers it"},
		"not imported":         {"loadBalancingConfig: [{weighted_round_robin: {}}]", roundRobin, "", 3, "", `retry.yaml:1:22: loadBalancingConfig: is left out, and connections have the load balancing of their other options: the program has no policy weighted_round_robin; import _ "google.golang.org/grpc/balancer/weightedroundrobin" registers weighted_round_robin`},
		"misspelt":             {"loadBalancingConfig: [{roundrobin: {}}]", roundRobin, "", 3, "", "retry.yaml:1:22: loadBalancingConfig: is left out, and connections have the load balancing of their other options: the program has no policy roundrobin; did you mean round_robin?"},
		"wrong settings":       {"loadBalancingConfig: [{least_request_experimental: {choiceCount: 1}}, {pick_first: {}}]", roundRobin, "", 3, "", "retry.yaml:1:22: loadBalancingConfig: is left out, and connections have the load balancing of their other options: least_request_experimental: least-request: lbConfig.choiceCount: 1"},
		"the older key, wrong": {"loadBalancingPolicy: no_such", roundRobin, "", 3, "", "retry.yaml:1:22: loadBalancingPolicy: no_such: is left out, and connections have the load balancing of their other options: the program has no policy no_such; import the package that registers it"},
		"one of both unknown":  {"loadBalancingPolicy: round_robin\nloadBalancingConfig: [{no_such: {}}]", pickFirst, "", 3, "retry.yaml:1:22: loadBalancingPolicy: round_robin: ", "retry.yaml:2:22: loadBalancingConfig: is left out, and connections have the load balancing of their other options: the program has no policy no_such; "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var notes, warnings []string
				r := mustNew(t, mustParse(t, row.file), diagnosed(&notes, &warnings))
				if len(warnings) > 1 || strings.Join(warnings, "") == "" != (row.warning == "") || !strings.HasPrefix(strings.Join(warnings, ""), row.warning) {
					t.Errorf("warnings %q; want %q", warnings, row.warning)
				}
				const says = "It may connect to all backends, and it replaces a default service config that comes before these options"
				if row.used == "" && len(notes) != 0 || row.used != "" && (len(notes) != 1 || !strings.HasPrefix(notes[0], row.used) || !strings.HasSuffix(notes[0], says)) {
					t.Errorf("notes %q; want %s…%s", notes, row.used, says)
				}
				if n := visited(t, r, row.before, row.after); n != row.backends {
					t.Errorf("calls went to %d backends; want %d", n, row.backends)
				}
			})
		})
	}
}

func diagnosed(notes, warnings *[]string) interceptor.Option {
	return interceptor.WithObserver(interceptor.Observer{Diagnostic: func(d policy.Diagnostic) {
		if d.Severity == "note" {
			*notes = append(*notes, d.String())
		} else if d.Field != "deadline" { // calls of these tests have none
			*warnings = append(*warnings, d.String())
		}
	}})
}

// A backend that says that it does not serve gets no calls, if the file has a healthCheckConfig, even an empty one.
func TestLoadBalancing_Health(t *testing.T) {
	t.Parallel()
	for file, served := range map[string]string{
		"loadBalancingConfig: [{round_robin: {}}]\nhealthCheckConfig: {serviceName: orders}":                     "",
		"loadBalancingConfig: [{round_robin: {}}]\nhealthCheckConfig: {}":                                        "",
		"loadBalancingConfig: [{round_robin: {}}]\nhealthCheckConfig: {serviceName: another}":                    "here",
		"loadBalancingConfig: [{round_robin: {}}]":                                                               "here",
		"loadBalancingConfig: [{no_such: {}}]\nhealthCheckConfig: {serviceName: orders}\nloadBalancingPolicy: x": "here",
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				checked := health.NewServer()
				checked.SetServingStatus("", healthpb.HealthCheckResponse_NOT_SERVING)
				checked.SetServingStatus("orders", healthpb.HealthCheckResponse_NOT_SERVING)
				checked.SetServingStatus("another", healthpb.HealthCheckResponse_SERVING)
				server := testserver.Start(t, testserver.Register(func(r grpc.ServiceRegistrar) { healthpb.RegisterHealthServer(r, checked) }))
				server.On(get, text("here"))
				s := scene{Server: server, conn: server.Dial(t, mustNew(t, mustParse(t, file), quiet).DialOptions()...)}
				answer, err := s.call(t.Context(), get)
				if answer != served || (err == nil) != (served != "") {
					t.Errorf("%q, %v; want %q", answer, err, served)
				}
			})
		})
	}
}

// A reload can't change the connections that there are, and says so, once for each change.
func TestLoadBalancing_Reload(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var notes, warnings []string
		r := mustNew(t, mustParse(t, "loadBalancingConfig: [{round_robin: {}}]"), diagnosed(&notes, &warnings))
		server := testserver.Start(t)
		conn := server.Dial(t, r.DialOptions()...)
		const says = ": has changed: connections keep the load balancing that they were made with; " +
			"those made with Retrier.DialOptions from now on have the new one"
		for _, step := range []struct {
			file     string
			want     []string
			backends int // of a connection made after it
		}{
			{"# the same\nloadBalancingConfig: [{round_robin: {}}]", nil, 3},
			{"loadBalancingConfig: [{pick_first: {}}]", []string{"retry.yaml:1:22: loadBalancingConfig" + says}, 1},
			{"loadBalancingConfig: [{pick_first: {}}]\nhealthCheckConfig: {serviceName: a}", []string{"retry.yaml:2:20: healthCheckConfig" + says}, 1},
			{"loadBalancingPolicy: round_robin", []string{"retry.yaml:1:22: loadBalancingPolicy: round_robin" + says}, 3},
			{"loadBalancingConfig: [{round_robbin: {}}]", []string{"retry.yaml:1:22: loadBalancingConfig: is left out, and connections have the load balancing of their other options: the program has no policy round_robbin; did you mean round_robin?", "retry.yaml:1:22: loadBalancingConfig" + says}, 1},
			{"maxWaiting: 7", nil, 1},
		} {
			warnings = nil
			testkit.NoError(t, r.Reload(mustParse(t, step.file)))
			if !slices.EqualFunc(warnings, step.want, strings.HasPrefix) {
				t.Errorf("%s: warnings %q; want %q", step.file, warnings, step.want)
			}
			if n := visited(t, r, pickFirst, ""); n != step.backends {
				t.Errorf("%s: calls went to %d backends; want %d", step.file, n, step.backends)
			}
			server.On(get, testserver.Fail(codes.Unavailable).Times(1), testserver.OK())
			_ = exchange(t.Context(), conn, nil, get)
			testkit.NoError(t, exchange(t.Context(), conn, nil, get)) // a connection made before it goes on
		}
	})
}
