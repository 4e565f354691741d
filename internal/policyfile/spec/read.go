// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/backoff"
	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/bounds"
	"github.com/stagger-go/stagger/internal/policyfile/codename"
	"github.com/stagger-go/stagger/internal/policyfile/defaults"
	"github.com/stagger-go/stagger/internal/policyfile/document"
)

// Read reads the text of a policy file. The report has all errors that reading finds; Check finds the rest.
func Read(report *document.Report, data []byte) (c Config) {
	report.Elsewhere, report.Foreign, report.ForeignHint = belongs, foreign, foreignHint
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("grpc_config=")) {
		report.ErrorAt(document.Position{Line: 1, Column: 1}, "", "is a DNS TXT record; the policy file is the value of serviceConfig in it")
		return c
	}
	if root := document.Parse(report, data, fileFormat); root != nil { // else it is not even YAML or JSON
		report.Read("", root, c.readFile)
	}
	return c
}

var fileFormat = document.Format{Name: "policy file", Key: "methodConfig"}

// readFile reads a file's keys, in the order of the schema (proto/stagger/policy/v1). What a value may be is checked later, for
// configs in Go as well.
func (c *Config) readFile(f *document.Fields) {
	f.Text(BalancingPolicyKey, &c.channel.policy)
	f.List("methodConfig", func(path string, n *document.Node) {
		var m MethodConfig
		f.Read(path, n, func(f *document.Fields) { m.read(f, path) })
		c.Methods = append(c.Methods, m)
	}, "{name: …, retryPolicy: …}")
	var throttling budget.ThrottleConfig
	if f.Object("retryThrottling", readThrottle(&throttling)) {
		c.RetryThrottling = &throttling
	}
	c.channel.read(f)
	f.List("budgets", func(path string, n *document.Node) {
		var b Budget
		f.Read(path, n, b.read)
		c.Budgets = append(c.Budgets, b)
	}, "{name: …, bucket: …}")
	document.Word(f, "idempotency", &c.Idempotency, idempotencies...)
	f.IntBetween("maxWaiting", &c.MaxWaiting, 1, document.MaxInt)
	readMode(f, &c.Mode)
	f.IntBetween("maxAttemptsLimit", &c.MaxAttemptsLimit, leastLimit, mostLimit)
	f.Duration("defaultTimeout", &c.DefaultTimeout)
}

// belongs returns where a key belongs that another object has, or "".
func belongs(key string) string {
	for _, object := range []struct {
		name string
		keys func(*document.Fields)
	}{
		{"at the top of the file", func(f *document.Fields) { new(Config).readFile(f) }},
		{"in methodConfig", func(f *document.Fields) { new(MethodConfig).read(f, "") }},
		{"in name: [" + nameForm + "]", func(f *document.Fields) { readNameKeys(f, new(string), new(string)) }},
		{"in retryPolicy or hedgingPolicy", new(Policy).readLimits},
		{"in retryPolicy", func(f *document.Fields) { new(Retry).read(f, "") }},
		{"in hedgingPolicy", new(Hedge).read},
		{"in budgets", new(Budget).read},
	} {
		if slices.Contains(document.Known(object.keys), key) {
			return "belongs " + object.name
		}
	}
	return ""
}

// foreignKeys has what other libraries call our keys, in lower case and without separators. Of several keys the object's own counts.
var foreignKeys = map[string][]string{
	"delay": {"initialBackoff", "hedgingDelay"}, "initialdelay": {"initialBackoff"}, "basedelay": {"initialBackoff"},
	"retrydelay": {"initialBackoff"}, "minbackoff": {"initialBackoff"}, "mindelay": {"initialBackoff"}, "baseinterval": {"initialBackoff"},
	"initialinterval": {"initialBackoff"}, "interval": {"initialBackoff"},
	"max": {"maxBackoff"}, "maxdelay": {"maxBackoff"}, "maxinterval": {"maxBackoff"},
	"multiplier": {"backoffMultiplier"}, "factor": {"backoffMultiplier"}, "backofffactor": {"backoffMultiplier"},
	"attempts": {"maxAttempts"}, "maxretries": {"maxAttempts"}, "numretries": {"maxAttempts"}, "retries": {"maxAttempts"},
	"maxhedges":     {"maxAttempts"},
	"pertrytimeout": {"perAttemptTimeout"}, "perretrytimeout": {"perAttemptTimeout"}, "attempttimeout": {"perAttemptTimeout"},
	"codes": {"retryableStatusCodes", "nonFatalStatusCodes"}, "statuscodes": {"retryableStatusCodes", "nonFatalStatusCodes"},
	"retryon":       {"retryableStatusCodes"},
	"serviceconfig": {"methodConfig"},
}

