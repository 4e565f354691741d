// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"
	"testing"

	"github.com/stagger-go/stagger/cmd/stagger/internal/cli"
)

const (
	orders  = "../../../../examples/orders/retry.yaml"
	image   = "../../../../examples/orders/orders.binpb"
	parcels = "../../../../policy/testdata/descriptors/parcels.binpb"
	cancel  = "/acme.orders.v1.OrderService/CancelOrder"
)

// run is the command's output and error. in is its standard input.
func run(t *testing.T, in string, args ...string) (string, error) {
	t.Helper()
	var out strings.Builder
	c := Command()
	c.SetArgs(args)
	c.SetIn(strings.NewReader(in))
	c.SetOut(&out)
	c.SetErr(&out)
	c.SilenceUsage, c.SilenceErrors = true, true
	err := c.Execute()
	return out.String(), err
}

func TestDescriptors(t *testing.T) {
	t.Parallel()
	for _, one := range []struct {
		args []string
		want string
	}{
		{[]string{orders, cancel}, "safe      no: nothing declares it safe to repeat\n"},
		{[]string{orders, cancel, "--descriptors", image}, "safe      yes: idempotency_level is IDEMPOTENT\n"},
		{[]string{orders, cancel, "--descriptors", parcels, "--descriptors", image}, "safe      yes: idempotency_level is IDEMPOTENT\n"},
		{[]string{"-", "acme.parcels.v1.ParcelService/GetParcel", "--descriptors", parcels}, "entry     the method's option in its .proto\n"},
		{[]string{"-", "acme.parcels.v1.ParcelService/GetParcel"}, "no entry names it, its service or everything: one attempt\n"},
	} {
		if got, err := run(t, "{}", one.args...); err != nil || !strings.Contains(got, one.want) {
			t.Errorf("%q: %v: no %q in\n%s", one.args, err, one.want, got)
		}
	}
}

func TestMethodName(t *testing.T) {
	t.Parallel()
	with, err := run(t, "", orders, cancel)
	without, errToo := run(t, "", orders, strings.TrimPrefix(cancel, "/"))
	if err != nil || errToo != nil || with != without || !strings.HasPrefix(with, cancel+"\n") {
		t.Errorf("%v, %v:\n%s\nand\n%s", err, errToo, with, without)
	}
	for _, name := range []string{"", "/", "GetOrder", "a.B/", "/a.B/", "//C", "a/b/c"} {
		if _, err := run(t, "", orders, name); cli.ExitCode(err) != cli.ExitUsage {
			t.Errorf("%q: %v; want a usage error", name, err)
		}
	}
}
