// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
)

// Attempts get targets of their own for the options that write to the caller when an attempt ends, in their
// method after. A version of gRPC that has more of them needs more of us.
func TestEmbeddedOption_AllOfGRPC(t *testing.T) {
	t.Parallel()
	file, _ := runtime.FuncForPC(reflect.ValueOf(grpc.Header).Pointer()).FileLine(0)
	files, err := filepath.Glob(filepath.Join(filepath.Dir(file), "*.go"))
	if _, missing := os.Stat(file); missing != nil || err != nil || len(files) == 0 {
		t.Skipf("the sources of gRPC are not at %s", file)
	}
	var writers []string
	for _, file := range files {
		tree, err := parser.ParseFile(gotoken.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range tree.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil || f.Name.Name != "after" || len(f.Body.List) == 0 {
				continue
			}
			if receiver, ok := f.Recv.List[0].Type.(*ast.Ident); ok {
				writers = append(writers, receiver.Name)
			}
		}
	}
	slices.Sort(writers)
	if want := []string{"HeaderCallOption", "PeerCallOption", "TrailerCallOption"}; !slices.Equal(writers, want) {
		t.Errorf("options that write: %q; want %q", writers, want)
	}
}

// ofTeam is an option as a team may wrap those that it gives to all calls.
type ofTeam struct {
	grpc.CallOption

	team string
}

// Options of this package also work inside an application's own type.
func TestEmbeddedOption_OfThisPackage(t *testing.T) {
	twice := plain()
	twice.MaxAttempts = 2
	for name, row := range map[string]struct {
		config  spec.Config
		option  grpc.CallOption
		sent    int
		calls   int
		heading string
	}{
		"Disable":        {config(plain()), interceptor.Disable(), 1, 0, ""},
		"MaxAttempts":    {config(plain()), interceptor.MaxAttempts(1), 1, 1, ""},
		"Policy":         {spec.Config{}, interceptor.Policy(mustPolicy(t, spec.Policy{Retry: &twice, Idempotency: "ASSUME"})), 2, 1, ""},
		"Idempotent":     {undeclared(), interceptor.Idempotent(), 4, 1, ""},
		"IdempotencyKey": {undeclared(), interceptor.IdempotencyKey("k"), 4, 1, "k"},
		"nothing":        {undeclared(), nil, 1, 1, ""},
	} {
		for form, wrap := range map[string]func(grpc.CallOption) grpc.CallOption{
			"by value":   func(o grpc.CallOption) grpc.CallOption { return ofTeam{o, "orders"} },
			"by pointer": func(o grpc.CallOption) grpc.CallOption { return &ofTeam{o, "orders"} },
		} {
			t.Run(name+"/"+form, func(t *testing.T) {
				if row.option == nil {
					row.option = grpc.EmptyCallOption{}
				}
				play(t, row.config, func(t *testing.T, s scene) {
					s.On(get, down())
					_, _ = s.call(t.Context(), get, wrap(row.option))
					if s.Count(get) != row.sent || len(s.calls) != row.calls {
						t.Errorf("%d attempts, calls %+v; want %d and %d", s.Count(get), s.calls, row.sent, row.calls)
					}
					if got := strings.Join(s.Attempts()[0].Metadata["idempotency-key"], ""); got != row.heading {
						t.Errorf("key %q", got)
					}
				})
			})
		}
	}
}

// waits is a type that embeds an option of gRPC's by its own type.
type waits struct {
	grpc.FailFastCallOption

	why string
}

// Only the field that a type embeds directly is read. An option of gRPC's without a target goes to every attempt; with any other the call
// has one attempt, and there is one warning.
func TestEmbeddedOption_Read(t *testing.T) {
	ready := grpc.FailFastCallOption{FailFast: false}
	for name, row := range map[string]struct {
		option grpc.CallOption
		passes bool
	}{
		"gRPC's, by its type":        {waits{ready, "x"}, true},
		"gRPC's, by an interface":    {ofTeam{ready, "x"}, true},
		"gRPC's, and passed so":      {&ofTeam{&ready, "x"}, true},
		"one that means nothing":     {marker{name: "x"}, true},
		"a type's that embeds it":    {ofTeam{waits{ready, "x"}, "y"}, false},
		"of this package, twice":     {ofTeam{&ofTeam{interceptor.Idempotent(), "x"}, "y"}, false},
		"a field that can't be read": {hiddenToo{ready}, false},
	} {
		for kind, c := range map[string]spec.Config{"retried": config(plain()), "hedged": hedged()} {
			t.Run(strings.ReplaceAll(name+"/"+kind, " ", "_"), func(t *testing.T) {
				play(t, c, func(t *testing.T, s scene) {
					s.On(get, down(), down(), text("a"))
					seen, want := 0, 1
					if row.passes {
						want = 3
					}
					conn := s.Dial(t, append(s.retrier.DialOptions(), grpc.WithChainUnaryInterceptor(
						func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
							if slices.Contains(opts, row.option) {
								seen++
							}
							return invoke(ctx, method, req, reply, cc, opts...)
						}))...)
					_, err := (scene{conn: conn}).call(t.Context(), get, row.option)
					if (err == nil) != row.passes || s.Count(get) != want || seen != want {
						t.Errorf("%v after %d attempts, %d of which had the option; want %d", err, s.Count(get), seen, want)
					}
					if warned := len(s.warnings) > 0; warned == row.passes {
						t.Errorf("warnings %q", s.warnings)
					}
				})
			})
		}
	}
}

// undeclared has retries for a whole service whose methods are not declared idempotent.
func undeclared() spec.Config {
	c := config(plain())
	c.Methods = c.Methods[1:]
	return c
}
