// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"

	"github.com/stagger-go/stagger/cmd/stagger/internal/cli"
	"github.com/stagger-go/stagger/internal/methods"
)

const schema = "# yaml-language-server: $schema=https://raw.githubusercontent.com/stagger-go/stagger/main/proto/stagger/policy/v1/policy.json\n"

// commented returns a valid service config as YAML with its keys in order, and with comments.
func commented(name string, data []byte, changed []respelling, set *methods.Set, known cli.API) ([]byte, error) {
	file, err := parse(name, data)
	if err != nil {
		return nil, err
	}
	expand(file)
	c := commenter{set, known}
	c.file(file)
	if len(file.Content) > 0 {
		file.Content[0].HeadComment = join(comment(changed), file.Content[0].HeadComment)
	}
	var text bytes.Buffer
	text.WriteString(schema)
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	if err := encoder.Encode(file); err != nil {
		return nil, err
	}
	return printable(text.String()), encoder.Close()
}

// printable returns YAML with escapes in place of characters that are not printable, and that YAML's writer leaves alone. expand has
// put quotes around them; elsewhere only comments have them.
func printable(text string) []byte {
	var b strings.Builder
	for _, char := range text {
		if hidden(char) {
			fmt.Fprintf(&b, `\U%08X`, char)
		} else {
			b.WriteRune(char)
		}
	}
	return []byte(b.String())
}

func hidden(char rune) bool { return char != '\n' && !unicode.IsPrint(char) }

// expand writes JSON objects over several lines, except lists of words and names of methods.
func expand(n *yaml.Node) {
	plain := !slices.ContainsFunc(n.Content, func(c *yaml.Node) bool { return c.Kind != yaml.ScalarNode })
	n.Style = 0
	if n.Kind == yaml.ScalarNode && strings.ContainsFunc(n.Value, hidden) {
		n.Style = yaml.DoubleQuotedStyle
	}
	if plain && (n.Kind == yaml.SequenceNode || n.Kind == yaml.MappingNode && get(n, "service") != nil) {
		n.Style = yaml.FlowStyle
	}
	for _, child := range n.Content {
		expand(child)
	}
}

// commenter writes comments.
type commenter struct {
	set   *methods.Set
	known cli.API
}

func (c commenter) file(file *yaml.Node) {
	if key := keyOf(file, "retryThrottling"); key != nil {
		key.HeadComment = `The budget of each policy that names none, by gRPC's rules. A bucket, stagger's own, charges for extra attempts
and returns the cost of those that help; declared under budgets, it takes this one's place.`
	} else if retries(file) {
		file.Content[0].HeadComment = `No retryThrottling: gRPC had no limit. With stagger each policy that names no budget shares one for each target: a
bucket of extra attempts, which calls that succeed fill. "budget: NONE" in a retryPolicy means no limit.`
	}
	if key := keyOf(file, "loadBalancingConfig"); key != nil {
		key.HeadComment = join(key.HeadComment, `Retrier.DialOptions gives this to connections, in place of a grpc.WithDefaultServiceConfig before them.`)
	}
	entries := get(file, "methodConfig")
	if entries == nil {
		return
	}
	for _, entry := range entries.Content {
		c.entry(entry)
	}
}

// retries reports whether an entry of a file has a policy.
func retries(file *yaml.Node) bool {
	entries := get(file, "methodConfig")
	return entries != nil && slices.ContainsFunc(entries.Content, func(entry *yaml.Node) bool {
		return get(entry, "retryPolicy") != nil || get(entry, "hedgingPolicy") != nil
	})
}

// entry comments on one element of methodConfig.
func (c commenter) entry(entry *yaml.Node) {
	retry, hedging := get(entry, "retryPolicy"), get(entry, "hedgingPolicy")
	if retry == nil && hedging == nil {
		return
	}
	entry.HeadComment = c.safety(get(entry, "name"))
	if retry != nil {
		if key := keyOf(retry, "backoffMultiplier"); key != nil {
			key.HeadComment = `The wait is drawn between 0 and the backoff (jitter: FULL), which spreads load further and halves the mean wait;
"jitter: PROPORTIONAL" is gRPC's, 80 to 120 % of it.`
		}
		cut(retry)
	}
	if hedging != nil {
		keyOf(entry, "hedgingPolicy").HeadComment = `gRPC for Go does not hedge: with stagger, slow calls are hedged from now on.`
		cut(hedging)
	}
}

// cut comments on a maxAttempts above the limit.
func cut(p *yaml.Node) {
	attempts := get(p, "maxAttempts")
	if attempts == nil {
		return
	}
	if n, err := strconv.ParseFloat(attempts.Value, 64); err == nil && n > 5 {
		keyOf(p, "maxAttempts").HeadComment = `At most 5 are made, as with gRPC; maxAttemptsLimit at the top of the file allows more.`
	}
}

// safety comments on which methods of an entry are retried.
func (c commenter) safety(names *yaml.Node) string {
	if names == nil {
		return ""
	}
	var wide []string // services without named methods
	all := false
	for _, name := range names.Content {
		service, method := get(name, "service"), get(name, "method")
		switch {
		case service == nil || service.Value == "":
			all = true
		case method == nil || method.Value == "":
			wide = append(wide, service.Value)
		}
	}
	if !all && len(wide) == 0 {
		return "These methods are named, which declares them idempotent. Is that true of each?"
	}
	text := `gRPC retries every method here. stagger retries one only if it is declared idempotent: by an entry with service and
method, by idempotency_level in its .proto, or by an idempotencyKey. "idempotency: ASSUME" in this entry is gRPC's way.`
	for _, service := range c.known.Services() {
		if name := string(service.FullName()); all || slices.Contains(wide, name) {
			text = join(text, c.undeclared(name, cli.Methods(service)))
		}
	}
	return text
}

// undeclared returns a comment with the methods of a service that aren't declared idempotent.
func (c commenter) undeclared(service string, methods []string) string {
	methods = slices.DeleteFunc(methods, func(method string) bool {
		full := fmt.Sprintf("/%s/%s", service, method)
		p := c.set.Lookup(full)
		return p != nil && c.set.Safe(p, full)
	})
	if len(methods) == 0 {
		return ""
	}
	return fmt.Sprintf("Not declared idempotent in %s: %s.", service, strings.Join(methods, ", "))
}

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n" + b
}

// get returns the value of a key, or nil.
func get(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(n.Content) && n.Kind == yaml.MappingNode; i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// keyOf returns the node of the key itself.
func keyOf(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(n.Content) && n.Kind == yaml.MappingNode; i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i]
		}
	}
	return nil
}
