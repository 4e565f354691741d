// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/stagger-go/stagger/internal/document"
)

func checkBudgets(report *document.Report, budgets []BudgetSpec) {
	names := map[string]bool{}
	for i, b := range budgets {
		path := fmt.Sprintf("budgets[%d].", i)
		switch {
		case b.Name == "":
			report.Errorf(path+"name", nil, "must be the name that policies use")
		case strings.EqualFold(b.Name, NoBudget):
			report.Errorf(path+"name", b.Name, "must not be NONE, which means no budget")
		case names[b.Name]:
			report.Errorf(path+"name", b.Name, "another budget has that name")
		}
		names[b.Name] = true
		if b.Scope > ScopeService {
			report.Errorf(path+"scope", uint8(b.Scope), "must be TARGET, PROCESS or SERVICE")
		}
		checkKind(report, path, b)
	}
}

// checkKind wants exactly one kind. Of a file with two, reading has said so already.
func checkKind(report *document.Report, path string, b BudgetSpec) {
	kinds, read := 0, true
	for _, kind := range []struct {
		name  string
		set   bool
		check func(path string)
	}{
		{"ratio", b.Ratio != nil, func(path string) { checkRatio(report, path, *b.Ratio) }},
		{"throttle", b.Throttle != nil, func(path string) { checkThrottle(report, path, *b.Throttle) }},
		{"concurrent", b.Concurrent != nil, func(path string) { checkConcurrent(report, path, *b.Concurrent) }},
		{"refund", b.Refund != nil, func(path string) { checkRefund(report, path, *b.Refund) }},
	} {
		read = read && report.Whole(path+kind.name)
		if !kind.set {
			continue
		}
		if kinds++; kinds > 1 {
			report.Errorf(path+kind.name, nil, "a budget is of one kind: %s, not two of them", budgetKinds)
			continue
		}
		kind.check(path + kind.name + ".")
	}
	if kinds == 0 && read {
		report.Errorf(strings.TrimSuffix(path, "."), nil, "must have a kind: %s", budgetKinds)
	}
}

const budgetKinds = "ratio, throttle, concurrent or refund"

func checkRatio(report *document.Report, path string, r RatioSpec) {
	checkNumber(report, path+"percent", r.Percent, 0.0001, 1000, 4)
	checkNumber(report, path+"minPerSecond", r.MinPerSecond, 0, 1e6, 4)
	if r.Window < time.Second || r.Window > time.Minute {
		report.Errorf(path+"window", r.Window, "must be 1s to 60s")
	}
	checkNumber(report, path+"timeoutCost", r.TimeoutCost, 1, 1000, 4)
	checkNumber(report, path+"timeoutBonus", r.TimeoutBonus, 0, 1000, 4)
}

func checkConcurrent(report *document.Report, path string, c ConcurrentSpec) {
	checkNumber(report, path+"percent", c.Percent, 0.0001, 1000, 4)
	if c.Min < 0 || c.Min > 1e6 {
		report.Errorf(path+"min", c.Min, "must be a whole number from 0 to 1000000")
	}
}

func checkRefund(report *document.Report, path string, r RefundSpec) {
	checkNumber(report, path+"capacity", r.Capacity, 1, 1e6, 3)
	most := min(max(r.Capacity, 1), 1e6) // where the capacity itself is wrong
	checkNumber(report, path+"retryCost", r.RetryCost, 0.001, most, 3)
	checkNumber(report, path+"timeoutCost", r.TimeoutCost, 0.001, most, 3)
	checkNumber(report, path+"success", r.Success, 0, most, 3)
}

// checkNumber wants so many decimals at most: a budget counts in whole parts of a token, and nothing
// may be rounded in silence.
func checkNumber(report *document.Report, field string, v, low, high float64, decimals int) {
	scale := math.Pow10(decimals)
	scaled := math.Round(v*scale) / scale
	switch {
	case !(v >= low && v <= high): // NaN too
		report.Errorf(field, v, "must be %v to %s", low, strconv.FormatFloat(high, 'f', -1, 64))
	case scaled != v:
		report.Errorf(field, v, "must have at most %s decimals, such as %v", []string{2: "two", 3: "three", 4: "four"}[decimals], scaled)
	}
}

func checkThrottle(report *document.Report, path string, t ThrottleSpec) {
	if t.MaxTokens < 1 || t.MaxTokens > 1000 {
		report.Errorf(path+"maxTokens", t.MaxTokens, "must be a whole number from 1 to 1000")
	}
	if !(t.TokenRatio >= 0.001) || math.IsInf(t.TokenRatio, 0) {
		report.Errorf(path+"tokenRatio", t.TokenRatio, "must be at least 0.001: decimals beyond the third are dropped")
	}
}
