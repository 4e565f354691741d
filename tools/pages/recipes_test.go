// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package pages_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/types/known/emptypb"

	_ "github.com/stagger-go/stagger/elsewhere" // which the file of docs/set-up.md names
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

// recipe is a policy file of a page, as a client has it.
type recipe struct {
	file    string
	retrier *interceptor.Retrier
	server  *testserver.Server
	conn    *grpc.ClientConn
}

// playRecipe plays a test in virtual time, with the policy file of a page that begins after a text.
func playRecipe(t *testing.T, page, after string, test func(t *testing.T, r recipe)) {
	t.Helper()
	text := read(t, page)
	_, text, found := strings.Cut(text, after)
	files := blocks(text, "yaml")
	if !found || len(files) == 0 {
		t.Fatalf("%s has no policy file after %q", page, after)
	}
	playFile(t, files[0], test)
}

func playFile(t *testing.T, file string, test func(t *testing.T, r recipe)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := recipe{file: file, server: testserver.Start(t)}
		quiet := interceptor.WithObserver(interceptor.Observer{Diagnostic: func(policy.Diagnostic) {}})
		r.retrier = testkit.Must(interceptor.New(testkit.Must(policy.Parse("retry.yaml", []byte(file)))(t), quiet))(t)
		r.conn = r.server.Dial(t, r.retrier.DialOptions()...)
		test(t, r)
	})
}

// call makes a call, and returns how long it took.
func (r recipe) call(t *testing.T, method string) (time.Duration, error) {
	t.Helper()
	began := time.Now()
	err := r.conn.Invoke(t.Context(), method, &emptypb.Empty{}, &emptypb.Empty{})
	return time.Since(began), err
}

const listOrders = "/acme.orders.v1.OrderService/ListOrders"

// Each policy file of each page does what it is there for: a call of each method that it names, and that it retries, survives a failure.
func TestRecipes_SurviveFailure(t *testing.T) {
	t.Parallel()
	played := 0
	for path, text := range pages(t) {
		for i, file := range blocks(text, "yaml") {
			if strings.Contains(file, "stagger_retry_elsewhere") || strings.Contains(file, "REFUSE") {
				continue // programs import a package for these, whose own tests play them
			}
			set := testkit.Must(policy.Parse(path, []byte(file)))(t)
			for _, p := range set.Policies() {
				if strings.HasSuffix(p.Name(), "/") || p.MaxAttempts() < 2 || p.Mode() != policy.ModeEnforce {
					continue
				}
				played++
				t.Run(fmt.Sprint(path, " ", i, " ", p.Name()), func(t *testing.T) {
					t.Parallel()
					playFile(t, file, func(t *testing.T, r recipe) {
						r.server.On("*", testserver.Fail(codes.Unavailable).Times(1), testserver.OK())
						if _, err := r.call(t, p.Name()); err != nil || r.server.Count(p.Name()) != 2 {
							t.Errorf("%v after %d attempts; want success in the second", err, r.server.Count(p.Name()))
						}
					})
				})
			}
		}
	}
	if played < 8 {
		t.Errorf("%d methods were played; want 8 or more", played)
	}
}

// Each row of docs/coming-from.md that has settings makes the file of the page another valid one.
func TestRecipes_ComingFrom(t *testing.T) {
	t.Parallel()
	page := read(t, "docs/coming-from.md")
	file := blocks(page, "yaml")[0]
	setting := regexp.MustCompile("`([a-zA-Z]+): ([^`]+)`")
	words := strings.NewReplacer("n + 1", "4", "n", "3", "max", "5s", "d", "2s", "f", "2")
	applied := 0
	for row := range strings.Lines(page) {
		_, row, found := strings.Cut(row, "` | `") // the first cell is their name for it
		if !found || !strings.Contains(row, ": ") {
			continue
		}
		changed := file
		for _, m := range setting.FindAllStringSubmatch(row, -1) {
			key, value := m[1], m[2]
			if len(value) < 6 && value != "NONE" && value != "FIXED" && value != "RETRY" {
				value = words.Replace(value)
			}
			line := regexp.MustCompile("(?m)^( +)" + key + ": .*$")
			switch {
			case line.MatchString(changed):
				changed = line.ReplaceAllString(changed, "${1}"+key+": "+value)
			case key == "growth" || key == "jitter" || strings.HasSuffix(key, "AttemptTimeout"):
				changed = strings.Replace(changed, "    retryPolicy:\n", "    retryPolicy:\n      "+key+": "+value+"\n", 1)
			default:
				continue
			}
			applied++
		}
		if _, err := policy.Parse("retry.yaml", []byte(changed)); err != nil {
			t.Errorf("%s%v\n%s", row, err, changed)
		}
	}
	if applied < 6 {
		t.Errorf("%d settings were applied; want 6 or more", applied)
	}
}

