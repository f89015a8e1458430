package dashboard

import (
	"html/template"
	"math/big"
	"slices"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/db"
)

// chart shows the settled amounts of a currency by day and chain as bars. Sums are in minor units.
type chart struct {
	Currency string
	Total    string
	Bars     []bar
	Labels   []string               // of days, evenly spread
	Chains   []chartChain           // of the legend
	Days     []apitypes.SummaryLine // the same as a table of the sums of all chains, newest first
}

// bar is the part of a chain in the column of a day, in the units of the SVG.
type bar struct {
	X, Y, Width, Height float64
	Chain               int // position in Chains
	Title               string
}

// chartChain is an entry of the legend.
type chartChain struct{ ChainKey, Sum string }

// Sizes of a chart, in the units of the SVG.
const (
	chartWidth  = 720
	chartHeight = 140
	barShare    = 0.72 // of the width of a day
	chartLabels = 5
)

// newCharts returns a chart for each currency of the lines, in their order.
func (v *visit) newCharts(lines []apitypes.SummaryLine, days []string) []chart {
	return db.Each(v.units(lines, days[0]), func(u *chartUnit) chart { return u.chart(days) })
}

// chartUnit is the lines of a currency.
type chartUnit struct {
	*visit
	currency string
	lines    []apitypes.SummaryLine
}

// units divides lines by currency, from a day on.
func (v *visit) units(lines []apitypes.SummaryLine, from string) []*chartUnit {
	var all []*chartUnit
	for _, l := range lines {
		if l.Day < from {
			continue
		}
		i := slices.IndexFunc(all, func(u *chartUnit) bool { return u.currency == l.Currency })
		if i < 0 {
			i = len(all)
			all = append(all, &chartUnit{visit: v, currency: l.Currency})
		}
		all[i].lines = append(all[i].lines, l)
	}
	return all
}

// sum returns a sum of the unit.
func (u *chartUnit) sum(minor *big.Int) template.HTML {
	return u.total(minor.String(), u.currency)
}

// chart returns the chart of the unit. A bar shows the received amount without deducting refunds,
// because a bar cannot be negative; the sums are net.
func (u *chartUnit) chart(days []string) chart {
	c := chart{Currency: u.currency}
	byDay := make(map[string]*big.Int)
	byChain := make(map[string]*big.Int)
	var chains []string
	total, highest := new(big.Int), new(big.Int)
	for _, l := range u.lines {
		gross, net := integer(l.Gross), integer(l.Net)
		add(byDay, l.Day, gross)
		if byChain[l.ChainKey] == nil {
			chains = append(chains, l.ChainKey)
		}
		add(byChain, l.ChainKey, net)
		total.Add(total, net)
		if byDay[l.Day].Cmp(highest) > 0 {
			highest.Set(byDay[l.Day])
		}
	}
	slices.Sort(chains)
	for _, key := range chains {
		c.Chains = append(c.Chains, chartChain{key, byChain[key].String()})
	}
	c.Total = total.String()
	c.Bars = u.bars(days, chains, highest)
	for i := range chartLabels {
		c.Labels = append(c.Labels, u.text.ShortDay(days[i*(len(days)-1)/(chartLabels-1)]))
	}
	c.Days = u.table(days)
	return c
}

// bars returns the bars of all days. The bars of one day are stacked.
func (u *chartUnit) bars(days, chains []string, highest *big.Int) []bar {
	var bars []bar
	step := float64(chartWidth) / float64(len(days))
	tops := make(map[string]float64)
	for _, l := range u.lines {
		day := slices.Index(days, l.Day)
		height := share(integer(l.Gross), highest) * chartHeight
		if day < 0 || height == 0 {
			continue
		}
		tops[l.Day] += height
		bars = append(bars, bar{
			X: (float64(day) + (1-barShare)/2) * step, Y: chartHeight - tops[l.Day], Width: step * barShare, Height: height, Chain: slices.Index(chains, l.ChainKey),
			Title: u.text.Day(l.Day) + " · " + u.Network(l.ChainKey) + " · " + plain(u.money(l.Gross, u.currency)),
		})
	}
	return bars
}

// table returns the days with payments or refunds, newest first.
func (u *chartUnit) table(days []string) (rows []apitypes.SummaryLine) {
	for _, day := range slices.Backward(days) {
		row, sum := apitypes.SummaryLine{}, new(big.Int)
		for _, l := range u.lines {
			if l.Day == day {
				sum.Add(sum, integer(l.Net))
				row.Day, row.Payments = day, row.Payments+l.Payments
			}
		}
		if row.Net = sum.String(); row.Day != "" {
			rows = append(rows, row)
		}
	}
	return rows
}

// share returns a part of a whole, from 0 to 1. It is only for drawing.
func share(part, whole *big.Int) float64 {
	if whole.Sign() == 0 {
		return 0
	}
	f, _ := new(big.Rat).SetFrac(part, whole).Float64()
	return f
}

// integer returns the number of a sum of the interface.
func integer(text string) *big.Int {
	n, ok := new(big.Int).SetString(text, 10)
	if !ok {
		return new(big.Int)
	}
	return n
}

func add(sums map[string]*big.Int, key string, n *big.Int) {
	if sums[key] == nil {
		sums[key] = new(big.Int)
	}
	sums[key].Add(sums[key], n)
}
