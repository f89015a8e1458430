package api

import (
	"strconv"
	"time"
	_ "time/tzdata" // the image has no files but the program's

	"github.com/quittance/quittance/internal/invoice"
)

// timezone returns the time zone that the parameter timezone names, or UTC.
func (q *query) timezone() *time.Location {
	name, ok := q.get("timezone")
	if !ok {
		return time.UTC
	}
	location, ok := invoice.ParseTimezone(name)
	if !ok {
		q.reject("timezone", "must be a name of the IANA time zone database, such as Europe/Berlin; it is %.40q", name)
		return time.UTC
	}
	return location
}

// instant returns a required time: Unix seconds, or a date, for which it returns the begin of the day
// in a time zone.
func (q *query) instant(name string, location *time.Location) time.Time {
	text, ok := q.get(name)
	if !ok {
		q.reject(name, "is required")
		return time.Time{}
	}
	if day := invoice.DayStart(text, location); !day.IsZero() {
		if day.Unix() < 0 {
			q.reject(name, "must not begin before 1970 in UTC; it is %s", text)
		}
		return day
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || text != strconv.FormatInt(n, 10) || invoice.Unix(n).Unix() != n {
		q.reject(name, "must be Unix seconds or a date such as 2026-11-30; it is %.40q", text)
	}
	return invoice.Unix(n)
}
