package invoice

import "slices"

// Limits of the reminders of an invoice that is sent by e-mail.
const (
	MaxReminders     = 5
	MaxReminderHours = 720 // 30 days
)

// CheckReminderHours checks when an invoice is reminded of: in hours from the end of the time to pay, where a negative
// number is before it. It returns a *FieldError for a list that is not valid.
func CheckReminderHours(hours []int) error {
	if len(hours) > MaxReminders {
		return fieldErrorf("reminderHours", "must be at most %d; there are %d", MaxReminders, len(hours))
	}
	for i, h := range hours {
		if h == 0 || h < -MaxReminderHours || h > MaxReminderHours {
			return fieldErrorf("reminderHours", "must be hours from %d to %d, other than 0; there is %d", -MaxReminderHours, MaxReminderHours, h)
		}
		if slices.Contains(hours[:i], h) {
			return fieldErrorf("reminderHours", "has %d twice", h)
		}
	}
	return nil
}