var separators = strings.NewReplacer("_", "", "-", "")

// foreign is [document.Report.Foreign] of a policy file.
func foreign(key string) []string {
	const longest = 32
	if len(key) > longest {
		return nil
	}
	return foreignKeys[separators.Replace(strings.ToLower(key))]
}

// foreignHint is [document.Report.ForeignHint] of a policy file.
func foreignHint(key string, value *document.Node) string {
	switch separators.Replace(strings.ToLower(key)) {
	case "maxretries", "numretries", "retries", "maxhedges":
		const counts = ", which counts the first attempt, too"
		if n, err := strconv.Atoi(value.Text); err == nil && n > 0 && n < math.MaxInt32 {
			return ": " + strconv.Itoa(n+1) + counts
		}
		return counts
	case "serviceconfig":
		return " and the other keys at the top, without serviceConfig around them"
	default:
		return ""
	}
}

func (m *MethodConfig) read(f *document.Fields, path string) {
	f.List("name", func(path string, n *document.Node) {
		m.Names = append(m.Names, readName(f.Report, path, n))
	}, nameForm)
	document.Optional("waitForReady", &m.WaitForReady, f, (*document.Fields).Bool)
	f.Duration("timeout", &m.Timeout)
	document.Optional("maxRequestMessageBytes", &m.MaxRequestMessageBytes, f, (*document.Fields).Int)
	document.Optional("maxResponseMessageBytes", &m.MaxResponseMessageBytes, f, (*document.Fields).Int)
	var (
		retry Retry
		hedge Hedge
	)
	if f.Object("retryPolicy", func(f *document.Fields) { retry.read(f, path+".retryPolicy"); m.readLimits(f) }) {
		m.Retry = &retry
	}
	if f.Object("hedgingPolicy", func(f *document.Fields) { hedge.read(f); m.readLimits(f) }) {
		m.Hedge = &hedge
	}
	if f.OneOf("; gRPC for Go would ignore hedgingPolicy", "retryPolicy", "hedgingPolicy") == "retryPolicy" {
		m.Hedge = nil
	}
	document.Word(f, "idempotency", &m.Idempotency, idempotencies...)
	if f.Object("idempotencyKey", func(f *document.Fields) { f.Text("header", &m.IdempotencyKey) }) && !f.Written(path+".idempotencyKey.header") {
		m.IdempotencyKey = defaults.IdempotencyHeader
	}
	readMode(f, &m.Mode)
	document.Word(f, "admission", &m.Admission, admissions...)
}

// nameForm shows a name.
const nameForm = "{service: …, method: …}"

// readName returns a name as a path. If it reports the name, checkNames can tell the path from a valid one.
func readName(report *document.Report, path string, n *document.Node) string {
	var service, method string
	report.Read(path, n, func(f *document.Fields) { readNameKeys(f, &service, &method) })
	if service == "" && method != "" {
		report.Errorf(path+".service", "", "must be the full name of the service of method %q", method)
	}
	if strings.Contains(service, "/") {
		report.Errorf(path+".service", service, "must be a full name such as acme.orders.v1.OrderService, without slashes")
	}
	if strings.Contains(method, "/") {
		report.Errorf(path+".method", method, "must be a method's name such as GetOrder, without slashes")
	}
	if service == "" && method == "" {
		return "/"
	}
	return "/" + service + "/" + method
}

func readNameKeys(f *document.Fields, service, method *string) {
	nameText(f, "service", service)
	nameText(f, "method", method)
}

