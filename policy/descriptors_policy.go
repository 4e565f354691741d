// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/stagger-go/stagger/internal/document"
	policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"
)

// Bounds on the options that are read, so that no descriptor set exhausts a client.
const (
	maxOptions  = 10_000 // methods and services with a policy
	maxErrors   = 100    // diagnostics in one error, approximately
	maxOptBytes = 1 << 14
)

// apiPolicies reads the policies of APIs.
type apiPolicies struct {
	set      *Set            // its config wins
	budgets  map[string]bool // whose names they may use
	policies []*Policy
	warnings []Diagnostic
	errors   []Diagnostic
	count    int
}

// readAPIPolicies reads the options that apply, in the order of their names.
func readAPIPolicies(s *Set) (*apiPolicies, error) {
	a := &apiPolicies{set: s}
	if s.byEntry.Find("/") != nil {
		return a, nil // it applies to everything
	}
	a.budgets = budgetNames(&document.Report{}, s.config.Budgets)
	for service, files := range s.descriptors.services() {
		if len(a.errors) >= maxErrors {
			break
		}
		if s.byEntry.Find(nameOfService(service)) == nil && knowsOptions(files) {
			a.service(service)
		}
	}
	if len(a.errors) == 0 {
		slices.SortFunc(a.policies, func(a, b *Policy) int { return strings.Compare(a.name, b.name) })
		return a, nil
	}
	return nil, &Error{Diagnostics: inOrder(a.errors)}
}

func nameOfService(s protoreflect.ServiceDescriptor) string { return "/" + string(s.FullName()) + "/" }

func pathOf(m protoreflect.MethodDescriptor) string {
	return "/" + string(m.Parent().FullName()) + "/" + string(m.Name())
}

// service reads the options of a service and of its methods.
func (a *apiPolicies) service(s protoreflect.ServiceDescriptor) {
	name := nameOfService(s)
	if s.Options().ProtoReflect().IsValid() {
		options, err := reread(s, new(descriptorpb.ServiceOptions))
		a.take(s, name, options, policyv1.E_ServiceRetry, "", err)
	}
	for i := range s.Methods().Len() {
		m := s.Methods().Get(i)
		name := pathOf(m)
		if a.set.byEntry.Find(name) != nil || !m.Options().ProtoReflect().IsValid() {
			continue
		}
		options, err := reread(m, new(descriptorpb.MethodOptions))
		var said Idempotency
		if options.IdempotencyLevel != nil && options.GetIdempotencyLevel() == descriptorpb.MethodOptions_IDEMPOTENCY_UNKNOWN {
			said = IdempotencyDeclared // explicit, so the author of the policy does not declare the method idempotent
		}
		a.take(m, name, options, policyv1.E_Retry, said, err)
	}
}

// take adds the policy of an extension, if the options of d have it and can be read.
func (a *apiPolicies) take(d protoreflect.Descriptor, name string, options proto.Message, extension protoreflect.ExtensionType, said Idempotency, unread error) {
	if len(a.errors) >= maxErrors || unread == nil && !proto.HasExtension(options, extension) {
		return
	}
	o := newPolicyOption(d, name, extension)
	a.count++
	var spec RetrySpec
	switch r, ok := proto.GetExtension(options, extension).(*policyv1.RetryPolicy); {
	case unread != nil || !ok:
		o.refuse("cannot be read; must be a stagger.policy.v1.RetryPolicy")
	case a.count == maxOptions+1:
		o.refuse("is one too many: no more than %d methods and services may have a policy of their own; name the others in the policy file", maxOptions)
	case proto.Size(r) > maxOptBytes:
		o.refuse("is larger than %d bytes", maxOptBytes)
	default:
		spec = o.read(r, a.budgets)
		checkProcessedNames(o.report, optionRoot, &spec, name)
	}
	a.errors = append(a.errors, o.rename(diagnosed(o.report.Errors()))...)
	a.warnings = append(a.warnings, o.rename(diagnosed(o.report.Warnings()))...)
	if len(a.errors) == 0 {
		p := a.set.newPolicy(name, Spec{Retry: &spec, Idempotency: resolve(a.set.config.Idempotency, said, name)})
		a.policies = append(a.policies, p)
	}
}
