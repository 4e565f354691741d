// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package methods

import (
	"iter"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/stagger-go/stagger/internal/policyfile/document"
	"github.com/stagger-go/stagger/internal/policyfile/lookup"
	"github.com/stagger-go/stagger/policy"
)

// Descriptors finds services in files and then, unless Only is set, in the registry of generated code. The first that has a
// service wins.
type Descriptors struct {
	Files []*protoregistry.Files
	Only  bool // the files alone
}

// all returns the files to look in, in order.
func (d Descriptors) all() []*protoregistry.Files {
	if d.Only {
		return d.Files
	}
	return append(slices.Clip(d.Files), protoregistry.GlobalFiles)
}

// Service returns a service by its full name, or nil if it is unknown.
func (d Descriptors) Service(name string) protoreflect.ServiceDescriptor {
	for _, files := range d.all() {
		found, err := files.FindDescriptorByName(protoreflect.FullName(name))
		if service, ok := found.(protoreflect.ServiceDescriptor); err == nil && ok {
			return service
		}
	}
	return nil
}

// Method returns the descriptor of "/service/method", or nil if it is unknown.
func (d Descriptors) Method(path string) protoreflect.MethodDescriptor {
	service, name, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if found := d.Service(service); found != nil {
		return found.Methods().ByName(protoreflect.Name(name))
	}
	return nil
}

// Lacks returns why no call of a known service matches a name ("/service/method"), or "" if one may match. A service that no descriptor has
// may be another program's, unless it resembles one that is there.
func (d Descriptors) Lacks(name string) string {
	service, method := lookup.Split(name)
	found := d.Service(service)
	if found == nil {
		if near := d.nearService(service); near != "" {
			return "no descriptor has the service; did you mean " + near + "?"
		}
		return ""
	}
	if method == "" || found.Methods().ByName(protoreflect.Name(method)) != nil {
		return ""
	}
	var methods []string
	for i := range found.Methods().Len() {
		methods = append(methods, string(found.Methods().Get(i).Name()))
	}
	return "the service has no such method" + DidYouMean(method, methods)
}

// nearService returns the first service that a misspelt name may mean, or "": in another case, with one or two letters changed, or without
// (the beginning of) its package. A name that differs only in digits is another version.
func (d Descriptors) nearService(name string) string {
	if name == "" {
		return ""
	}
	wrong, most := strings.ToLower(name), min(2, len(name)/4)
	for service := range d.Services() {
		known := string(service.FullName())
		tail := strings.ToLower(known)
		for strings.Count(tail, ".") > strings.Count(wrong, ".") {
			_, tail, _ = strings.Cut(tail, ".")
		}
		if tail == wrong || similar(tail, wrong, most) && withoutDigits(tail) != withoutDigits(wrong) {
			return known
		}
	}
	return ""
}

// similar reports whether at most n letters must be added, dropped or replaced to turn a into b.
func similar(a, b string, n int) bool {
	for a != "" && b != "" && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	if a == "" || b == "" {
		return len(a)+len(b) <= n
	}
	return n > 0 && (similar(a[1:], b, n-1) || similar(a, b[1:], n-1) || similar(a[1:], b[1:], n-1))
}

func withoutDigits(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, s)
}

// DidYouMean returns the end of a message about a name that there is not: a hint at the nearest one, or "".
func DidYouMean(name string, names []string) string {
	if near := document.Nearest(name, names); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}

// Services yields every service once, by name in each of the files.
func (d Descriptors) Services() iter.Seq[protoreflect.ServiceDescriptor] {
	return func(yield func(protoreflect.ServiceDescriptor) bool) {
		seen := map[protoreflect.FullName]bool{}
		for _, files := range d.all() {
			var list []protoreflect.ServiceDescriptor
			files.RangeFiles(func(f protoreflect.FileDescriptor) bool { // holds a lock that reading a service also takes
				for i := range f.Services().Len() {
					list = append(list, f.Services().Get(i))
				}
				return true
			})
			slices.SortFunc(list, func(a, b protoreflect.ServiceDescriptor) int {
				return strings.Compare(string(a.FullName()), string(b.FullName()))
			})
			for _, service := range list {
				if !seen[service.FullName()] && !yield(service) {
					return
				}
				seen[service.FullName()] = true
			}
		}
	}
}

// Level returns the idempotency_level of "/service/method" by its name, such as IDEMPOTENT, or "" if the method is unknown.
func (d Descriptors) Level(path string) string {
	m := d.Method(path)
	if m == nil {
		return ""
	}
	return level(m).String()
}

// level returns the idempotency_level of a method.
func level(m protoreflect.MethodDescriptor) descriptorpb.MethodOptions_IdempotencyLevel {
	options, ok := m.Options().(*descriptorpb.MethodOptions)
	if !ok { // descriptors built by hand may have another type of options
		options = new(descriptorpb.MethodOptions)
		data, err := proto.MarshalOptions{AllowPartial: true}.Marshal(m.Options())
		if err != nil || (proto.UnmarshalOptions{AllowPartial: true}).Unmarshal(data, options) != nil {
			return descriptorpb.MethodOptions_IDEMPOTENCY_UNKNOWN
		}
	}
	return options.GetIdempotencyLevel()
}

