// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package elsewhere

import (
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"testing"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/base"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"
)

// stubBuilder builds stubs. Each tested policy has its own builders, so that tests don't share stubs.
type stubBuilder struct {
	name  string
	build func(*stub) // called while the stub is built; may be nil
	built *[]*stub
}

func (b stubBuilder) Name() string { return b.name }

func (b stubBuilder) Build(cc balancer.ClientConn, _ balancer.BuildOptions) balancer.Balancer {
	s := &stub{cc: cc, name: b.name}
	if b.build != nil {
		b.build(s)
	}
	if b.built != nil {
		*b.built = append(*b.built, s)
	}
	return s
}

func (b stubBuilder) ParseConfig(json.RawMessage) (serviceconfig.LoadBalancingConfig, error) {
	return stubConfig{}, nil
}

// stub is a child that records the calls it gets.
type stub struct {
	cc     balancer.ClientConn
	name   string
	heard  []string
	closed int
	err    error // of UpdateClientConnState
}

func (s *stub) UpdateClientConnState(state balancer.ClientConnState) error {
	s.heard = append(s.heard, "config "+state.BalancerConfig.(stubConfig).text)
	return s.err
}

func (s *stub) ResolverError(err error) { s.heard = append(s.heard, "error "+err.Error()) }
func (s *stub) ExitIdle()               { s.heard = append(s.heard, "exit idle") }
func (s *stub) Close()                  { s.closed++ }

func (s *stub) UpdateSubConnState(sc balancer.SubConn, state balancer.SubConnState) {
	s.heard = append(s.heard, sc.(*fakeSubConn).name+" "+state.ConnectivityState.String())
}

// report reports a state with a picker that picks b.
func (s *stub) report(state connectivity.State, b balancer.SubConn) {
	s.cc.UpdateState(balancer.State{ConnectivityState: state, Picker: pickerFunc(func(balancer.PickInfo) (balancer.PickResult, error) {
		return balancer.PickResult{SubConn: b}, nil
	})})
}

type stubConfig struct {
	serviceconfig.LoadBalancingConfig
	text string
}

// fakeConn stands in for gRPC: the channel, for the policy.
type fakeConn struct {
	balancer.ClientConn
	states    []balancer.State
	subConns  []*fakeSubConn
	listeners []func(balancer.SubConnState)
	err       error // of NewSubConn
	target    string
}

func (c *fakeConn) Target() string { return c.target }

func (c *fakeConn) UpdateState(state balancer.State) { c.states = append(c.states, state) }

func (c *fakeConn) NewSubConn(addrs []resolver.Address, options balancer.NewSubConnOptions) (balancer.SubConn, error) {
	if c.err != nil {
		return nil, c.err
	}
	sc := &fakeSubConn{name: addrs[0].Addr}
	c.subConns = append(c.subConns, sc)
	c.listeners = append(c.listeners, options.StateListener)
	return sc, nil
}

func (c *fakeConn) last(t *testing.T) balancer.State {
	t.Helper()
	if len(c.states) == 0 {
		t.Fatal("no state was passed on")
	}
	return c.states[len(c.states)-1]
}

// world is a policy under test.
type world struct {
	t      *testing.T
	conn   *fakeConn
	policy balancer.Balancer
	stubs  []*stub
	build  func(*stub)
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, conn: &fakeConn{}}
	w.policy = builder{}.Build(w.conn, options(t.Name()))
	t.Cleanup(w.policy.Close)
	return w
}

func options(target string) balancer.BuildOptions {
	return balancer.BuildOptions{Target: resolver.Target{URL: url.URL{Scheme: "test", Path: "/" + target}}}
}

// update names a child and returns the stub that it reaches.
func (w *world) update(child, text string) *stub {
	w.t.Helper()
	err := w.policy.UpdateClientConnState(balancer.ClientConnState{BalancerConfig: &config{
		child: stubBuilder{name: child, build: w.build, built: &w.stubs}, childConfig: stubConfig{text: text},
	}})
	if err != nil {
		w.t.Fatal(err)
	}
	return w.stubs[len(w.stubs)-1]
}

