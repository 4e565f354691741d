// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

const (
	sheddable   = policy.CriticalitySheddable
	usual       = policy.CriticalityDefault
	critical    = policy.CriticalityCritical
	strangerKey = "x-failsafe-priority"
)

// A call's criticality is sent only where its policy says so: SHEDDABLE of policy or context, else CRITICAL of either.
func TestCriticality_Sent(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		sends   bool
		policy  policy.Criticality
		context policy.Criticality
		want    string
	}{
		"the policy does not send":        {policy: critical, context: sheddable, want: "[]"},
		"nobody says anything":            {sends: true, want: "[]"},
		"the policy":                      {sends: true, policy: sheddable, want: "[SHEDDABLE]"},
		"the context":                     {sends: true, context: critical, want: "[CRITICAL]"},
		"SHEDDABLE of the context wins":   {sends: true, policy: critical, context: sheddable, want: "[SHEDDABLE]"},
		"SHEDDABLE of the policy wins":    {sends: true, policy: sheddable, context: critical, want: "[SHEDDABLE]"},
		"CRITICAL wins over DEFAULT":      {sends: true, policy: usual, context: critical, want: "[CRITICAL]"},
		"a context that says nothing":     {sends: true, policy: critical, context: usual, want: "[CRITICAL]"},
		"a criticality that there is not": {sends: true, context: "UTMOST", want: "[]"},
	} {
		for kind, desc := range callKinds {
			t.Run(name+", "+kind, func(t *testing.T) {
				retry := plain()
				c := policy.Config{Methods: []policy.MethodConfig{{Names: []string{"/"}, Spec: policy.Spec{
					SendCriticality: row.sends, Criticality: row.policy, Retry: &retry, Idempotency: policy.IdempotencyAssume,
				}}}}
				play(t, c, func(t *testing.T, s scene) {
					s.On(get, down(), testserver.OK(wrapperspb.String("done")))
					ctx := t.Context()
					if row.context != "" {
						ctx = interceptor.ContextWithCriticality(ctx, row.context)
					}
					must.Do(t, exchange(ctx, s.conn, desc, get))
					for _, a := range s.Attempts() {
						if got := fmt.Sprint(a.Metadata.Get(criticalityHeader)); got != row.want {
							t.Errorf("attempt %d carries %s; want %s", a.Number, got, row.want)
						}
					}
					if got := strings.Join(s.warnings, "; "); strings.HasPrefix(got, `interceptor.ContextWithCriticality: "UTMOST": has no effect`) != (row.context == "UTMOST") {
						t.Errorf("warnings %q", got)
					}
				})
			})
		}
	}
}