// declaresSafe reports whether the method's descriptor declares it idempotent.
func declaresSafe(m protoreflect.MethodDescriptor) bool {
	return m != nil && level(m) != descriptorpb.MethodOptions_IDEMPOTENCY_UNKNOWN
}

// MethodPath returns "/service/method".
func MethodPath(m protoreflect.MethodDescriptor) string {
	return "/" + string(m.Parent().FullName()) + "/" + string(m.Name())
}

// MethodsOf yields the known methods whose calls use the policy of a name, which need not be a method's.
func (s *Set) MethodsOf(name string) iter.Seq[protoreflect.MethodDescriptor] {
	return func(yield func(protoreflect.MethodDescriptor) bool) {
		for service := range s.servicesOf(name) {
			for i := range service.Methods().Len() {
				m := service.Methods().Get(i)
				if p := s.Lookup(MethodPath(m)); p != nil && p.Name() == name && !yield(m) {
					return
				}
			}
		}
	}
}

// servicesOf yields the known services to which a name may apply.
func (s *Set) servicesOf(name string) iter.Seq[protoreflect.ServiceDescriptor] {
	if name == "/" {
		return s.Services()
	}
	return func(yield func(protoreflect.ServiceDescriptor) bool) {
		service, _, _ := strings.Cut(strings.TrimPrefix(name, "/"), "/")
		if d := s.Service(service); d != nil {
			yield(d)
		}
	}
}

// SafeMethods returns the known methods that use the policy of a name: those that descriptors declare idempotent, and the others,
// both sorted.
func (s *Set) SafeMethods(name string) (safe, others []string) {
	for m := range s.MethodsOf(name) {
		if declaresSafe(m) {
			safe = append(safe, MethodPath(m))
		} else {
			others = append(others, MethodPath(m))
		}
	}
	slices.Sort(safe)
	slices.Sort(others)
	return safe, others
}

// NeedsLevel reports whether the policy has extra attempts only for methods that descriptors declare idempotent.
func NeedsLevel(p *policy.Policy) bool {
	return p.MaxAttempts() > 1 && p.IdempotencyKey() == "" && p.Idempotency() == "DECLARED"
}

// Warnings returns those of [policy.Set.Warnings], those of [Set.Lacking], and a note that counts the methods that will not be retried
// because nothing declares them idempotent.
func (s *Set) Warnings() []policy.Diagnostic {
	return append(document.InOrder(append(s.Set.Warnings(), s.Lacking()...)), s.undeclared()...)
}

// Lacking returns warnings about the names of methods that known services lack.
func (s *Set) Lacking() []policy.Diagnostic { return slices.Clone(s.lacking()) }

func (s *Set) warnLacking() (list []policy.Diagnostic) {
	for _, p := range s.Policies() {
		if why := s.Lacks(p.Name()); why != "" && mayMatch(p.Name()) {
			d := s.Compiled().NamesAt[p.Name()]
			d.Value, d.Message = strconv.Quote(p.Name()), "matches nothing: "+why
			list = append(list, d)
		}
	}
	return list
}

// mayMatch reports whether a name has no character or word that no name has.
func mayMatch(name string) bool {
	_, why := lookup.Mismatch(name)
	return why == ""
}

// Matches reports whether calls may match a name of the set, as far as is known.
func (s *Set) Matches(name string) bool { return mayMatch(name) && s.Lacks(name) == "" }

func (s *Set) noteUndeclared() []policy.Diagnostic {
	var which []string
	for _, p := range s.Policies() {
		if !NeedsLevel(p) || !strings.HasSuffix(p.Name(), "/") || !s.Matches(p.Name()) {
			continue
		}
		service := strings.Trim(p.Name(), "/")
		safe, others := s.SafeMethods(p.Name())
		all := p.Name() == "/" && len(s.Policies()) > 1 // the other methods, next to those that the set names
		switch {
		case len(others) > 0 && service == "":
			which = append(which, count(len(others), "method"))
		case len(others) > 0:
			which = append(which, count(len(others), "method")+" of "+service)
		case len(safe) > 0 || all:
		case service == "":
			which = append(which, "the default entry")
		default: // without a descriptor
			which = append(which, service)
		}
	}
	if len(which) == 0 {
		return nil
	}
	text := " isn't declared idempotent, so most of its failed calls won't be retried."
	if len(which) > 1 || strings.Contains(which[0], " methods") {
		text = " aren't declared idempotent, so most of their failed calls won't be retried."
	}
	const most = 3
	if more := len(which) - most; more > 0 {
		which = append(which[:most:most], strconv.Itoa(more)+" more")
	}
	names := which[len(which)-1]
	if len(which) > 1 {
		names = strings.Join(which[:len(which)-1], ", ") + " and " + names
	}
	return []policy.Diagnostic{{
		Severity: "note", File: s.Source(), Field: "methodConfig",
		Message: names + text + " `stagger lint` lists the methods, and says how to declare them. " +
			"For interceptor.Default, name them in DefaultPolicy.Idempotent",
	}}
}

// count returns n with the noun in singular or plural.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