// serving makes a stub READY with one backend, named like the stub.
func (w *world) serving(s *stub) balancer.SubConn {
	w.t.Helper()
	b := w.subConn(s)
	w.tell(b, connectivity.Ready)
	s.report(connectivity.Ready, b)
	return b
}

func (w *world) subConn(s *stub) balancer.SubConn {
	w.t.Helper()
	sc, err := s.cc.NewSubConn([]resolver.Address{{Addr: s.name}}, balancer.NewSubConnOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return sc
}

// tell calls the listener of a SubConn, as gRPC does.
func (w *world) tell(sc balancer.SubConn, state connectivity.State) {
	i := slices.Index(w.conn.subConns, sc.(*fakeSubConn))
	w.conn.listeners[i](balancer.SubConnState{ConnectivityState: state})
}

// wantPicked checks the backend that gRPC would use.
func (w *world) wantPicked(want balancer.SubConn) {
	w.t.Helper()
	result, err := w.conn.last(w.t).Picker.Pick(balancer.PickInfo{Ctx: w.t.Context()})
	if err != nil || result.SubConn != want {
		w.t.Errorf("picked %v with error %v, want %v", result.SubConn, err, want)
	}
}

func TestPolicyPassesOn(t *testing.T) {
	t.Parallel()

	t.Run("all calls to the child", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		a := w.update("a", "1")
		if same := w.update("a", "2"); same != a || len(w.stubs) != 1 {
			t.Errorf("%d children were built, want 1: its name stays", len(w.stubs))
		}
		w.policy.ResolverError(errors.New("no such host"))
		w.policy.ExitIdle()
		w.policy.UpdateSubConnState(nil, balancer.SubConnState{})
		if want := []string{"config 1", "config 2", "error no such host", "exit idle"}; !slices.Equal(a.heard, want) {
			t.Errorf("the child heard %q, want %q", a.heard, want)
		}
	})
	t.Run("an error of the child", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.update("a", "1").err = balancer.ErrBadResolverState
		err := w.policy.UpdateClientConnState(balancer.ClientConnState{BalancerConfig: &config{child: stubBuilder{name: "a"}, childConfig: stubConfig{}}})
		if !same(err, balancer.ErrBadResolverState) {
			t.Errorf("error %v, want the child's", err)
		}
	})
	t.Run("a config of another policy is refused", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		if err := w.policy.UpdateClientConnState(balancer.ClientConnState{}); err == nil {
			t.Error("no error")
		}
	})
	t.Run("before the first config", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.policy.ExitIdle()
		failure := errors.New("no such host")
		w.policy.ResolverError(failure)
		state := w.conn.last(t)
		if _, err := state.Picker.Pick(balancer.PickInfo{}); !same(err, failure) ||
			state.ConnectivityState != connectivity.TransientFailure {
			t.Errorf("state %v whose picks fail with %v, want TRANSIENT_FAILURE and the resolver's error", state.ConnectivityState, err)
		}
	})
	t.Run("states with a picker, and without", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		a := w.update("a", "")
		a.cc.UpdateState(balancer.State{ConnectivityState: connectivity.Idle})
		if state := w.conn.last(t); state.Picker != nil || state.ConnectivityState != connectivity.Idle {
			t.Errorf("passed on %v, want IDLE without a picker", state)
		}
		w.wantPicked(w.serving(a))
	})
	t.Run("a child that reports while it is built", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.build = func(s *stub) { s.report(connectivity.Idle, nil) }
		w.update("a", "")
		w.update("b", "") // replaces a at once, which isn't READY
		if len(w.conn.states) != 2 || w.stubs[0].closed != 1 || w.stubs[1].closed != 0 {
			t.Errorf("%d states, closed %d and %d times; want 2, 1 and 0", len(w.conn.states), w.stubs[0].closed, w.stubs[1].closed)
		}
	})
	t.Run("an error of NewSubConn", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		a := w.update("a", "")
		w.conn.err = errors.New("closing")
		if _, err := a.cc.NewSubConn([]resolver.Address{{Addr: "a"}}, balancer.NewSubConnOptions{}); !same(err, w.conn.err) {
			t.Errorf("error %v, want gRPC's", err)
		}
	})
}

