// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package measure

// Cost is what one operation of a subject has cost.
type Cost struct {
	Name      string
	Count     int       // operations a round
	Time      Quartiles // nanoseconds an operation
	Ratio     Quartiles // of the times to those of the base in the same round
	Processor Quartiles // the same of what processors have spent; zero if that cannot be told
	Allocs    float64   // allocations an operation, the median of the rounds
	Bytes     float64   // bytes allocated an operation, the median of the rounds
}

// series is what a subject has cost, by rounds.
type series struct {
	name  string
	count int

	times, spent, allocs, bytes []float64 // an operation
}

func (s series) cost(base series) Cost {
	return Cost{
		Name: s.name, Count: s.count,
		Time: QuartilesOf(s.times), Ratio: ratios(s.times, base.times), Processor: ratios(s.spent, base.spent),
		Allocs: QuartilesOf(s.allocs).Median, Bytes: QuartilesOf(s.bytes).Median,
	}
}

// ratios are those of the same round; none if a round of the base was too short to measure.
func ratios(all, base []float64) Quartiles {
	list := make([]float64, len(all))
	for i := range list {
		if base[i] == 0 {
			return Quartiles{}
		}
		list[i] = all[i] / base[i]
	}
	return QuartilesOf(list)
}
