package invoice

import (
	"strings"
	"time"
)

// MaxTimezone bounds the name of a time zone, in bytes.
const MaxTimezone = 64

// ParseTimezone returns the time zone with a name of the IANA time zone database, such as Europe/Berlin. It returns
// false for other names, such as Local.
func ParseTimezone(name string) (*time.Location, bool) {
	if name == "" || strings.EqualFold(name, "local") || len(name) > MaxTimezone {
		return nil, false
	}
	location, err := time.LoadLocation(name)
	return location, err == nil
}

// DayStart returns when a day such as 2026-11-30 begins in a time zone, or the zero time if the text is not a day.
func DayStart(text string, location *time.Location) time.Time {
	day, err := time.ParseInLocation(time.DateOnly, text, location)
	if err != nil {
		return time.Time{}
	}
	// Clocks may skip midnight. Then the day begins with their change.
	if day.Format(time.DateOnly) < text { //nolint:forbidigo // never zero, and the domain imports no package
		_, day = day.ZoneBounds()
	}
	return day.UTC()
}

// Zone returns the merchant's time zone, in which its days begin.
func (m Merchant) Zone() *time.Location {
	if location, ok := ParseTimezone(m.Timezone); ok {
		return location
	}
	return time.UTC
}

// CheckTimezone returns a *FieldError unless the name is empty or names a time zone.
func CheckTimezone(name string) error {
	if _, ok := ParseTimezone(name); name != "" && !ok {
		return fieldErrorf("timezone", "must be a name of the IANA time zone database, such as Europe/Berlin; it is %.40q", name)
	}
	return nil
}