// A person who waits has an answer, or an error, within two seconds.
func TestRecipes_Person(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(s *testserver.Server){
		"a failure":   func(s *testserver.Server) { s.On("*", testserver.Fail(codes.Unavailable)) },
		"a hang":      func(s *testserver.Server) { s.On("*", testserver.Hang()) },
		"an outage":   func(s *testserver.Server) { s.Down() },
		"a blip":      func(s *testserver.Server) { s.On("*", testserver.Fail(codes.Unavailable).Times(2), testserver.OK()) },
		"a restart":   func(s *testserver.Server) { s.Down(); time.AfterFunc(time.Second, s.Up) },
		"all is well": func(*testserver.Server) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			playRecipe(t, "docs/idempotency.md", "### For calls that a person waits for", func(t *testing.T, r recipe) {
				testkit.Must(r.call(t, getOrder))(t) // the client is connected
				fail(r.server)
				took, err := r.call(t, getOrder)
				short := slices.Contains([]string{"a blip", "a restart", "all is well"}, name)
				if took > 2*time.Second || short != (err == nil) {
					t.Errorf("%v after %v; want the end within 2 s, and an error only if it lasts", err, took)
				}
			})
		})
	}
}

// A batch outlasts an outage, whenever in it its calls begin.
func TestRecipes_Batch(t *testing.T) {
	t.Parallel()
	for _, outage := range []time.Duration{12 * time.Second, time.Minute, 4 * time.Minute} {
		for _, into := range []time.Duration{-time.Second, 0, time.Second, 6 * time.Second, 11 * time.Second} {
			t.Run(fmt.Sprint(outage, into), func(t *testing.T) {
				t.Parallel()
				playRecipe(t, "docs/idempotency.md", "### For batches", func(t *testing.T, r recipe) {
					testkit.Must(r.call(t, listOrders))(t) // the client is connected
					step := testserver.OK()
					if into < 0 { // the call runs when the outage begins
						step = testserver.Func(func(_ context.Context, a testserver.Attempt) testserver.Step {
							if a.Number < 3 {
								return testserver.Hang()
							}
							return testserver.OK()
						})
					}
					r.server.On("*", step)
					time.AfterFunc(time.Second, r.server.Down)
					time.AfterFunc(time.Second+outage, r.server.Up)
					time.Sleep(time.Second + into)
					if took, err := r.call(t, listOrders); err != nil || took > outage+time.Minute {
						t.Errorf("%v after %v; want success after the outage", err, took)
					}
				})
			})
		}
	}
}

// A batch that fails leaves the other calls their retries, and waits longer if the server sheds load.
func TestRecipes_BatchBudget(t *testing.T) {
	t.Parallel()
	_, text, _ := strings.Cut(read(t, "docs/idempotency.md"), "### For calls that a person waits for")
	files := blocks(text, "yaml")
	_, entries, _ := strings.Cut(files[0], "methodConfig:\n")
	playFile(t, files[1]+entries, func(t *testing.T, r recipe) {
		r.server.On(listOrders, testserver.Fail(codes.Unavailable))
		for range 100 {
			_, _ = r.call(t, listOrders)
		}
		r.server.On(getOrder, testserver.Fail(codes.Unavailable).Times(2), testserver.OK())
		if _, err := r.call(t, getOrder); err != nil {
			t.Errorf("%v; want the retries of other calls", err)
		}
	})
	playFile(t, files[1], func(t *testing.T, r recipe) {
		r.server.On("*", testserver.Fail(codes.ResourceExhausted).Times(4), testserver.OK())
		if took, err := r.call(t, listOrders); err != nil || took < 5*time.Second {
			t.Errorf("%v after %v; want success after long backoffs", err, took)
		}
	})
}

// A server hangs, and the call came without a deadline.
func TestRecipes_DefaultTimeout(t *testing.T) {
	t.Parallel()
	playRecipe(t, "docs/timeouts.md", "## Calls without a deadline", func(t *testing.T, r recipe) {
		r.server.On("*", testserver.Hang())
		took, err := r.call(t, getOrder)
		reason := policy.Reason("")
		if e, ok := errors.AsType[*interceptor.Error](err); ok {
			reason = e.Reason
		}
		if took != 30*time.Second || reason != policy.ReasonDeadlineExceeded || !strings.Contains(err.Error(), "defaultTimeout (interceptor.WithDefaultTimeout) is 30s") {
			t.Errorf("%v (%s) after %v; want deadline_exceeded after 30 s, by the default", err, reason, took)
		}
	})
}

