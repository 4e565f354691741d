// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package explain is "stagger explain": it shows which policy a method has, and what that does, attempt by attempt; or what
// a policy file does for every method of an API.
package explain

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/cmd/stagger/internal/cli"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/explain"
	"github.com/stagger-go/stagger/internal/methods"
	"github.com/stagger-go/stagger/internal/policyfile/document"
)

const help = `Show which entry of a policy file applies to a method, its settings, and what happens if
every attempt fails in the same way: how long each wait can be, how long it is for one
draw of random numbers (--seed), and which check ends the call.

It runs the interceptor's own code. By default attempts fail immediately, and all checks pass.
--latency makes attempts take time before they fail. With --hang they never get a response,
which shows the effect of attempt timeouts and hedging, and how many extra attempts the budget
pays for in a process with --rate calls a second. With --down, nothing listens at
the address, which shows how long calls wait for a connection. With --budget-empty, the
budget refuses; with --slow-everywhere, all of the method's last ten responses were very slow;
with --not-proven-fast, three of them were slow.

With --reason, explain a reason by its name in errors, logs and metrics, and what to do.

METHOD is a full name, with or without gRPC's leading slash. If its .proto declares it
idempotent, pass the API's descriptor sets with --descriptors. A method that neither an
entry nor a descriptor has is an error. For "-", the policy file is read from the
standard input.

With --all, show what the file does for every method of the API: whether its calls
are retried, hedged or neither, how many attempts they may have, what declares the
method idempotent, which budget pays, and which entry of the file applies.

A method that isn't declared idempotent is retried only if the attempt provably never
left the client. "because" names the declaration: the entry that names the method,
idempotency: ASSUME, an idempotency key, or the idempotency_level of the method in its
.proto.

With descriptor sets, --all warns of names in the file that match no method of the API,
since most are typing errors; with --strict, they make the command fail. Without them, it
shows the methods that the file names; (others) stands for all other methods.`

const examples = `  stagger explain retry.yaml /acme.orders.v1.OrderService/GetOrder
  stagger explain retry.yaml acme.orders.v1.OrderService/GetOrder --code RESOURCE_EXHAUSTED --pushback 500
  stagger explain retry.yaml /acme.orders.v1.OrderService/CreateOrder --deadline 300ms
  stagger explain retry.yaml /acme.orders.v1.OrderService/CancelOrder --descriptors image.binpb
  stagger explain retry.yaml /acme.orders.v1.OrderService/GetOrder --hang --deadline 2s
  stagger explain retry.yaml /acme.orders.v1.OrderService/GetOrder --down
  stagger explain retry.yaml /acme.orders.v1.OrderService/GetOrder --format json
  stagger explain --reason budget_exhausted
  stagger explain retry.yaml --all
  buf build -o image.binpb && stagger explain retry.yaml --all --descriptors image.binpb
  stagger explain retry.yaml --all --descriptors image.binpb --strict      # in a workflow: fails for typing errors
  stagger explain retry.yaml --all --descriptors image.binpb --format json # for programs`

// options are the command line's arguments and flags.
type options struct {
	explain.Question

	seed   uint64
	rate   float64
	all    bool
	reason string
	strict bool
	format string
	images []string
}

const formatJSON = "json"

// flagsOfOne returns the flags for questions about one method.
func (o *options) flagsOfOne() []string {
	var list []string
	for _, is := range o.Conditions() {
		list = append(list, is.Name)
	}
	return append(list, "code", "pushback", "deadline", "latency", "seed", "rate")
}

