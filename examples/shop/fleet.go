// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	_ "embed" // for the policy file
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/stagger-go/stagger/policy"
)

//go:embed retry.yaml
var policies []byte

// fleet has the four processes, which this process starts, kills and queries.
type fleet struct {
	folder  string // of the policy file and the ledger
	grpc    map[string]string
	web     map[string]string
	running map[string]*running
}

// running is a process. It ends when its standard input does, so that none outlives this process.
type running struct {
	command *exec.Cmd
	stdin   io.Closer
}

// order is the order in which services are started and listed.
var order = []string{"gateway", "orders", "inventory", "payments"}

// policiesIn returns the policies in a mode.
func policiesIn(mode policy.Mode) []byte { return append([]byte("mode: '"+mode+"'\n"), policies...) }

// startFleet starts the services on loopback, with their policies in a mode. Their pages have the ports from web on; 0: free ones.
func startFleet(ctx context.Context, mode policy.Mode, web int) (_ *fleet, err error) {
	f := &fleet{grpc: map[string]string{}, web: map[string]string{}, running: map[string]*running{}}
	defer func() {
		if err != nil {
			f.stop()
		}
	}()
	if f.folder, err = os.MkdirTemp("", "shop-"); err != nil {
		return nil, err
	}
	if err := os.WriteFile(f.policyFile(), policiesIn(mode), 0o600); err != nil {
		return nil, err
	}
	port := anyPort()
	for i, service := range order {
		f.web[service] = fmt.Sprintf("127.0.0.1:%d", web+i)
		if f.grpc[service], err = freeAddress(ctx, &port); err == nil && web == 0 {
			f.web[service], err = freeAddress(ctx, &port)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, service := range order {
		if err := f.start(service); err != nil {
			return nil, err
		}
	}
	for _, service := range order {
		if err := f.waitFor(ctx, service); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// freeAddress returns an address with the first free port from *port on, and moves *port behind it.
func freeAddress(ctx context.Context, port *int) (string, error) {
	for {
		lis, err := new(net.ListenConfig).Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", *port))
		if *port++; err == nil {
			return lis.Addr().String(), lis.Close()
		}
		if *port > lastPort {
			return "", err
		}
	}
}

// anyPort returns a random port. It is below those that Linux gives to connections, which could take the port of a service that
// is down for a moment.
func anyPort() int { return 20_000 + rand.IntN(10_000) }

const lastPort = 32_767

func (f *fleet) policyFile() string { return filepath.Join(f.folder, "retry.yaml") }
func (f *fleet) ledgerFile() string { return filepath.Join(f.folder, "ledger.txt") }

// start starts a process of this same program.
func (f *fleet) start(service string) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	args := []string{"serve", "-attended", "-service", service, "-listen", f.grpc[service], "-web", f.web[service], "-policy", f.policyFile()}
	if calls := callsOf(service, func(name string) string { return f.grpc[name] }); calls != "" {
		args = append(args, "-calls", calls)
	}
	if service == "payments" {
		args = append(args, "-ledger", f.ledgerFile())
	}
	command := exec.CommandContext(context.Background(), program, args...) // it ends with its standard input
	command.Stderr = os.Stderr
	stdin, err := command.StdinPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	f.running[service] = &running{command, stdin}
	return nil
}

// kill kills a process as a failing machine would: connected clients are not informed.
func (f *fleet) kill(service string) error {
	r := f.running[service]
	delete(f.running, service)
	err := r.command.Process.Kill()
	_ = r.command.Wait() // returns that it was killed
	return err
}

// stop ends all processes.
func (f *fleet) stop() {
	for _, r := range f.running {
		_ = r.stdin.Close()
	}
	for _, r := range f.running {
		_ = r.command.Wait()
	}
	_ = os.RemoveAll(f.folder)
}

// waitFor waits until a service answers calls.
func (f *fleet) waitFor(ctx context.Context, service string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	conn, err := grpc.NewClient("dns:///"+f.grpc[service], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	for state := conn.GetState(); state != connectivity.Ready; state = conn.GetState() {
		conn.Connect()
		conn.ResetConnectBackoff()
		if !conn.WaitForStateChange(ctx, state) {
			return fmt.Errorf("%s does not start: %w", service, ctx.Err())
		}
	}
	return nil
}

// setPace makes a service work faster or slower.
func (f *fleet) setPace(ctx context.Context, service string, to pace) error {
	body, err := json.Marshal(to)
	if err != nil {
		return err
	}
	return f.ask(ctx, http.MethodPost, "http://"+f.web[service]+"/pace", body, func(io.Reader) error { return nil })
}

// ask sends a request to a service's web server.
func (f *fleet) ask(ctx context.Context, method, url string, body []byte, read func(io.Reader) error) error {
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, response.Status)
	}
	return read(response.Body)
}

// readings are the counters of the calling services, by service, metric and labels.
type readings map[reading]float64

type reading struct {
	service, metric string
	target, method  string // the service that is called, and its method
	reason, code    string
}

// read reads the counters of the calling services.
func (f *fleet) read(ctx context.Context) (readings, error) {
	counts := readings{}
	for _, service := range []string{"gateway", "orders"} {
		families, err := f.metrics(ctx, service)
		if err != nil {
			return nil, err
		}
		for name, family := range families {
			for _, m := range family.GetMetric() {
				r := reading{service: service, metric: name}
				for _, label := range m.GetLabel() {
					switch label.GetName() {
					case "grpc_target":
						r.target = f.serviceAt(label.GetValue())
					case "grpc_method":
						r.method = label.GetValue()
					case "reason":
						r.reason = label.GetValue()
					case "grpc_status":
						r.code = label.GetValue()
					}
				}
				counts[r] += m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return counts, nil
}

// metrics returns what Prometheus would scrape from a service.
func (f *fleet) metrics(ctx context.Context, service string) (families map[string]*dto.MetricFamily, err error) {
	err = f.ask(ctx, http.MethodGet, "http://"+f.web[service]+"/metrics", nil, func(r io.Reader) (err error) {
		parser := expfmt.NewTextParser(model.UTF8Validation)
		families, err = parser.TextToMetricFamilies(r)
		return err
	})
	return families, err
}

// serviceAt returns the service with an address.
func (f *fleet) serviceAt(target string) string {
	for _, service := range order {
		if strings.HasSuffix(target, f.grpc[service]) {
			return service
		}
	}
	return target
}
