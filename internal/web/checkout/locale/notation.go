package locale

import (
	"html/template"
	"slices"
	"strings"
	"time"

	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/quittance/quittance/internal/clock"
)

// numbers is how a language writes numbers.
type numbers struct {
	decimal, group string
	grouped        int // digits from which a whole number is grouped
}

// fourDigits are the languages that write 1234 without a separator. In CLDR they have
// minimumGroupingDigits 2, which x/text does not offer.
var fourDigits = []string{"be", "bg", "es", "et", "hu", "hy", "it", "ka", "lv", "pl", "pt-PT", "sl", "sq"}

// numbersIn returns the notation of a language with Latin digits, in which amounts are copied.
func numbersIn(tag language.Tag) numbers {
	grouped := groupSize + 1
	if slices.Contains(fourDigits, tag.String()) {
		grouped++
	}
	if latin, err := tag.SetTypeForKey("nu", "latn"); err == nil {
		tag = latin
	}
	sample := message.NewPrinter(tag).Sprintf("%.1f", 12345.6)
	group, decimal, _ := strings.Cut(sample, "345")
	return numbers{decimal: strings.TrimSuffix(decimal, "6"), group: strings.TrimPrefix(group, "12"), grouped: grouped}
}

const groupSize = 3 // digits of a group

// DecimalComma reports whether the language writes a comma before the decimals.
func (t *Text) DecimalComma() bool { return t.numbers.decimal == "," }

// Number writes a number as the language does, every digit of it: 1234.50 as 1.234,50 in German. The
// argument is decimal digits with or without a minus sign and a dot.
func (t *Text) Number(plain string) string {
	digits, negative := strings.CutPrefix(plain, "-")
	whole, fraction, isDecimal := strings.Cut(digits, ".")
	first := (len(whole)-1)%groupSize + 1
	if len(whole) < t.numbers.grouped {
		first = len(whole)
	}
	out := whole[:min(first, len(whole))]
	for ; first < len(whole); first += groupSize {
		out += t.numbers.group + whole[first:first+groupSize]
	}
	if negative {
		out = "-" + out
	}
	if isDecimal {
		out += t.numbers.decimal + fraction
	}
	return out
}

// Clock returns a time in UTC, or "" for the zero time.
func (t *Text) Clock(at time.Time) string { return t.ClockIn(at, time.UTC) }

// ClockIn returns a time in a zone, with the zone's abbreviation in place of the layout's UTC.
func (t *Text) ClockIn(at time.Time, zone *time.Location) string {
	return clock.Format(at, zone, t.layout())
}

func (t *Text) layout() string { return strings.ReplaceAll(t.T("time.layout", nil), "UTC", "MST") }

// Time returns an element with a time in UTC, which the script of payers' pages replaces by the time in
// the browser's zone.
func (t *Text) Time(at time.Time) template.HTML { return t.TimeIn(at, time.UTC) }

// TimeIn returns an element with a time in a zone, or "" for the zero time.
func (t *Text) TimeIn(at time.Time, zone *time.Location) template.HTML {
	return element(at, t.ClockIn(at, zone))
}

// SecondIn returns an element with a time to the second in a zone, or "" for the zero time.
func (t *Text) SecondIn(at time.Time, zone *time.Location) template.HTML {
	return element(at, clock.Format(at, zone, strings.Replace(t.layout(), "04 ", "04:05 ", 1)))
}

func element(at time.Time, shown string) template.HTML {
	if at.IsZero() {
		return ""
	}
	return template.HTML(`<time datetime="` + clock.Format(at, time.UTC, time.RFC3339) + `">` + template.HTMLEscapeString(shown) + `</time>`) //nolint:gosec // escaped
}

// Day writes a day such as 2026-11-23 as the language does, and a text that is no day unchanged.
func (t *Text) Day(day string) string {
	date, _, _ := strings.Cut(t.layout(), "15")
	return t.date(day, strings.TrimRight(date, " ,\u060c"))
}

// ShortDay is Day without the year.
func (t *Text) ShortDay(day string) string {
	date, _, _ := strings.Cut(t.layout(), "15")
	date = strings.NewReplacer("2006年", "", "2006년 ", "", "2006", "").Replace(date)
	return t.date(day, strings.TrimRight(date, " ,/\u060c"))
}

func (t *Text) date(day, layout string) string {
	at, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return day
	}
	return clock.Format(at, time.UTC, layout)
}