// Command returns "stagger explain".
func Command() *cobra.Command {
	o := options{Question: explain.Question{Code: codes.Unavailable}}
	c := &cobra.Command{
		Use:               "explain (FILE METHOD | FILE --all | --reason NAME)",
		Short:             "Show what a policy does, attempt by attempt, or for every method",
		Long:              help,
		Example:           examples,
		Args:              o.check,
		ValidArgsFunction: o.complete,
		RunE: func(c *cobra.Command, args []string) error {
			if o.reason != "" {
				return explainReason(c, o.reason)
			}
			if o.all {
				return o.explainAll(c, args[0])
			}
			return o.explainOne(c, args[0], args[1])
		},
	}
	flags := c.Flags()
	cli.CodeFlag(c, &o.Code, "code", "status `code`, by name or number, with which every attempt fails")
	for _, is := range o.Conditions() {
		flags.BoolVar(is.Holds, is.Name, false, is.Says)
	}
	flags.StringVar(&o.Pushback, "pushback", "", "the server's grpc-retry-pushback-ms, in `ms`; -1 forbids a retry")
	flags.DurationVar(&o.Deadline, "deadline", 0, "the caller's deadline, such as 3s; 0 is none")
	flags.DurationVar(&o.Latency, "latency", 0, "how long each attempt takes before it fails, such as 300ms")
	flags.StringVar(&o.reason, "reason", "", "explain the reason with this `name`, and what to do")
	flags.Uint64Var(&o.seed, "seed", 1, "`number` that seeds the waits")
	flags.Float64Var(&o.rate, "rate", usualRate, "with --hang: the process's calls per second, a `number` from 0.1 to 1000")
	flags.BoolVar(&o.all, "all", false, "every method of the API, or of the file, in a table")
	flags.BoolVar(&o.strict, "strict", false, "with --all: fail if a name in the file matches no method")
	cli.EnumFlag(c, &o.format, "format", "how the answer is written, for a METHOD or with --all", "text", formatJSON)
	cli.DescriptorsFlag(c, &o.images)
	_ = c.RegisterFlagCompletionFunc("reason", cobra.FixedCompletions(reasonNames(), cobra.ShellCompDirectiveNoFileComp)) // the flags are there
	for _, flag := range []string{"pushback", "deadline", "latency", "seed", "rate"} {
		_ = c.RegisterFlagCompletionFunc(flag, cobra.NoFileCompletions)
	}
	return c
}

// check returns an error if arguments and flags do not go together.
func (o *options) check(c *cobra.Command, args []string) error {
	want, foreign, remedy := 2, []string{"strict"}, "needs --all"
	switch {
	case o.reason != "":
		want, foreign, remedy = 0, append(o.flagsOfOne(), "strict", "format", "all", "descriptors"), "does not go with --reason"
	case o.all:
		want, foreign, remedy = 1, o.flagsOfOne(), "is for one method, and --all for every method"
	}
	for _, flag := range foreign {
		if c.Flags().Changed(flag) {
			return fmt.Errorf("--%s: %s", flag, remedy)
		}
	}
	switch {
	case len(args) == want:
		return nil
	case o.reason != "":
		return errors.New("--reason doesn't take a FILE")
	case o.all && len(args) == 2:
		return fmt.Errorf("%s: --all doesn't take a METHOD", args[1])
	case !o.all && len(args) == 1:
		return errors.New("name a METHOD, or use --all")
	default:
		return cobra.ExactArgs(want)(c, args)
	}
}

func (o *options) explainOne(c *cobra.Command, file, method string) error {
	if o.Deadline < 0 {
		return cli.UsageErrorf("--deadline %v: must not be negative", o.Deadline)
	}
	if o.Latency < 0 {
		return cli.UsageErrorf("--latency %v: must not be negative", o.Latency)
	}
	if o.Down && (o.Hang || o.Latency > 0 || o.Pushback != "" || c.Flags().Changed("code")) {
		return cli.UsageErrorf("--down: an attempt that is never sent has no --code, --hang, --latency or --pushback")
	}
	if o.Hang && (o.Latency > 0 || o.Pushback != "" || c.Flags().Changed("code")) {
		return cli.UsageErrorf("--hang: an attempt without a response has no --code, --latency or --pushback")
	}
	if c.Flags().Changed("rate") && !o.Hang {
		return cli.UsageErrorf("--rate: is for --hang")
	}
	if !(o.rate >= leastRate && o.rate <= mostRate) { // also true for NaN
		return cli.UsageErrorf("--rate %v: must be %v to %v", o.rate, leastRate, mostRate)
	}
	o.Method = "/" + strings.TrimPrefix(method, "/")
	if parts := strings.Split(o.Method, "/"); len(parts) != 3 || parts[1] == "" || parts[2] == "" {
		return cli.UsageErrorf("method %q: must be a full name such as /acme.orders.v1.OrderService/GetOrder", method)
	}
	known, set, err := o.load(c, file)
	if err != nil {
		return err
	}
	if err := checkMethod(o.Method, set, known); err != nil {
		return err
	}
	o.MaxAttempts, o.DefaultTimeout = set.Compiled().MaxAttemptsLimit, set.Compiled().DefaultTimeout
	a := explain.Explain(set, o.Question, explain.Draw(o.seed))
	var hang *hanging
	sends := o.Hang && len(a.Sent) > 1
	if sends && simulated(a) {
		if hang, err = playHang(c.Context(), set, a, o.rate, o.seed); err != nil {
			return err
		}
	}
	if o.format == formatJSON {
		return cli.WriteJSON(c.OutOrStdout(), answerJSONOf(a, hang))
	}
	text := a.Text()
	switch {
	case hang != nil:
		text += hang.text()
	case sends:
		text += "\nWhat the budget pays for in a hang is simulated neither for a hedgingQuantile nor for calls whose client " +
			"sends a stream.\n"
	}
	_, err = io.WriteString(c.OutOrStdout(), text)
	return err
}

