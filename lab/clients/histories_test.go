// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package clients

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/internal/testkit"
)

var (
	historyCount = flag.Int("histories", 3, "`number` of histories for each arm of TestHistories")
	historyPage  = flag.String("history-page", "", "write the results of TestHistories into this `file`")
)

const (
	historyClients = 12
	historyKeys    = 1
	historyLatency = 20 * time.Millisecond
	historyTime    = 2000 * time.Millisecond // clients begin no call after this
	callTime       = 2 * time.Second         // the deadline of each call
)

// arm is a way to retry the calls of etcd's key-value service.
type arm struct {
	title string
	safe  bool // nothing may execute twice: an anomaly fails the test
	dial  func(t *testing.T) []grpc.DialOption
}

// The attempt timeout is shorter than most pauses, so a retry reaches a server that still has the first attempt in its socket.
const historyPolicy = `retryPolicy: {maxAttempts: 4, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2,
      retryableStatusCodes: [UNAVAILABLE], perAttemptTimeout: 0.3s, budget: NONE}`

var arms = []arm{
	{"no retries", true, func(*testing.T) []grpc.DialOption { return []grpc.DialOption{grpc.WithDisableRetry()} }},
	{"stagger, the policy names `Range`", true, func(t *testing.T) []grpc.DialOption {
		return retrier(t, "methodConfig:\n  - name: [{service: etcdserverpb.KV, method: Range}]\n    "+historyPolicy+"\n").DialOptions()
	}},
	{"stagger, the policy also names `Put`", false, func(t *testing.T) []grpc.DialOption {
		return retrier(t, "methodConfig:\n  - name: [{service: etcdserverpb.KV, method: Range}, {service: etcdserverpb.KV, method: Put}]\n    "+
			historyPolicy+"\n").DialOptions()
	}},
	{"gRPC's retries, the policy names the service", false, func(*testing.T) []grpc.DialOption {
		return []grpc.DialOption{grpc.WithDefaultServiceConfig(`{"methodConfig": [{"name": [{"service": "etcdserverpb.KV"}], "retryPolicy":
			{"maxAttempts": 4, "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}}]}`)}
	}},
}

// access is one call of a client: it puts a value, or reads the key.
type access struct {
	key   int
	put   bool
	value string // that it puts
}

// register is what linearizable accesses of one key do. A history is checked key by key.
var register = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		keys := make([][]porcupine.Operation, historyKeys)
		for _, o := range history {
			key := o.Input.(access).key
			keys[key] = append(keys[key], o)
		}
		return keys
	},
	Init: func() any { return "" },
	Step: func(state, input, output any) (bool, any) {
		if in := input.(access); in.put {
			return true, in.value
		}
		return output == state, state
	},
}

// history is what happened in one run: its operations, and how many calls of each kind there were and succeeded.
type history struct {
	operations                   []porcupine.Operation
	reads, read, writes, written int
}

// recorder collects the operations of several clients.
type recorder struct {
	start time.Time

	mu sync.Mutex
	history
}

func (r *recorder) now() int64 { return int64(time.Since(r.start)) }

// put records a put. If it failed, etcd may execute it at any time after its call, or never: its interval stays open.
func (r *recorder) put(client int, in access, call int64, err error) {
	done := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writes++
	if err == nil {
		r.written++
	} else {
		done = math.MaxInt64
	}
	r.operations = append(r.operations, porcupine.Operation{ClientId: client, Input: in, Call: call, Return: done})
}

// get records a read. One that failed has shown nothing.
func (r *recorder) get(client int, in access, call int64, value string, err error) {
	done := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reads++
	if err != nil {
		return
	}
	r.read++
	r.operations = append(r.operations, porcupine.Operation{ClientId: client, Input: in, Output: value, Call: call, Return: done})
}

// record runs the clients on keys of their own, while the server is killed and started again, or paused.
func record(t *testing.T, e *etcd, wire *relay, a arm, prefix string, chance *rand.Rand) history {
	t.Helper()
	name := func(key int) []byte { return fmt.Appendf(nil, "%s/%d", prefix, key) }
	r := &recorder{start: time.Now()}
	var clients sync.WaitGroup
	var conns []*grpc.ClientConn
	for client := range historyClients {
		conn := testkit.Must(grpc.NewClient(wire.target, append(a.dial(t), plaintext)...))(t)
		conns = append(conns, conn)
		seed := rand.NewPCG(chance.Uint64(), 0)
		clients.Go(func() {
			kv, chance := pb.NewKVClient(conn), rand.New(seed)
			for n := 0; time.Since(r.start) < historyTime; n++ {
				in := access{key: chance.IntN(historyKeys), put: chance.IntN(2) == 0, value: fmt.Sprint(client, "-", n)}
				ctx, cancel := context.WithTimeout(t.Context(), callTime)
				if call := r.now(); in.put {
					_, err := kv.Put(ctx, &pb.PutRequest{Key: name(in.key), Value: []byte(in.value)})
					r.put(client, in, call, err)
				} else {
					res, err := kv.Range(ctx, &pb.RangeRequest{Key: name(in.key)})
					value := ""
					if len(res.GetKvs()) > 0 {
						value = string(res.GetKvs()[0].GetValue())
					}
					r.get(client, in, call, value, err)
				}
				cancel()
				time.Sleep(time.Duration(chance.ExpFloat64() * float64(10*time.Millisecond)))
			}
		})
	}
	time.Sleep(200*time.Millisecond + time.Duration(chance.Int64N(int64(300*time.Millisecond))))
	if chance.IntN(2) == 0 {
		wire.cut()
		e.Kill()
		time.Sleep(time.Duration(chance.Int64N(int64(300 * time.Millisecond))))
		e.run(t)
	} else {
		e.Signal(t, syscall.SIGSTOP)
		time.Sleep(200*time.Millisecond + time.Duration(chance.Int64N(int64(600*time.Millisecond))))
		e.Signal(t, syscall.SIGCONT)
	}
	clients.Wait()
	for _, conn := range conns {
		conn.Close()
	}
	return r.history
}

