// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	policyv1 "github.com/stagger-go/stagger/proto/stagger/policy/v1"
)

// own knows the options of this module, and no others: whether those are right is not asked here.
var own = typesOf(policyv1.E_Retry, policyv1.E_ServiceRetry)

func typesOf(extensions ...protoreflect.ExtensionType) *protoregistry.Types {
	types := new(protoregistry.Types)
	for _, e := range extensions {
		_ = types.RegisterExtension(e) // refuses only what is there already
	}
	return types
}

// reread turns the options of a descriptor into the generated type with the extensions of this module: a
// registry that was made from a file has them as bytes, one that was made by hand as it likes.
func reread[O proto.Message](d protoreflect.Descriptor, options O) (O, error) {
	data, err := proto.MarshalOptions{AllowPartial: true}.Marshal(d.Options())
	if err == nil {
		err = proto.UnmarshalOptions{AllowPartial: true, Resolver: own}.Unmarshal(data, options)
	}
	return options, err
}

// knowsOptions reports whether options in these files can be this module's: their number is from a range
// where others may have chosen the same, but whoever uses them imports them.
func knowsOptions(files *protoregistry.Files) bool {
	_, err := files.FindDescriptorByName(policyv1.E_Retry.TypeDescriptor().FullName())
	return err == nil
}

// level is the idempotency_level of a method; nil if its .proto does not say.
func level(m protoreflect.MethodDescriptor) *descriptorpb.MethodOptions_IdempotencyLevel {
	options, ok := m.Options().(*descriptorpb.MethodOptions)
	if !ok {
		var err error
		if options, err = reread(m, new(descriptorpb.MethodOptions)); err != nil {
			return nil
		}
	}
	if options == nil {
		return nil
	}
	return options.IdempotencyLevel
}