// The criticality that a server accepts from callers, up to its highest level.
func TestCriticality_Received(t *testing.T) {
	t.Parallel()
	ours := func(values ...string) metadata.MD { return metadata.MD{criticalityHeader: values} }
	none := []interceptor.ServerOption(nil)
	upTo := func(c policy.Criticality) []interceptor.ServerOption {
		return []interceptor.ServerOption{interceptor.IncomingCriticality(c)}
	}
	for name, row := range map[string]struct {
		options []interceptor.ServerOption
		sent    metadata.MD
		want    policy.Criticality
	}{
		"without the option":             {none, ours("SHEDDABLE"), usual},
		"nothing is sent":                {upTo(critical), nil, usual},
		"a stranger lowers":              {upTo(""), ours("SHEDDABLE"), sheddable},
		"a stranger raises":              {upTo(""), ours("CRITICAL"), usual},
		"a friend raises":                {upTo(critical), ours("CRITICAL"), critical},
		"nobody is more than sheddable":  {upTo(sheddable), ours("CRITICAL"), sheddable},
		"nor who says nothing":           {upTo(sheddable), nil, sheddable},
		"a highest that there is not":    {upTo("UTMOST"), ours("CRITICAL"), usual},
		"DEFAULT":                        {upTo(critical), ours("DEFAULT"), usual},
		"small letters":                  {upTo(critical), ours("critical"), usual},
		"no level":                       {upTo(critical), ours("3"), usual},
		"twice":                          {upTo(critical), ours("CRITICAL", "CRITICAL"), usual},
		"failsafe-go's VeryLow":          {upTo(critical), metadata.Pairs(strangerKey, "0"), sheddable},
		"failsafe-go's Low":              {upTo(critical), metadata.Pairs(strangerKey, "1"), sheddable},
		"failsafe-go's Medium":           {upTo(critical), metadata.Pairs(strangerKey, "2"), usual},
		"failsafe-go's High":             {upTo(critical), metadata.Pairs(strangerKey, "3"), critical},
		"failsafe-go's VeryHigh, capped": {upTo(""), metadata.Pairs(strangerKey, "4"), usual},
		"failsafe-go's none":             {upTo(critical), metadata.Pairs(strangerKey, "-1"), usual},
		"failsafe-go's level":            {upTo(critical), metadata.Pairs("x-failsafe-level", "199"), sheddable},
		"failsafe-go's highest level":    {upTo(critical), metadata.Pairs("x-failsafe-level", "499"), critical},
		"a level that there is not":      {upTo(critical), metadata.Pairs("x-failsafe-level", "500"), usual},
		"ours wins":                      {upTo(critical), metadata.Pairs(strangerKey, "0", criticalityHeader, "CRITICAL"), critical},
		"failsafe-go's is not asked for": {none, metadata.Pairs(strangerKey, "0"), usual},
	} {
		for _, unary := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, unary %v", name, unary), func(t *testing.T) {
				play(t, policy.Config{}, func(t *testing.T, s scene) {
					var got, asked policy.Criticality
					take := interceptor.Refuse(func(ctx context.Context, _ string) (func(), error) {
						asked = interceptor.CriticalityFromContext(ctx)
						return nil, nil
					})
					handle := func(ctx context.Context) error {
						got = interceptor.CriticalityFromContext(ctx)
						return nil
					}
					options := append(append([]interceptor.ServerOption{}, row.options...), take)
					with := []testserver.Option{testserver.ServerOptions(s.retrier.ServerOptions(options...)...)}
					if unary {
						with = append(with, testserver.Register(unaryOrders(handle)))
					}
					srv := testserver.Start(t, with...)
					srv.On("*", testserver.Func(func(ctx context.Context, _ testserver.Attempt) testserver.Step { return answer(handle(ctx)) }))
					must.Do(t, exchange(metadata.NewOutgoingContext(t.Context(), row.sent), srv.Dial(t), nil, get))
					if got != row.want || asked != row.want {
						t.Errorf("the handler sees %s, Refuse %s; want %s", got, asked, row.want)
					}
				})
			})
		}
	}
}

// Criticality travels through services that send it, and no further; what a proxy copies does not count.
func TestCriticality_Chain(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reads  bool // the middle
		sends  bool
		copies bool // it copies the incoming metadata, as proxies do
		want   string
	}{
		"it travels":                        {reads: true, sends: true, want: "[SHEDDABLE]"},
		"an edge reads none":                {sends: true, want: "[]"},
		"an edge that copies reads none":    {sends: true, copies: true, want: "[]"},
		"an edge sends none":                {reads: true, want: "[]"},
		"an edge that copies sends none":    {reads: true, copies: true, want: "[]"},
		"it travels, and once":              {reads: true, sends: true, copies: true, want: "[SHEDDABLE]"},
		"neither, but other keys are there": {copies: true, want: "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, policy.Config{Methods: []policy.MethodConfig{{Names: []string{"/"}, Spec: policy.Spec{SendCriticality: row.sends}}}}, func(t *testing.T, s scene) {
				s.On("*", testserver.OK(wrapperspb.String("done")))
				var options []interceptor.ServerOption
				if row.reads {
					options = append(options, interceptor.IncomingCriticality(""))
				}
				middle := testserver.Start(t, testserver.ServerOptions(s.retrier.ServerOptions(options...)...))
				middle.On("*", testserver.Func(func(ctx context.Context, _ testserver.Attempt) testserver.Step {
					if row.copies {
						md, _ := metadata.FromIncomingContext(ctx)
						ctx = metadata.NewOutgoingContext(ctx, metadata.Join(metadata.MD{criticalityHeader: md.Get(criticalityHeader)}, metadata.Pairs("x", "y")))
					}
					return answer(exchange(ctx, s.conn, nil, create))
				}))
				ctx := metadata.AppendToOutgoingContext(t.Context(), criticalityHeader, "SHEDDABLE")
				must.Do(t, exchange(ctx, middle.Dial(t), nil, get))
				md := s.Attempts()[0].Metadata
				if got := fmt.Sprint(md.Get(criticalityHeader)); got != row.want || row.copies != (len(md.Get("x")) == 1) {
					t.Errorf("the last service gets %s, and x: %v; want %s", got, md.Get("x"), row.want)
				}
			})
		})
	}
}