func TestPolicyFollowsSubConns(t *testing.T) {
	t.Parallel()

	t.Run("READY ones are counted", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		a := w.update("a", "")
		b := []balancer.SubConn{w.subConn(a), w.subConn(a), w.subConn(a)}
		for _, step := range []struct {
			backend int
			state   connectivity.State
			ready   int
		}{
			{0, connectivity.Connecting, 0},
			{0, connectivity.Ready, 1},
			{1, connectivity.Ready, 2},
			{1, connectivity.Ready, 2},
			{2, connectivity.TransientFailure, 2},
			{0, connectivity.Idle, 1},
			{2, connectivity.Ready, 2},
			{1, connectivity.Shutdown, 1},
			{1, connectivity.Shutdown, 1},
		} {
			w.tell(b[step.backend], step.state)
			a.report(connectivity.Ready, b[0])
			if got := w.conn.last(t).Picker.(*picker).ready; got != step.ready {
				t.Errorf("%d are ready after %d is %v, want %d", got, step.backend, step.state, step.ready)
			}
		}
	})
	t.Run("with the child's listener", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		a := w.update("a", "")
		var heard []connectivity.State
		sc, err := a.cc.NewSubConn([]resolver.Address{{Addr: "a"}}, balancer.NewSubConnOptions{StateListener: func(s balancer.SubConnState) {
			heard = append(heard, s.ConnectivityState)
		}})
		if err != nil {
			t.Fatal(err)
		}
		w.tell(sc, connectivity.Connecting)
		w.tell(sc, connectivity.Ready)
		if want := []connectivity.State{connectivity.Connecting, connectivity.Ready}; !slices.Equal(heard, want) {
			t.Errorf("the listener heard %v, want %v", heard, want)
		}
	})
	t.Run("without one the child is told", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		a := w.update("a", "")
		w.tell(w.subConn(a), connectivity.Connecting)
		if want := []string{"config ", "a CONNECTING"}; !slices.Equal(a.heard, want) {
			t.Errorf("the child heard %q, want %q", a.heard, want)
		}
	})
	t.Run("what the child leaves open is shut down", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		a := w.update("a", "")
		w.tell(w.subConn(a), connectivity.Shutdown) // closed by the child
		w.subConn(a)
		w.policy.Close()
		if w.conn.subConns[0].shutdowns != 0 || w.conn.subConns[1].shutdowns != 1 {
			t.Errorf("shut down %d and %d times, want 0 and 1", w.conn.subConns[0].shutdowns, w.conn.subConns[1].shutdowns)
		}
	})
}

