// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/stagger-go/stagger/cmd/stagger/internal/cli"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/testkit"
)

// run returns the output of the whole command, and its error.
func run(args ...string) (string, error) {
	var out strings.Builder
	c := command()
	c.SetArgs(append([]string{}, args...)) // not nil: cobra would take the arguments of the tests
	c.SetIn(strings.NewReader(""))
	c.SetOut(&out)
	c.SetErr(&out)
	err := c.Execute()
	return out.String(), err
}

// asCommand, if set in the environment, makes this program run the command itself.
const asCommand = "STAGGER_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
		return
	}
	if signal.Ignored(os.Interrupt) { // as in a shell's background job: a process that a test starts would ignore it, too
		signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	}
	os.Exit(m.Run())
}

// process runs the command in its own process, and returns its output and its exit code.
func process(t *testing.T, args ...string) (string, int) {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0], args...)
	c.Env = append(os.Environ(), asCommand+"=1")
	out, err := c.CombinedOutput()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		t.Fatal(err)
	}
	return string(out), c.ProcessState.ExitCode()
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	const file = "../../examples/orders/retry.yaml"
	for want, line := range []string{"lint " + file, "lint --strict --other-clients " + file, "lint --format xml " + file} {
		if out, got := process(t, strings.Fields(line)...); got != want {
			t.Errorf("stagger %s: exit code %d; want %d\n%s", line, got, want, out)
		}
	}
}

func TestExitCodeOfUsageErrors(t *testing.T) {
	t.Parallel()
	const file = "../../examples/orders/retry.yaml"
	for _, line := range []string{
		"frobnicate", "--frobnicate", "lint", "lint --frobnicate " + file, "lint --format xml " + file,
		"explain " + file, "explain " + file + " GetOrder", "explain " + file + " a.B/C --code NONSENSE", "explain " + file + " a.B/C --deadline -1s",
		"explain " + file + " a.B/", "export", "export a b", "explain --all", "explain a b --all", "explain " + file + " --all --code INTERNAL", "explain " + file + " --all --seed 2",
		"explain " + file + " a.B/C --strict", "explain " + file + " a.B/C --format xml", "explain " + file + " a.B/C --latency -1s", "explain " + file + " a.B/C --hang --code INTERNAL",
		"explain --reason nonsense", "explain " + file + " --reason retry", "explain --reason retry --all", "explain " + file + " --all --format xml", "version now", "help frobnicate",
		"help lint frobnicate", "completion tcsh", "completion bash now", "demo now", "demo --seed x",
	} {
		if out, err := run(strings.Fields(line)...); cli.ExitCode(err) != cli.ExitUsage {
			t.Errorf("stagger %s: %v\n%s", line, err, out)
		}
	}
}

func TestExitCodeOfFailures(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"lint none.yaml", "explain none.yaml a.B/C", "export none.yaml", "explain none.yaml --all", "demo --policy none.yaml"} {
		if out, err := run(strings.Fields(line)...); cli.ExitCode(err) != cli.ExitFailure {
			t.Errorf("stagger %s: %v\n%s", line, err, out)
		}
	}
}

func TestUnknownCommandSuggestsOne(t *testing.T) {
	t.Parallel()
	if _, err := run("lnit"); err == nil || !strings.Contains(err.Error(), `unknown command "lnit"; did you mean lint?`) {
		t.Error(err)
	}
	if _, err := run("lint", "--frob"); err == nil || !strings.HasSuffix(err.Error(), "Run 'stagger lint --help' for usage.") {
		t.Error(err)
	}
}

func TestVersions(t *testing.T) {
	t.Parallel()
	got := versions(&debug.BuildInfo{
		GoVersion: "go1.26.8",
		Main:      debug.Module{Version: "v1.2.3"},
		Deps: []*debug.Module{
			{Path: "github.com/stagger-go/stagger", Version: "v0.0.0", Replace: &debug.Module{Path: "../.."}},
			{Path: "google.golang.org/grpc", Version: "v1.85.0"},
		},
	})
	if want := "stagger   v1.2.3\nlibrary   (devel)\ngrpc      v1.85.0\ngo        go1.26.8\n"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	command, err := run("version")
	if flag, flagErr := run("--version"); err != nil || flagErr != nil || command != flag || !strings.HasPrefix(command, "stagger   ") {
		t.Errorf("%v, %v:\n%s\n%s", err, flagErr, command, flag)
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	bare, err := run()
	if help, helpErr := run("help"); err != nil || helpErr != nil || bare != help {
		t.Errorf("%v, %v: stagger and stagger help differ:\n%s\n%s", err, helpErr, bare, help)
	}
	for _, want := range []string{"explain ", "Exit codes:", "completion", "policy"} {
		if !strings.Contains(bare, want) {
			t.Errorf("no %q in\n%s", want, bare)
		}
	}
}

// The file that "stagger help policy" shows is the example's.
func TestHelpOnPolicy(t *testing.T) {
	t.Parallel()
	topic, err := run("help", "policy")
	if err != nil || !strings.Contains(topic, "    methodConfig:\n") {
		t.Errorf("%v\n%s", err, topic)
	}
	if example := testkit.Must(os.ReadFile("../../examples/orders/retry.yaml"))(t); string(example) != policyFile {
		t.Error("cmd/stagger/policy.yaml differs from examples/orders/retry.yaml: copy that")
	}
}

// The reference of keys needs no repository.
func TestHelpOnKeys(t *testing.T) {
	t.Parallel()
	topic, err := run("help", "keys")
	for _, want := range []string{"\nretryPolicy\n", "  maxAttempts  integer; required; at least 2; gRPC\n", "  jitter  NONE, FULL, EQUAL, DECORRELATED, PROPORTIONAL; default FULL\n"} {
		if err != nil || !strings.Contains(topic, want) {
			t.Errorf("%v: no %q in\n%s", err, want, topic)
		}
	}
}

func TestColor(t *testing.T) {
	t.Parallel()
	for when, want := range map[string]bool{"always": true, "never": false, "auto": false} {
		got, err := run("lint", "../../examples/orders/retry.yaml", "--color", when)
		if err != nil || strings.Contains(got, "\x1b[") != want {
			t.Errorf("--color %s: %v: %q", when, err, got)
		}
	}
	if _, err := run("lint", "../../examples/orders/retry.yaml", "--color", "sometimes"); cli.ExitCode(err) != 2 {
		t.Errorf("%v; want a usage error", err)
	}
}

func TestHelpOfSubcommands(t *testing.T) {
	t.Parallel()
	root := command()
	seen := 0
	for _, c := range append(root.Commands(), root) {
		if c.Name() == "help" || c.Name() == "completion" || c.IsAdditionalHelpTopicCommand() {
			continue // cobra's own, and topics
		}
		seen++
		if c.Short == "" || len(c.Long) < 100 || c.Example == "" || c.RunE == nil {
			t.Errorf("%s: want a short text, a long one, examples and a function that returns its error", c.Name())
		}
		for line := range strings.Lines(c.Long) {
			if len(line) > 100 {
				t.Errorf("%s: a line of help is too long for a terminal: %s", c.Name(), line)
			}
		}
		for line := range strings.Lines(c.Example) {
			example(t, strings.TrimSpace(line))
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" || f.Name != "help" && f.Usage[0] >= 'A' && f.Usage[0] <= 'Z' {
				t.Errorf("%s --%s: %q; want a text in lower case", c.Name(), f.Name, f.Usage)
			}
		})
	}
	if seen < 7 {
		t.Errorf("%d commands", seen)
	}
}

