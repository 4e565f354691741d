// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	grpcbalancer "google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/base"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// picking is a picker that picks nothing, and says why; it counts how often it is asked.
type picking struct {
	err   error
	asked atomic.Int64
}

func (p *picking) Pick(grpcbalancer.PickInfo) (grpcbalancer.PickResult, error) {
	p.asked.Add(1)
	return grpcbalancer.PickResult{}, p.err
}

func (p *picking) Build(base.PickerBuildInfo) grpcbalancer.Picker { return p }

// dialPicking has gRPC ask a picker that picks nothing.
func (s scene) dialPicking(t *testing.T, name string, err error) (*picking, scene) {
	t.Helper()
	p := &picking{err: err}
	grpcbalancer.Register(base.NewBalancerBuilder(name, p, base.Config{}))
	s.conn = s.Dial(t, append(s.retrier.DialOptions(),
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"`+name+`": {}}]}`))...)
	return p, s
}

// What a picker says without a peer: gRPC drops an RPC whose picker returns a status.
func TestUnsent(t *testing.T) {
	listed := plain()
	listed.Codes = policy.Codes(codes.Unavailable, codes.Internal, codes.Unauthenticated)
	for name, row := range map[string]struct {
		err           error
		declared, not int // attempts of a method that was declared safe, and of another
		why           policy.Reason
	}{
		"unavailable":              {status.Error(codes.Unavailable, "no endpoint"), 4, 4, policy.ReasonAttemptsExhausted},
		"no status":                {errors.New("no endpoint"), 4, 4, policy.ReasonAttemptsExhausted},
		"another code":             {status.Error(codes.Unauthenticated, "no token"), 4, 1, policy.ReasonNotIdempotent},
		"a code that gRPC changes": {status.Error(codes.NotFound, "no cluster"), 4, 1, policy.ReasonNotIdempotent},
		"dropped by xDS":           {status.Error(codes.Unavailable, "RPC is dropped"), 1, 1, policy.ReasonNonRetryable},
		"circuit breaking":         {status.Error(codes.Unavailable, "max requests 1024 exceeded on service orders"), 1, 1, policy.ReasonNonRetryable},
		"dropped by grpclb":        {status.Error(codes.Unavailable, "request dropped by grpclb"), 1, 1, policy.ReasonNonRetryable},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, config(listed), func(t *testing.T, s scene) {
				p, s := s.dialPicking(t, "picking_"+strings.ReplaceAll(name, " ", "_"), row.err)
				for method, want := range map[string]int{get: row.declared, create: row.not} {
					p.asked.Store(0)
					if _, err := s.call(t.Context(), method); int(p.asked.Load()) != want || method == create && reasonOf(err) != row.why {
						t.Errorf("%s: %d attempts, %s; want %d, %s", method, p.asked.Load(), reasonOf(err), want, row.why)
					}
				}
				p.asked.Store(0)
				stream, err := s.conn.NewStream(t.Context(), serverStream, create)
				if err == nil {
					err = stream.RecvMsg(nil)
				}
				if int(p.asked.Load()) != row.not || reasonOf(err) != row.why {
					t.Errorf("stream: %d attempts, %s; want %d, %s", p.asked.Load(), reasonOf(err), row.not, row.why)
				}
			})
		})
	}
}

// The same texts from a server are what that says of somebody else.
func TestADropThatAServerReports(t *testing.T) {
	play(t, config(plain()), func(t *testing.T, s scene) {
		s.On(get, testserver.Fail(codes.Unavailable, "RPC is dropped"), text("2"))
		if _, err := s.call(t.Context(), get); err != nil || s.Count(get) != 2 {
			t.Errorf("%v after %d attempts; want OK after 2", err, s.Count(get))
		}
	})
}

// gRPC's sources say with which texts pickers drop RPCs. A version that has others needs others here.
func TestTextsOfDropsInGRPC(t *testing.T) {
	t.Parallel()
	drops := sourceTexts(t, `status\.(?:Error|Errorf|New|Newf)\(codes\.Unavailable, "([^"]*drop[^"]*)"`)
	if want := []string{"RPC is dropped", "request dropped by grpclb"}; !slices.Equal(drops, want) {
		t.Errorf("drops: %q; want %q", drops, want)
	}
	exceeded := sourceTexts(t, `Errorf\("([^"]*exceeded on service[^"]*)"`)
	if want := []string{"max requests %v exceeded on service %v"}; !slices.Equal(exceeded, want) {
		t.Errorf("circuit breaking: %q; want %q", exceeded, want)
	}
}

// sourceTexts is what the first group of a pattern finds in gRPC's sources.
func sourceTexts(t *testing.T, pattern string) (found []string) {
	t.Helper()
	file, _ := runtime.FuncForPC(reflect.ValueOf(grpc.Header).Pointer()).FileLine(0)
	if _, err := os.Stat(file); err != nil {
		t.Skipf("the sources of gRPC are not at %s", file)
	}
	expression := regexp.MustCompile(pattern)
	err := filepath.WalkDir(filepath.Dir(file), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range expression.FindAllSubmatch(text, -1) {
			found = append(found, string(m[1]))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(found)
	return found
}

// gRPC does not show interceptors the retry policies of an xDS server.
func TestUnsentWhereGRPCMayRetryUnseen(t *testing.T) {
	for name, row := range map[string]struct {
		scheme string
		known  bool // that gRPC does not retry
		want   int
		warn   string
	}{
		"xds":                {"xds", false, 1, "target: xds:///orders: "},
		"google-c2p":         {"google-c2p", false, 1, "target: google-c2p:///orders: "},
		"xds, DialOptions":   {"xds", true, 4, ""},
		"another scheme":     {"static", false, 4, ""},
		"looks like xds":     {"xdsx", false, 4, ""},
		"in capital letters": {"XDS", false, 1, "target: xds:///orders: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				j := new(journal)
				retrier := mustNew(t, mustSet(t, config(impatient())), withJournal(j))
				j.warnings = nil
				r := manual.NewBuilderWithScheme(strings.ToLower(row.scheme))
				r.InitialState(resolver.State{Addresses: []resolver.Address{{Addr: "nowhere"}}})
				opts := []grpc.DialOption{
					grpc.WithResolvers(r), grpc.WithTransportCredentials(insecure.NewCredentials()),
					grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return nil, errors.New("down") }),
				}
				if row.known {
					opts = append(opts, retrier.DialOptions()...)
				} else {
					opts = append(opts, grpc.WithUnaryInterceptor(retrier.Unary()), grpc.WithStreamInterceptor(retrier.Stream()))
				}
				conn, err := grpc.NewClient(row.scheme+":///orders", opts...)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				for range 2 {
					j.attempts = nil
					if _, err := (scene{conn: conn}).call(t.Context(), create); status.Code(err) != codes.Unavailable || len(j.attempts) != row.want {
						t.Errorf("%v after %d attempts; want %d", err, len(j.attempts), row.want)
					}
					j.attempts = nil
					if _, err := conn.NewStream(t.Context(), serverStream, create); status.Code(err) != codes.Unavailable || len(j.attempts) != row.want {
						t.Errorf("stream: %v after %d attempts; want %d", err, len(j.attempts), row.want)
					}
				}
				if got := strings.Join(j.warnings, "; "); !strings.HasPrefix(got, row.warn) || (got == "") != (row.warn == "") || len(j.warnings) > 1 {
					t.Errorf("warnings %q; want one that begins with %q", got, row.warn)
				}
			})
		})
	}
}