// decisive returns the operations without failed puts whose value nothing has read: they can always have run after all others,
// and a judge that tries each moment for each of them does not come to an end.
func (h history) decisive() []porcupine.Operation {
	seen := map[any]bool{}
	for _, o := range h.operations {
		if !o.Input.(access).put {
			seen[o.Output] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(h.operations), func(o porcupine.Operation) bool {
		in := o.Input.(access)
		return in.put && o.Return == math.MaxInt64 && !seen[in.value]
	})
}

// TestHistories judges what clients of a real etcd see while it is killed and paused. The judge is Porcupine: it looks for an
// order of all calls, each at one moment between its start and its end, that explains what the reads returned. A Put that runs
// twice can bring back a value that another client has replaced, and such a history has no order.
func TestHistories(t *testing.T) {
	rows := make([]string, len(arms))
	t.Run("arms", func(t *testing.T) {
		for i, a := range arms {
			t.Run(a.title, func(t *testing.T) {
				t.Parallel()
				rows[i] = a.judge(t)
			})
		}
	})
	t.Log("\n" + strings.Join(rows, "\n"))
	if *historyPage != "" && !t.Failed() {
		testkit.NoError(t, os.WriteFile(*historyPage, []byte(historiesText(t, rows)), 0o644))
	}
}

// judge records histories and has Porcupine judge them. It returns a row of the page.
func (a arm) judge(t *testing.T) string {
	t.Helper()
	e := startEtcd(t)
	wire := newRelay(t, e.address, historyLatency)
	var anomalies, undecided, reads, read, writes, written int
	for n := range *historyCount {
		h := record(t, e, wire, a, fmt.Sprint("histories/", n), rand.New(rand.NewPCG(uint64(n), 0)))
		reads, read, writes, written = reads+h.reads, read+h.read, writes+h.writes, written+h.written
		switch porcupine.CheckOperationsTimeout(register, h.decisive(), time.Minute) {
		case porcupine.Illegal:
			anomalies++
			if a.safe {
				t.Errorf("no order of the calls explains history %d", n)
			}
		case porcupine.Unknown:
			undecided++
		case porcupine.Ok:
		}
	}
	if undecided > 0 {
		t.Errorf("Porcupine did not decide on %d of %d histories within a minute each", undecided, *historyCount)
	}
	return fmt.Sprintf("| %s | %d | %d | %.1f | %.1f |", a.title, *historyCount, anomalies,
		100*float64(read)/float64(reads), 100*float64(written)/float64(writes))
}

func historiesText(t *testing.T, rows []string) string {
	t.Helper()
	said := string(testkit.Must(exec.CommandContext(t.Context(), "etcd", "--version").Output())(t))
	etcdVersion, _, _ := strings.Cut(strings.TrimPrefix(said, "etcd Version: "), "\n")
	lines := []string{
		"# Evidence: histories of a real etcd",
		"",
		"This page answers the question whether a write is ever executed twice. The judge is a program that the stagger project did not write.",
		"",
		fmt.Sprintf("%d clients put and read one key of an etcd. Once in each history, etcd is killed and started again, or paused for 0.2 to 0.8 s.",
			historyClients),
		fmt.Sprintf("Responses take %v to arrive, and are lost if etcd is killed meanwhile.", historyLatency),
		"[Porcupine](https://github.com/anishathalye/porcupine) then looks for one order of all calls that explains what the reads returned.",
		"A failed put may take effect at any later time, or never. If no such order exists, the history is an *anomaly*: for example, a put ran twice, and",
		"so a value is back that another client had replaced. Calls have a deadline of 2 s. The policies have four attempts; stagger's also have an",
		"attempt timeout of 0.3 s, and no budget, so that only the rule about idempotent methods protects a put. etcd's own retries are off.",
		"",
		fmt.Sprintf("`make histories` ran on %s with etcd %s and Porcupine %s. The run fails if one of the first two rows has an anomaly.",
			time.Now().UTC().Format(time.DateOnly), etcdVersion, version(t, "github.com/anishathalye/porcupine")),
		"",
		"| retries | histories | anomalies | reads that succeed, % | puts that succeed, % |",
		"| --- | ---: | ---: | ---: | ---: |",
	}
	return strings.Join(slices.Concat(lines, rows), "\n") + "\n"
}
