// Package expect has the checks that nearly every test makes.
package expect

import (
	"errors"
	"slices"
)

// T is a test of package testing or rapid.
type T interface {
	Helper()
	Fatal(args ...any)
	Errorf(format string, args ...any)
}

// OK ends the test if there is an error. Without one, t may be nil, as in the other functions.
func OK(t T, err error) {
	if err != nil {
		t.Helper()
		t.Fatal(err)
	}
}

// NoDiff fails the test if cmp.Diff, which was called with the expected value first, found a difference in what the
// format names.
func NoDiff(t T, diff, format string, args ...any) {
	if diff != "" {
		t.Helper()
		t.Errorf(format+" (-want +got):\n%s", append(args, diff)...)
	}
}

// NoError fails the test if there is an error, and continues it.
func NoError(t T, err error) {
	if err != nil {
		t.Helper()
		t.Errorf("%v", err)
	}
}

// Equal fails the test unless two values are equal. The format is about the first of them: "the invoice is" gives "the
// invoice is open, want paid".
func Equal[V comparable](t T, got, want V, format string, args ...any) {
	if got != want {
		t.Helper()
		t.Errorf(format+" %v, want %v", append(args, got, want)...)
	}
}

// List fails the test unless two lists have the same elements.
func List[V comparable](t T, got, want []V, format string, args ...any) {
	if !slices.Equal(got, want) {
		t.Helper()
		t.Errorf(format+" %+v, want %+v", append(args, got, want)...)
	}
}

// Len fails the test unless a list has n elements.
func Len[V any](t T, list []V, n int, format string, args ...any) {
	if len(list) != n {
		t.Helper()
		t.Errorf(format+" %+v, want %d", append(args, list, n)...)
	}
}

// Error returns a function that fails the test unless the last of its arguments, the results of a call, wraps an error.
func Error(t T, want error, format string, args ...any) func(results ...any) {
	return func(results ...any) {
		if err, _ := results[len(results)-1].(error); !errors.Is(err, want) {
			t.Helper()
			t.Errorf(format+": %v, want %v", append(args, err, want)...)
		}
	}
}

// Success returns a function that ends the test if the last of its arguments is an error: the results of a call.
func Success(t T) func(results ...any) {
	return func(results ...any) {
		if err, _ := results[len(results)-1].(error); err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
}

// Must returns the value of a call that fails only if the test is wrong, and panics if it fails.
func Must[V any](v V, err error) V {
	if err != nil {
		panic(err)
	}
	return v
}