// nameText reads a string that may be null for gRPC (service_config.proto). Elsewhere a key without a value is probably a mistake.
func nameText(f *document.Fields, key string, to *string) {
	switch n, path := f.Value(key); {
	case n == nil:
	case n.Kind == document.Null:
	case n.Kind == document.List:
		f.Misfit(path, n, "must be one name, not a list; give each name a map of its own: name: ["+nameForm+", "+nameForm+"]")
	default:
		f.Text(key, to)
	}
}

func (r *Retry) read(f *document.Fields, path string) {
	f.IntBetween("maxAttempts", &r.MaxAttempts, 2, document.MaxInt)
	readBackoff(f, &r.Backoff)
	r.RetryableStatusCodes = readCodes(f, "retryableStatusCodes")
	f.Duration("perAttemptTimeout", &r.PerAttemptTimeout)
	f.Duration("messageTimeout", &r.MessageTimeout)
	document.Word(f, "onAttemptTimeout", &r.OnAttemptTimeout, attemptTimeouts...)
	readBudgetName(f, &r.Budget)
	f.List("perCode", func(item string, n *document.Node) {
		var own Code
		if len(r.PerCode) > int(maxCode) {
			return // reported below
		}
		f.Read(item, n, func(f *document.Fields) { own.read(f, item, r.Backoff) })
		r.PerCode = append(r.PerCode, own)
	}, "{codes: …, maxAttempts: …}")
	if len(r.PerCode) > int(maxCode) {
		f.Errorf(path+".perCode", nil, "must have at most %d entries, since no code may be in two", maxCode)
		r.PerCode = nil
	}
	document.Word(f, "chain", &r.Chain, chains...)
	document.Word(f, "firstRetry", &r.FirstRetry, firstRetries...)
	if f.Duration("perAttemptRecvTimeout", &r.PerAttemptTimeout); f.Written(path + ".perAttemptRecvTimeout") {
		if f.Written(path + ".perAttemptTimeout") {
			f.Errorf(path+".perAttemptRecvTimeout", r.PerAttemptTimeout, "means the same as perAttemptTimeout: keep one of the two")
		}
		r.OnAttemptTimeout = cmp.Or(r.OnAttemptTimeout, "RETRY")
	}
}

func readBackoff(f *document.Fields, b *backoff.Config) {
	f.Duration("initialBackoff", &b.Initial)
	f.Duration("maxBackoff", &b.Max)
	f.Number("backoffMultiplier", &b.Multiplier)
	document.Word(f, "growth", &b.Growth, growths...)
	document.Word(f, "jitter", &b.Jitter, jitters...)
}

// read reads the settings of codes. Missing settings of the backoff are those of the policy's, b.
func (c *Code) read(f *document.Fields, path string, b backoff.Config) {
	c.Codes = readCodes(f, "codes")
	f.IntBetween("maxAttempts", &c.MaxAttempts, 1, document.MaxInt)
	own, absent := b, 0
	readBackoff(f, &own)
	for _, key := range backoffKeys {
		if field := path + "." + key; !f.Written(field) {
			absent++
			if key != "backoffMultiplier" || notFixed(b) || !notFixed(own) { // this growth needs another multiplier than the policy's
				f.Skip(field) // the policy's
			}
		}
	}
	if own != b || absent < len(backoffKeys) {
		c.Backoff = &own
	}
	f.Bool("onlyWithServerDelay", &c.OnlyWithServerDelay)
}

var backoffKeys = []string{"initialBackoff", "maxBackoff", "backoffMultiplier"}

func (h *Hedge) read(f *document.Fields) {
	f.IntBetween("maxAttempts", &h.MaxAttempts, 2, document.MaxInt)
	f.Duration("hedgingDelay", &h.HedgingDelay)
	h.NonFatalStatusCodes = readCodes(f, "nonFatalStatusCodes")
	f.Object("hedgingQuantile", func(f *document.Fields) {
		f.Number("quantile", &h.Quantile)
		f.Duration("min", &h.MinDelay)
		f.Duration("max", &h.MaxDelay)
	})
	readBudgetName(f, &h.Budget)
}

// readLimits reads the limits of extra attempts.
func (s *Policy) readLimits(f *document.Fields) {
	f.Duration("maxPushback", &s.MaxPushback)
	document.Optional("maxConnectionWait", &s.MaxConnectionWait, f, (*document.Fields).Duration)
}

