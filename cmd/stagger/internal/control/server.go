// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package control puts a control service beside a [testserver.Server], so that tests in any language can
// tell it what to fail, and see what it has seen: stagger.faultserver.v1.FaultService, with gRPC's health
// and reflection services.
package control

import (
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc"
	_ "google.golang.org/grpc/encoding/gzip" // clients compress as they like
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	reflectionv1alpha "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"

	faultserverv1 "github.com/stagger-go/stagger/proto/stagger/faultserver/v1"
	"github.com/stagger-go/stagger/testserver"
)

// Settings are what a server begins with; the zero value has everything and no script.
type Settings struct {
	Script *faultserverv1.ScriptFile // also what Reset goes back to; nil is none
	API    *API                      // for messages in JSON, and for reflection; nil: what the program knows
	Closed bool                      // without the control service: the script is all that is done
}

// service is the control service of a test server.
type service struct {
	faultserverv1.UnimplementedFaultServiceServer

	settings Settings
	server   *testserver.Server
	watches  watches

	mu     sync.Mutex     // for what scripts there are
	steps  map[string]int // how many, by pattern
	queues map[string]queue
}

// New starts a test server with a control service, for a program, which must call
// [testserver.Server.Close]. The error is a [*document.Error] with what is wrong with the script, or that of
// [testserver.New].
func New(settings Settings, opts ...testserver.Option) (*testserver.Server, error) {
	if settings.API == nil {
		settings.API = NewAPI()
	}
	s := &service{settings: settings}
	return testserver.New(append(slices.Clip(opts),
		testserver.Register(s.register),
		testserver.Observe(s.watches.notify),
		testserver.Prepare(s.begin))...)
}

// begin gives the test server its script, before its first client comes.
func (s *service) begin(t *testserver.Server) error {
	s.server = t
	return s.restore()
}

// own are the services that cannot be scripted.
var own = []string{
	faultserverv1.FaultService_ServiceDesc.ServiceName,
	healthv1.Health_ServiceDesc.ServiceName,
	reflectionv1.ServerReflection_ServiceDesc.ServiceName,
	reflectionv1alpha.ServerReflection_ServiceDesc.ServiceName,
}

func isOwn(pattern string) bool {
	service, _, _ := strings.Cut(strings.TrimPrefix(pattern, "/"), "/")
	return slices.Contains(own, service)
}

func (s *service) register(to grpc.ServiceRegistrar) {
	if !s.settings.Closed {
		faultserverv1.RegisterFaultServiceServer(to, s)
	}
	healthv1.RegisterHealthServer(to, health.NewServer())
	options := reflection.ServerOptions{Services: names(s.services()), DescriptorResolver: s.settings.API}
	reflectionv1.RegisterServerReflectionServer(to, reflection.NewServerV1(options))
	reflectionv1alpha.RegisterServerReflectionServer(to, reflection.NewServer(options)) // for clients that know no other
}

// services are those that reflection shows: our own, and those of the API.
func (s *service) services() []string {
	shown := slices.Clone(own)
	if s.settings.Closed {
		shown = shown[1:]
	}
	return slices.Concat(shown, s.settings.API.services())
}

// names are services of which no more is known than what they are called.
type names []string

// GetServiceInfo implements reflection.ServiceInfoProvider.
func (n names) GetServiceInfo() map[string]grpc.ServiceInfo {
	all := map[string]grpc.ServiceInfo{}
	for _, name := range n {
		all[name] = grpc.ServiceInfo{}
	}
	return all
}