// TestPolicyChangesItsChild follows the drawing above the type.
func TestPolicyChangesItsChild(t *testing.T) {
	t.Parallel()
	change := func(t *testing.T) (w *world, a, b *stub, served balancer.SubConn) {
		t.Helper()
		w = newWorld(t)
		a = w.update("a", "")
		served = w.serving(a)
		b = w.update("b", "")
		return w, a, b, served
	}

	t.Run("the old one serves until the new one is ready", func(t *testing.T) {
		t.Parallel()
		w, a, b, served := change(t)
		b.report(connectivity.Connecting, nil)
		w.wantPicked(served)
		a.report(connectivity.Ready, served) // it keeps serving
		w.wantPicked(served)
		if a.closed != 0 {
			t.Error("the old child was closed early")
		}
		next := w.serving(b)
		w.wantPicked(next)
	})
	t.Run("the new one takes over when it cannot connect", func(t *testing.T) {
		t.Parallel()
		w, _, b, _ := change(t)
		failure := errors.New("refused")
		b.cc.UpdateState(balancer.State{ConnectivityState: connectivity.TransientFailure, Picker: base.NewErrPicker(failure)})
		if _, err := w.conn.last(t).Picker.Pick(balancer.PickInfo{}); !same(err, failure) {
			t.Errorf("picks fail with %v, want %v as with gRPC's own policies", err, failure)
		}
	})
	t.Run("the new one takes over when the old one is not ready", func(t *testing.T) {
		t.Parallel()
		w, a, _, _ := change(t)
		a.report(connectivity.Idle, nil)
		state := w.conn.last(t)
		if _, err := state.Picker.Pick(balancer.PickInfo{}); !same(err, balancer.ErrNoSubConnAvailable) ||
			state.ConnectivityState != connectivity.Connecting {
			t.Errorf("state %v whose picks fail with %v, want CONNECTING and calls that wait", state.ConnectivityState, err)
		}
	})
	t.Run("the new one takes over from one that was never ready", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.update("a", "").report(connectivity.Connecting, nil)
		b := w.update("b", "")
		next := w.subConn(b)
		b.report(connectivity.Connecting, next)
		w.wantPicked(next)
	})
	t.Run("the old one is closed by gRPC's next call", func(t *testing.T) {
		t.Parallel()
		for name, call := range map[string]func(w *world, sc balancer.SubConn){
			"config":         func(w *world, _ balancer.SubConn) { w.update("b", "") },
			"resolver error": func(w *world, _ balancer.SubConn) { w.policy.ResolverError(errors.New("no such host")) },
			"exit idle":      func(w *world, _ balancer.SubConn) { w.policy.ExitIdle() },
			"listener":       func(w *world, sc balancer.SubConn) { w.tell(sc, connectivity.Connecting) },
			"close":          func(w *world, _ balancer.SubConn) { w.policy.Close() },
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w, a, b, served := change(t)
				sc := w.subConn(b)
				b.report(connectivity.Idle, nil) // replaces a connection
				if a.closed != 0 {
					t.Fatal("the old child was closed while the new one reported")
				}
				call(w, sc)
				if a.closed != 1 || served.(*fakeSubConn).shutdowns != 1 {
					t.Errorf("closed %d times, its SubConn %d times; want 1 and 1", a.closed, served.(*fakeSubConn).shutdowns)
				}
			})
		}
	})
	t.Run("the old one is heard and told no more", func(t *testing.T) {
		t.Parallel()
		w, a, b, served := change(t)
		w.wantPicked(w.serving(b))
		states, heard := len(w.conn.states), len(a.heard)
		a.report(connectivity.Ready, served)
		w.tell(served, connectivity.Shutdown)
		if len(w.conn.states) != states || len(a.heard) != heard {
			t.Errorf("%d states and the child heard %q; want nothing new", len(w.conn.states), a.heard)
		}
		if _, err := a.cc.NewSubConn([]resolver.Address{{Addr: "late"}}, balancer.NewSubConnOptions{}); err == nil {
			t.Error("a closed child got a SubConn")
		}
		if late := w.conn.subConns[len(w.conn.subConns)-1]; late.name != "late" || late.shutdowns != 1 {
			t.Errorf("SubConn %s was shut down %d times, want late, once", late.name, late.shutdowns)
		}
	})
	t.Run("calls go to the new one from the start", func(t *testing.T) {
		t.Parallel()
		w, a, b, _ := change(t)
		w.policy.ExitIdle()
		if slices.Contains(a.heard, "exit idle") || !slices.Contains(b.heard, "exit idle") {
			t.Errorf("the old heard %q, the new %q; want the new to exit idle", a.heard, b.heard)
		}
	})
	t.Run("a third replaces the second", func(t *testing.T) {
		t.Parallel()
		w, a, b, served := change(t)
		c := w.update("c", "")
		if a.closed != 0 || b.closed != 1 {
			t.Errorf("closed %d and %d times, want 0 and 1", a.closed, b.closed)
		}
		b.report(connectivity.Ready, nil)
		w.wantPicked(served)
		w.wantPicked(w.serving(c))
	})
	t.Run("close closes both", func(t *testing.T) {
		t.Parallel()
		w, a, b, served := change(t)
		w.policy.Close()
		states := len(w.conn.states)
		b.report(connectivity.Ready, nil)
		a.report(connectivity.Ready, served)
		w.policy.ExitIdle()
		if a.closed != 1 || b.closed != 1 || len(w.conn.states) != states {
			t.Errorf("closed %d and %d times, %d states after that; want 1, 1, 0", a.closed, b.closed, len(w.conn.states)-states)
		}
	})
}
