package db

import "time"

// ScanSeq scans a row of one integer.
func ScanSeq(row Scanner) (seq int64, err error) {
	err = row.Scan(&seq)
	return seq, err
}

// ScanID scans a row of one text.
func ScanID(row Scanner) (id string, err error) {
	err = row.Scan(&id)
	return id, err
}

// ScanCount scans a row of one number of rows.
func ScanCount(row Scanner) (n int, err error) {
	err = row.Scan(&n)
	return n, err
}

// ScanTime scans a row of one time in Unix seconds.
func ScanTime(row Scanner) (at time.Time, err error) {
	err = row.Scan(Seconds(&at))
	return at, err
}

// Fields returns a function that scans a row into the fields of a value.
func Fields[T any](fields func(*T) []any) func(Scanner) (T, error) {
	return func(row Scanner) (v T, err error) {
		err = row.Scan(fields(&v)...)
		return v, err
	}
}

// One returns a function that scans a row of one column.
func One[T any](field func(*T) Field) func(Scanner) (T, error) {
	return Fields(func(v *T) []any { return []any{field(v)} })
}
