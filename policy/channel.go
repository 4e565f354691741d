// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/stagger-go/stagger/internal/document"
	"github.com/stagger-go/stagger/internal/tried"
)

// balancing returns the file's loadBalancingConfig as JSON, if it names the policy of package balancer at any depth: a Retrier
// passes it to connections with its DialOptions. Otherwise it returns "", and the key is for gRPC alone.
func (c Config) balancing() string {
	if !namesElsewhere(c.balancers()) {
		return ""
	}
	return string(c.channel().LoadBalancingConfig)
}

// namesElsewhere reports whether the policy is named, at any depth.
func namesElsewhere(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			if key == tried.Balancer || namesElsewhere(inner) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, namesElsewhere)
	}
	return false
}

// checkElsewhere refuses the policy without a child, at any depth in value.
func checkElsewhere(report *document.Report, field string, value any) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			inside := document.Under(field, key)
			if key == tried.Balancer {
				checkChild(report, inside, v[key])
			}
			checkElsewhere(report, inside, v[key])
		}
	case []any:
		for i, entry := range v {
			checkElsewhere(report, document.Item(field, i), entry)
		}
	}
}

// oneBalancing is the message for an invalid entry in a list of load balancing policies.
const oneBalancing = "must be a map with one key, a load balancing policy, such as {round_robin: {}}"

func checkChild(report *document.Report, field string, value any) {
	config, ok := value.(map[string]any)
	if !ok {
		return // reported already, or an error of the outer policy
	}
	const want = "must list the policy that picks, such as [{round_robin: {}}]; of several, gRPC takes the first that the program knows"
	list, _ := config["childPolicy"].([]any)
	if len(list) == 0 {
		report.Errorf(document.Under(field, "childPolicy"), nil, want)
	}
	for i, one := range list {
		if entry, ok := one.(map[string]any); !ok || len(entry) != 1 {
			report.Errorf(document.Item(document.Under(field, "childPolicy"), i), nil, oneBalancing)
		}
	}
}

// channel is the parsed [Config.Channel].
type channel struct {
	LoadBalancingPolicy string          `json:"loadBalancingPolicy,omitempty"`
	LoadBalancingConfig json.RawMessage `json:"loadBalancingConfig,omitempty"`
	HealthCheckConfig   json.RawMessage `json:"healthCheckConfig,omitempty"`
	ConnectionScaling   json.RawMessage `json:"connectionScaling,omitempty"`
}

func (c Config) channel() (said channel) {
	_ = c.read(&said) // checkChannel reports an error
	return said
}

// read parses the channel. Unknown keys are errors.
func (c Config) read(said *channel) error {
	if c.Channel == "" {
		return nil
	}
	d := json.NewDecoder(strings.NewReader(c.Channel))
	d.DisallowUnknownFields()
	if err := d.Decode(said); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("more follows the map")
	}
	return nil
}

// text returns the channel in JSON, or "" if it is empty.
func (c channel) text() string {
	if text := string(jsonText(c)); text != "{}" {
		return text
	}
	return ""
}

// jsonText returns a value in JSON, or nil for an empty list or map.
func jsonText(v any) json.RawMessage {
	switch v := v.(type) {
	case []any:
		if len(v) == 0 {
			return nil
		}
	case map[string]any:
		if len(v) == 0 {
			return nil
		}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil { // a file's values always encode
		return nil
	}
	return bytes.TrimSpace(b.Bytes())
}

// balancers returns the loadBalancingConfig, or nil if it isn't a list.
func (c Config) balancers() (list []any) {
	_ = json.Unmarshal(c.channel().LoadBalancingConfig, &list) // checkChannel reports errors
	return list
}

// checkChannel refuses what gRPC refuses in its own keys: the file is also for gRPC.
func checkChannel(report *document.Report, c Config) {
	var said channel
	if err := c.read(&said); err != nil {
		report.Errorf("channel", c.Channel, "must be a map in JSON with keys such as loadBalancingConfig: %v", err)
		return
	}
	for i, one := range c.balancers() {
		field := document.Item(balancingKey, i)
		entry, ok := one.(map[string]any)
		if !ok || len(entry) != 1 {
			report.Errorf(field, nil, oneBalancing)
			continue
		}
		for name, config := range entry {
			if _, ok := config.(map[string]any); !ok {
				report.Errorf(document.Under(field, name), nil, "must be a map of the policy's settings; {} for none")
			}
		}
	}
	checkElsewhere(report, balancingKey, c.balancers())
	if said.LoadBalancingConfig != nil && c.balancers() == nil {
		report.Errorf(balancingKey, string(said.LoadBalancingConfig), "must be a list in JSON")
	}
	health := checkMap(report, "healthCheckConfig", said.HealthCheckConfig)
	if name, ok := health["serviceName"].(string); !ok && health["serviceName"] != nil {
		report.Errorf("healthCheckConfig.serviceName", name, "must be the name of the service that is asked for its health; put it in quotes")
	}
	checkMap(report, "connectionScaling", said.ConnectionScaling)
}

func checkMap(report *document.Report, key string, text json.RawMessage) (config map[string]any) {
	if text != nil && (json.Unmarshal(text, &config) != nil || config == nil) {
		report.Errorf(key, string(text), "must be a map in JSON")
	}
	return config
}

// balancingKey is the key of a policy file.
const balancingKey = "loadBalancingConfig"

// warnNotDone warns of parts of a config that have no effect here.
func warnNotDone(report *document.Report, c Config) {
	channel := c.channel()
	for _, said := range [][2]string{
		{"loadBalancingPolicy", channel.LoadBalancingPolicy},
		{balancingKey, string(channel.LoadBalancingConfig)},
		{"healthCheckConfig", string(channel.HealthCheckConfig)},
		{"connectionScaling", string(channel.ConnectionScaling)},
	} {
		if key := said[0]; said[1] != "" && (key != balancingKey || c.balancing() == "") {
			report.Warnf(key, nil, "belongs to the channel and has no effect here: pass it to gRPC, "+
				"with grpc.WithDefaultServiceConfig or from the resolver")
		}
	}
}
