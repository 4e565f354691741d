// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/testserver"
)

// numbers are credentials that note for which attempts they were asked: "2h" is a hedge.
type numbers struct {
	mu   sync.Mutex
	list []string
}

func (n *numbers) GetRequestMetadata(ctx context.Context, _ ...string) (map[string]string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	number, hedge := interceptor.AttemptFromContext(ctx)
	text := strconv.Itoa(number)
	if hedge {
		text += "h"
	}
	n.list = append(n.list, text)
	return map[string]string{}, nil
}

func (*numbers) RequireTransportSecurity() bool { return false }

// take returns the numbers, in their order, and forgets them.
func (n *numbers) take() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	slices.Sort(n.list)
	defer func() { n.list = nil }()
	return fmt.Sprint(n.list)
}

func TestAttemptFromContext(t *testing.T) {
	for name, row := range map[string]struct {
		config spec.Config
		step   testserver.Step
		want   string
	}{
		"retries": {config(plain()), down(), "[1 2 3]"},
		"hedges":  {hedged(), testserver.Hang(), "[1 2h 3h]"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, row.config, func(t *testing.T, s scene) {
				s.On(get, row.step, row.step, text("3"))
				asked := new(numbers)
				if _, err := s.call(t.Context(), get, grpc.PerRPCCredentials(asked)); err != nil {
					t.Error(err)
				}
				if got := asked.take(); got != row.want {
					t.Errorf("unary: %s", got)
				}
				of := kinds()
				if row.config.Methods[0].Hedge != nil {
					of = hedgedKinds()
				}
				for kind, desc := range of {
					s.On(get, row.step, row.step, takes(0, "3"))
					if _, _, err := s.whole(t, desc, grpc.PerRPCCredentials(asked)); err != io.EOF {
						t.Error(err)
					}
					if got := asked.take(); got != row.want {
						t.Errorf("%s stream: %s", kind, got)
					}
				}
			})
		})
	}
	t.Run("outside of calls", func(t *testing.T) {
		t.Parallel()
		if got, hedge := interceptor.AttemptFromContext(t.Context()); got != 1 || hedge {
			t.Errorf("%d; want 1, and no hedge", got)
		}
	})
	t.Run("a header that is no number", func(t *testing.T) {
		t.Parallel()
		ctx := metadata.AppendToOutgoingContext(t.Context(), "grpc-previous-rpc-attempts", "-3", "grpc-previous-rpc-attempts", "many")
		if got, _ := interceptor.AttemptFromContext(ctx); got != 1 {
			t.Errorf("%d; want 1", got)
		}
	})
}

func TestPreviousAttempts(t *testing.T) {
	for name, row := range map[string]struct {
		config spec.Config
		step   testserver.Step
	}{"retries": {config(plain()), down()}, "hedges": {hedged(), testserver.Hang()}} {
		for kind, desc := range callKinds {
			if name == "hedges" && desc != nil && desc.ClientStreams {
				continue // these are not hedged
			}
			t.Run(name+"/"+kind, func(t *testing.T) {
				play(t, row.config, func(t *testing.T, s scene) {
					s.On(get, row.step, row.step, text("third"))
					testkit.NoError(t, exchange(metadata.AppendToOutgoingContext(t.Context(), "tenant", "acme"), s.conn, desc, get))
					synctest.Wait()
					var seen []string
					for _, a := range s.Attempts() {
						seen = append(seen, fmt.Sprint(a.Metadata["grpc-previous-rpc-attempts"], a.Metadata["tenant"]))
					}
					if got := strings.Join(seen, " "); got != "[] [acme] [1] [acme] [2] [acme]" {
						t.Errorf("the server saw %s", got)
					}
				})
			})
		}
	}
}