// checkMethod returns an error for a method that neither an entry nor the API has: most often a typing error.
func checkMethod(method string, set *methods.Set, known cli.API) error {
	var names []string // of methods
	for _, p := range set.Policies() {
		if !strings.HasSuffix(p.Name(), "/") {
			names = append(names, p.Name())
		}
	}
	missing := set.Lookup(method) == nil
	for _, s := range known.Services() {
		service := "/" + string(s.FullName()) + "/"
		missing = missing || strings.HasPrefix(method, service)
		for _, m := range cli.Methods(s) {
			names = append(names, service+m)
		}
	}
	if !missing || slices.Contains(names, method) {
		return nil
	}
	text := fmt.Sprintf("%s: no entry and no descriptor has this method%s", method, methods.DidYouMean(method, names))
	return errors.New(document.Printable(text))
}

func explainReason(c *cobra.Command, name string) error {
	m, err := explain.MeaningOf(name)
	if err != nil {
		return cli.UsageErrorf("--%w", err)
	}
	lines := []string{string(m.Reason)}
	for _, line := range [][2]string{
		{"question", m.Question},
		{"means", m.Means},
		{"look at", m.LookAt},
		{"change", m.Change},
		{"call again?", m.CallAgain},
		{"do not", m.DoNot},
	} {
		if line[1] != "" {
			lines = append(lines, fmt.Sprintf("  %-11s  %s", line[0], line[1]))
		}
	}
	_, err = fmt.Fprintln(c.OutOrStdout(), strings.Join(lines, "\n"))
	return err
}

func reasonNames() []string {
	reasons := decision.Reasons()
	list := make([]string, 0, len(reasons))
	for _, r := range reasons {
		list = append(list, string(r))
	}
	return list
}

func (o *options) explainAll(c *cobra.Command, file string) error {
	known, set, err := o.load(c, file)
	if err != nil {
		return err
	}
	a := overview{rows: rowsOfFile(set)}
	if known.Known() {
		a = overview{rowsOfAPI(set, known), unmatched(set, known)}
	}
	show := a.text
	if o.format == formatJSON {
		show = a.json
	}
	if err := show(c.OutOrStdout()); err != nil {
		return err
	}
	if n := len(a.unmatched); o.strict && n > 0 {
		return fmt.Errorf("%d of the file's names match no method, and --strict is set", n)
	}
	return nil
}

// load reads the descriptor sets and the policy file.
func (o *options) load(c *cobra.Command, file string) (known cli.API, set *methods.Set, err error) {
	return cli.Load(c, file, o.images)
}

// complete completes a policy file, then the methods that it or its API names. If a file cannot be read, it completes
// nothing: the command itself reports the error.
func (o *options) complete(c *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if o.all || len(args) != 1 {
		return cli.CompleteFile(c, args, word)
	}
	if args[0] == "-" {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	known, set, err := o.load(c, args[0])
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var list []string
	add := func(path string) {
		if !strings.HasPrefix(word, "/") {
			path = path[1:]
		}
		if !strings.HasSuffix(path, "/") && strings.HasPrefix(path, word) {
			list = append(list, path)
		}
	}
	for _, p := range set.Policies() {
		add(p.Name())
	}
	for _, s := range known.Services() {
		for _, method := range cli.Methods(s) {
			add("/" + string(s.FullName()) + "/" + method)
		}
	}
	return list, cobra.ShellCompDirectiveNoFileComp
}