// example checks that a line is a valid command: its flags exist, and the number of its arguments is right. It ignores what
// follows a pipe to other programs.
func example(t *testing.T, line string) {
	t.Helper()
	root := command()                    // flags that an example sets stay set
	line, _, _ = strings.Cut(line, "  ") // a comment follows
	line, _, _ = strings.Cut(line, " #")
	i := strings.LastIndex(line, "stagger ")
	if i < 0 {
		t.Errorf("%q shows no stagger", line)
		return
	}
	words := strings.Fields(strings.TrimSuffix(line[i:], ")"))[1:]
	for n, word := range words {
		if slices.Contains([]string{"|", ">", "2>/dev/null", "&&"}, word) {
			words = words[:n]
			break
		}
	}
	c, args, err := root.Find(words)
	if err == nil && !c.Runnable() {
		err = errors.New("is no command")
	}
	if err == nil {
		err = c.ParseFlags(args)
	}
	if err == nil && c != root {
		err = c.ValidateArgs(c.Flags().Args())
	}
	if err != nil {
		t.Errorf("%q: %v", line, err)
	}
}

// TestCompletion calls the command like the scripts of "stagger completion". The last line is the directive: 4 no files, 8
// files with these endings.
func TestCompletion(t *testing.T) {
	t.Parallel()
	const (
		file  = "../../examples/orders/retry.yaml"
		image = "../../examples/orders/orders.binpb"
		files = "yaml\nyml\njson\n:8"
		order = "acme.orders.v1.OrderService/"
	)
	codes := []string{
		"CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED",
		"FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
	}
	var reasons []string
	for _, r := range decision.Reasons() {
		reasons = append(reasons, string(r))
	}
	for _, one := range []struct {
		args []string
		want string
	}{
		{[]string{"lin"}, "lint\tCheck policy files\n:4"},
		{[]string{"lint", ""}, files},
		{[]string{"lint", file, ""}, files},
		{[]string{"explain", ""}, files},
		{[]string{"export", ""}, files},
		{[]string{"explain", "--all", ""}, files},
		{[]string{"explain", "--all", file, ""}, ":4"},
		{[]string{"explain", file, ""}, order + "GetOrder\n" + order + "ListOrders\n:4"},
		{[]string{"explain", file, "/" + order + "L"}, "/" + order + "ListOrders\n:4"},
		{[]string{"explain", "--descriptors", image, file, order + "C"}, order + "CreateOrder\n" + order + "CancelOrder\n:4"},
		{[]string{"explain", file, order + "GetOrder", ""}, ":4"},
		{[]string{"explain", "none.yaml", ""}, ":4"},
		{[]string{"explain", "--code", ""}, strings.Join(codes, "\n") + "\n:4"}, // the shell's script takes what fits
		{[]string{"explain", "--deadline", ""}, ":4"},
		{[]string{"explain", "--reason", ""}, strings.Join(reasons, "\n") + "\n:4"},
		{[]string{"lint", "--format", ""}, "text\njson\ngithub\n:4"},
		{[]string{"explain", "--format", ""}, "text\njson\n:4"},
		{[]string{"explain", "--descriptors", ""}, "binpb\npb\ndesc\nprotoset\n:8"},
		{[]string{"version", ""}, ":4"},
	} {
		out, err := run(append([]string{"__complete"}, one.args...)...)
		out, _, _ = strings.Cut(out, "\nCompletion ended")
		if err != nil || out != one.want {
			t.Errorf("%q: %v\n%s\nwant\n%s", one.args, err, out, one.want)
		}
	}
}
