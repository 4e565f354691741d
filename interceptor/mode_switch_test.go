// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
)

const orders, stock = "acme.orders.v1.OrderService", "acme.stock.v1.StockService"

// both has the same entry for two services.
func both(mode policy.Mode) spec.Config {
	retry := plain()
	return spec.Config{Mode: string(mode), Idempotency: "ASSUME", Methods: []spec.MethodConfig{{
		Names: []string{"/" + orders + "/", "/" + stock + "/", "/acme.orders.v1.Order/"}, Policy: spec.Policy{Retry: &retry},
	}}}
}

func TestSwitch(t *testing.T) {
	const take = "/" + stock + "/Take"
	for name, row := range map[string]struct {
		file           policy.Mode
		switches       []interceptor.ModeSwitch
		orders, stocks int // attempts
		shown          string
	}{
		"nothing set":          {"", nil, 4, 4, "[ENFORCE]"},
		"off for all":          {"", []interceptor.ModeSwitch{{Mode: policy.ModeOff}}, 1, 1, "[OFF]"},
		"off for a service":    {"", []interceptor.ModeSwitch{{Service: orders, Mode: policy.ModeOff}}, 1, 4, "[ENFORCE OFF]"},
		"a trial of a service": {"", []interceptor.ModeSwitch{{Service: orders, Mode: policy.ModeObserve}}, 1, 4, "[ENFORCE OBSERVE]"},
		"the strictest: all":   {"", []interceptor.ModeSwitch{{Mode: policy.ModeOff}, {Service: orders, Mode: policy.ModeObserve}}, 1, 1, "[OFF OBSERVE]"},
		"the strictest: file":  {policy.ModeOff, []interceptor.ModeSwitch{{Mode: policy.ModeEnforce}, {Service: orders, Mode: policy.ModeEnforce}}, 1, 1, "[ENFORCE]"},
		"a service, and back":  {"", []interceptor.ModeSwitch{{Service: orders, Mode: policy.ModeOff}, {Service: orders, Mode: policy.ModeEnforce}}, 4, 4, "[ENFORCE]"},
		"all, and back":        {"", []interceptor.ModeSwitch{{Mode: policy.ModeOff}, {}}, 4, 4, "[ENFORCE]"},
		"another service's":    {"", []interceptor.ModeSwitch{{Service: "acme.orders.v1.Order", Mode: policy.ModeOff}}, 4, 4, "[ENFORCE OFF]"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, both(row.file), func(t *testing.T, s scene) {
				s.On("*", down())
				for _, to := range row.switches {
					testkit.NoError(t, s.retrier.SetMode(to))
				}
				// A reload changes nothing that was set by hand.
				testkit.NoError(t, s.retrier.Reload(mustSet(t, both(row.file))))
				_, _ = s.call(t.Context(), get)
				_, _ = s.call(t.Context(), take)
				if s.Count(get) != row.orders || s.Count(take) != row.stocks {
					t.Errorf("%d and %d attempts; want %d and %d", s.Count(get), s.Count(take), row.orders, row.stocks)
				}
				if got := fmt.Sprint(modes(s.retrier.State().Switches)); got != row.shown {
					t.Errorf("Switches() = %s; want %s", got, row.shown)
				}
			}, interceptor.WithObserver(interceptor.Observer{ModeChange: func(_, _ interceptor.ModeSwitch) {}}))
		})
	}
}

// A switch holds for all methods that calls have used.
func TestSwitch_MethodsInUse(t *testing.T) {
	play(t, both(""), func(t *testing.T, s scene) {
		take := "/" + stock + "/Take"
		s.On("*", down())
		for i, to := range []policy.Mode{policy.ModeOff, policy.ModeEnforce, policy.ModeOff} {
			testkit.NoError(t, s.retrier.SetMode(interceptor.ModeSwitch{Mode: to}))
			for _, method := range []string{get, take} {
				before := s.Count(method)
				_, _ = s.call(t.Context(), method)
				if got, want := s.Count(method)-before, []int{1, 4, 1}[i]; got != want {
					t.Errorf("mode %q, %s: %d attempts; want %d", to, method, got, want)
				}
				time.Sleep(time.Hour) // the bucket fills
			}
		}
	})
}

// A call that waits ends when its service is switched off, and only then.
func TestSwitch_CallsThatWait(t *testing.T) {
	for service, want := range map[string]policy.Reason{orders: policy.ReasonModeOff, stock: policy.ReasonAttemptsExhausted} {
		t.Run(service, func(t *testing.T) {
			play(t, config(minutely()), func(t *testing.T, s scene) {
				s.On("*", restarting)
				_, _ = s.call(t.Context(), "/"+stock+"/Take", interceptor.MaxAttempts(1)) // so the service is known
				time.AfterFunc(time.Second, func() {
					if err := s.retrier.SetMode(interceptor.ModeSwitch{Service: service, Mode: policy.ModeOff}); err != nil {
						t.Error(err)
					}
				})
				began := time.Now()
				_, err := s.call(t.Context(), get)
				if reasonOf(err) != want || want == policy.ReasonModeOff && time.Since(began) != time.Second {
					t.Errorf("%s after %v; want %s", reasonOf(err), time.Since(began), want)
				}
			})
		})
	}
}

func TestSwitch_Events(t *testing.T) {
	t.Parallel()
	var told []string
	r := mustNew(t, mustSet(t, spec.Config{}), interceptor.WithObserver(interceptor.Observer{ModeChange: func(from, to interceptor.ModeSwitch) {
		told = append(told, fmt.Sprint(to.Service, ": ", from.Mode, " to ", to.Mode))
	}}))
	for _, to := range []interceptor.ModeSwitch{
		{Mode: policy.ModeOff},
		{Mode: policy.ModeOff},
		{Service: orders, Mode: policy.ModeObserve},
		{Service: orders, Mode: policy.ModeEnforce},
		{Service: stock, Mode: policy.ModeEnforce},
	} {
		if err := r.SetMode(to); err != nil {
			t.Error(err)
		}
	}
	want := []string{": ENFORCE to OFF", orders + ": ENFORCE to OBSERVE", orders + ": OBSERVE to ENFORCE"}
	if !slices.Equal(told, want) {
		t.Errorf("told %q; want %q", told, want)
	}
}

func TestSwitch_Errors(t *testing.T) {
	t.Parallel()
	r := mustNew(t, mustSet(t, spec.Config{}), interceptor.WithObserver(interceptor.Observer{ModeChange: func(_, _ interceptor.ModeSwitch) {}}))
	for want, to := range map[string]interceptor.ModeSwitch{
		`mode "off": must be`:  {Mode: "off"},
		"must be a full name":  {Service: "/" + orders + "/GetOrder", Mode: policy.ModeOff},
		`service "*": must be`: {Service: "*", Mode: policy.ModeOff},
	} {
		if err := r.SetMode(to); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Switch(%+v) = %v; want %q", to, err, want)
		}
	}
	if err := r.SetMode(interceptor.ModeSwitch{Service: "acme.Ordres", Mode: policy.ModeOff}); err == nil || len(r.State().Switches) != 1 {
		t.Errorf("%v; want an error for a service that nothing has", err)
	}
}

// modes returns the modes of switches, in their order.
func modes(list []interceptor.ModeSwitch) (modes []policy.Mode) {
	for _, s := range list {
		modes = append(modes, s.Mode)
	}
	return modes
}