// With the page's load balancing, calls go to all backends that say that they serve.
func TestRecipes_LoadBalancing(t *testing.T) {
	t.Parallel()
	playRecipe(t, "docs/policy-file.md", "## Load balancing", func(t *testing.T, r recipe) {
		var servers []*testserver.Server
		for _, status := range []healthpb.HealthCheckResponse_ServingStatus{1, 1, 2} { // the last one does not serve
			checked := health.NewServer()
			checked.SetServingStatus("acme.orders.v1.OrderService", status)
			servers = append(servers, testserver.Start(t, testserver.Register(func(to grpc.ServiceRegistrar) { healthpb.RegisterHealthServer(to, checked) })))
		}
		pickFirst := grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"pick_first": {}}]}`)
		conn := testkit.Must(testserver.DialAll(servers, append([]grpc.DialOption{pickFirst}, r.retrier.DialOptions()...)...))(t)
		defer conn.Close()
		conn.Connect()
		synctest.Wait()
		for range 6 {
			testkit.NoError(t, conn.Invoke(t.Context(), getOrder, &emptypb.Empty{}, &emptypb.Empty{}))
		}
		for i, want := range []int{3, 3, 0} {
			if n := servers[i].Count(getOrder); n != want {
				t.Errorf("backend %d has had %d of 6 calls; want %d", i, n, want)
			}
		}
	})
}

// Behind a headless Service, a retry reaches another pod. Behind a cluster IP, the client has one connection, to the pod that fails.
func TestKubernetes_Headless(t *testing.T) {
	t.Parallel()
	file := strings.Replace(blocks(read(t, "docs/set-up.md"), "yaml newuser retry.yaml")[0], "mode: OBSERVE\n", "", 1)
	playFile(t, file, func(t *testing.T, r recipe) {
		r.server.On("*", testserver.Fail(codes.Unavailable))
		headless := testkit.Must(testserver.DialAll([]*testserver.Server{r.server, testserver.Start(t), testserver.Start(t)}, r.retrier.DialOptions()...))(t)
		defer headless.Close()
		for _, service := range []struct {
			name string
			conn *grpc.ClientConn
			ok   int
		}{{"headless", headless, 30}, {"cluster IP", r.conn, 0}} {
			ok := 0
			for range 30 {
				if service.conn.Invoke(t.Context(), getOrder, &emptypb.Empty{}, &emptypb.Empty{}, interceptor.Idempotent()) == nil {
					ok++
				}
			}
			if ok != service.ok {
				t.Errorf("%s: %d of 30 calls succeed; want %d", service.name, ok, service.ok)
			}
		}
	})
}

// The table of docs/set-up.md has the requests per call of its file, in mode ENFORCE.
func TestRecipes_NormalFigures(t *testing.T) {
	t.Parallel()
	page := read(t, "docs/set-up.md")
	file := strings.Replace(blocks(page, "yaml newuser retry.yaml")[0], "mode: OBSERVE\n", "", 1)
	for row, failing := range map[string]int{
		"nothing fails": 0, "one of three backends fails every request": 1, "all backends fail for 10 s": 3,
	} {
		t.Run(row, func(t *testing.T) {
			t.Parallel()
			playFile(t, file, func(t *testing.T, r recipe) {
				var servers []*testserver.Server
				for range 3 {
					servers = append(servers, testserver.Start(t))
				}
				conn := testkit.Must(testserver.DialAll(servers, r.retrier.DialOptions()...))(t)
				defer conn.Close()
				var failed atomic.Int64
				const calls = 1000 // of 10 s
				play := func() {
					var all sync.WaitGroup
					for range calls {
						all.Go(func() {
							if conn.Invoke(t.Context(), getOrder, &emptypb.Empty{}, &emptypb.Empty{}, interceptor.Idempotent()) != nil {
								failed.Add(1)
							}
						})
						time.Sleep(10 * time.Millisecond)
					}
					all.Wait()
				}
				requests := func() (n int) {
					for _, s := range servers {
						n += s.Count(getOrder)
					}
					return n
				}
				play()
				before := requests()
				for _, s := range servers[:failing] {
					s.On("*", testserver.Fail(codes.Unavailable))
				}
				play()
				perCall := float64(requests()-before) / calls
				shown := regexp.MustCompile(`\n\| ` + row + ` \| ([0-9.]+) \| `).FindStringSubmatch(page)
				if shown == nil {
					t.Fatalf("docs/set-up.md has no row %q", row)
				}
				says := testkit.Must(strconv.ParseFloat(shown[1], 64))(t)
				t.Log(row, perCall)
				if math.Abs(perCall-says) > 0.03 {
					t.Errorf("%.2f requests per call; docs/set-up.md says %v", perCall, says)
				}
				if n := failed.Load(); failing < 3 && n > 0 || failing == 3 && n < calls*9/10 {
					t.Errorf("%d of %d calls failed", n, calls)
				}
			})
		})
	}
}
