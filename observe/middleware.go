// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"strings"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/logging"
	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/policyfile/codename"
)

// middlewareFields returns a line's fields with the keys and the spelling of go-grpc-middleware, and the fields of the context.
func middlewareFields(ctx context.Context, fields []any) logging.Fields {
	all := logging.Fields{
		logging.SystemTag[0], logging.SystemTag[1],
		logging.ComponentFieldKey, logging.KindClientFieldValue,
	}
	for i := 0; i+1 < len(fields); i += 2 {
		value := fields[i+1]
		switch fields[i] {
		case "method":
			method, _ := value.(string)
			service, name, found := strings.Cut(strings.TrimPrefix(method, "/"), "/")
			if !found { // "other"
				service, name = "", method
			}
			all = append(all, logging.ServiceFieldKey, service, logging.MethodFieldKey, name)
		case "code":
			all = append(all, "grpc.code", middlewareCode(value))
		case "error":
			all = append(all, "grpc.error", value)
		default:
			all = append(all, fields[i], value)
		}
	}
	return all.AppendUnique(logging.ExtractFields(ctx))
}

// middlewareCode returns the code in the spelling of codes.Code.String; "SLOW" stays.
func middlewareCode(name any) any {
	for code := codes.OK; code <= codes.Unauthenticated; code++ {
		if codename.Of(code) == name {
			return code.String()
		}
	}
	return name
}