func readBudgetName(f *document.Fields, to *string) {
	if n, path := f.Value("budget"); n != nil && n.Kind == document.Object {
		f.Misfit(path, n, `must be the name of a budget, which the file declares at its top: `+
			`budgets: [{name: orders, bucket: {size: 20}}]; or NONE`)
		return
	}
	f.Text("budget", to)
}

func (b *Budget) read(f *document.Fields) {
	f.Text("name", &b.Name)
	document.Word(f, "scope", &b.Scope, scopes...)
	var (
		bucket   = budget.Default()
		throttle budget.ThrottleConfig
	)
	f.Object("bucket", func(f *document.Fields) {
		f.Number("size", &bucket.Size)
		f.Number("perSuccess", &bucket.PerSuccess)
		f.Number("slowCost", &bucket.SlowCost)
		f.Number("refund", &bucket.Refund)
		f.Number("refundSize", &bucket.RefundSize)
		f.Left("missedCost", "a missed deadline takes nothing any more: remove the key")
		f.Left("refillTime", fmt.Sprintf("time fills every bucket in %v: remove the key, and choose size", budget.RefillTime))
		f.Left("window", fmt.Sprintf("every bucket holds what the successes of %v add: remove the key, and choose perSuccess or size", budget.Window))
	})
	f.Object("throttle", readThrottle(&throttle))
	b.Config = map[string]budget.Config{"bucket": bucket, "throttle": throttle}[f.OneOf("", budgetKinds...)]
}

func readThrottle(t *budget.ThrottleConfig) func(*document.Fields) {
	return func(f *document.Fields) {
		for _, field := range bounds.OfBudget(*t) {
			if field.Name == "MaxTokens" {
				f.IntBetween("maxTokens", &t.MaxTokens, int64(field.Low), int64(field.High))
			}
		}
		f.Number("tokenRatio", &t.TokenRatio)
	}
}

func readCodes(f *document.Fields, key string) (list []codes.Code) {
	f.List(key, func(path string, n *document.Node) {
		if c, ok := readCode(f.Report, path, n); ok {
			list = append(list, c)
			if want := codename.Of(c); key == "retryableStatusCodes" && n.Kind == document.Text && n.Text != want {
				f.Warnf(path, n.Text, "gRPC for Go refuses a service config with this spelling; write %s", want)
			}
		}
	})
	return sorted(list)
}

const aCode = "must be a status code's name such as UNAVAILABLE, or its number, 1 to 16"

// readCode reads a status code by its name, in any case, or by its number.
func readCode(report *document.Report, path string, n *document.Node) (codes.Code, bool) {
	switch {
	case strings.EqualFold(n.Text, "OK"), n.Text == "0":
		report.Misread(path, n, notFailure)
	case n.Kind == document.Number:
		if c, ok := codename.Parse(n.Text); ok {
			return c, true
		}
		report.Misread(path, n, aCode)
	case n.Kind == document.Text:
		names := codename.Failures()
		if i := slices.IndexFunc(names, func(name string) bool { return strings.EqualFold(name, n.Text) }); i >= 0 {
			return codes.Code(i + 1), true
		}
		if strings.EqualFold(n.Text, "CANCELED") {
			return codes.Canceled, true
		}
		report.Misread(path, n, "%s", document.Lazy(func() string {
			if near := document.Nearest(n.Text, names); near != "" {
				return "did you mean " + near + "?"
			}
			return aCode
		}))
	default:
		report.Misfit(path, n, aCode)
	}
	return codes.OK, false
}

// readMode reads a mode. Tools that read YAML 1.1, such as Helm, take OFF for a boolean and write false: somebody who wants retries
// off must get that.
func readMode(f *document.Fields, to *string) {
	n, path := f.Value("mode")
	if n != nil && strings.EqualFold(n.Text, "false") {
		*to = "OFF"
		f.Warnf(path, n.Text, `is taken as OFF, which tools that read YAML 1.1, such as Helm, turn into false; write "OFF" in quotes`)
		return
	}
	document.Word(f, "mode", to, modes...)
}
