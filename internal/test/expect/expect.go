// Package expect has the checks that nearly every test makes.
package expect

// T is a test of package testing or rapid.
type T interface {
	Helper()
	Fatal(args ...any)
	Errorf(format string, args ...any)
}

// OK ends the test if there is an error.
func OK(t T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// NoDiff fails the test if cmp.Diff, which was called with the expected value first, found a difference in what the
// format names.
func NoDiff(t T, diff, format string, args ...any) {
	t.Helper()
	if diff != "" {
		t.Errorf(format+" (-want +got):\n%s", append(args, diff)...)
	}
}

// NoError fails the test if there is an error, and continues it.
func NoError(t T, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("%v", err)
	}
}

// Success returns a function that ends the test if the last of its arguments is an error: the results of a call.
func Success(t T) func(results ...any) {
	t.Helper()
	return func(results ...any) {
		t.Helper()
		if err, _ := results[len(results)-1].(error); err != nil {
			t.Fatal(err)
		}
	}
}
