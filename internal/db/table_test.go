package db

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/expect"
)

// sample has a variable of each kind of field.
type sample struct {
	Text, NullText string
	Int            uint64
	NullInt        int
	Bool           bool
	OptionalBool   *bool
	OptionalInt    *uint64
	Seconds        time.Time
	NullSeconds    time.Time
	Milliseconds   time.Time
	Duration       time.Duration
	Amount         invoice.Amount
	Address        invoice.Address
	Hash           invoice.Hash
	JSON           map[string]string
	Bytes          []byte
	Hex            []byte
	Base64         []byte
	Joined         string
}

var sampleTable = NewTable("samples", func(s *sample) []Column {
	return append([]Column{
		Col("text", Text(&s.Text)),
		Col("null_text", Null(Text(&s.NullText))),
		Col("int", Int(&s.Int)),
		Col("null_int", Null(Int(&s.NullInt))),
		Col("bool", Bool(&s.Bool)),
		Col("optional_bool", OptionalBool(&s.OptionalBool)),
		Col("optional_int", OptionalInt(&s.OptionalInt)),
		Col("seconds", Seconds(&s.Seconds)),
		Col("null_seconds", Null(Seconds(&s.NullSeconds))),
		Col("milliseconds", Milliseconds(&s.Milliseconds)),
		Col("duration", Duration(&s.Duration, time.Minute)),
		Col("amount", Amount(&s.Amount)),
		Col("address", Address(&s.Address)),
		Col("hash", Null(Hash(&s.Hash))),
		Col("json", NullIf(func() bool { return s.JSON == nil }, JSON(&s.JSON))),
		Col("bytes", Bytes(&s.Bytes)),
		Col("hex", Hex(&s.Hex)),
		Col("base64", Base64(&s.Base64)),
	}, Joined(Col("other.name", Text(&s.Joined)))...)
})

// storedRow is a row as a driver returns it.
type storedRow []any

func (r storedRow) Scan(dest ...any) error {
	if len(dest) != len(r) {
		return fmt.Errorf("%d targets for %d columns", len(dest), len(r))
	}
	for i, d := range dest {
		if err := d.(interface{ Scan(any) error }).Scan(r[i]); err != nil {
			return fmt.Errorf("column %d: %w", i, err)
		}
	}
	return nil
}

// TestRowsAreReadAsWritten writes rows of all kinds of fields, and reads them.
func TestRowsAreReadAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := func(label string) time.Time { return invoice.Unix(rapid.Int64Range(1, 1<<40).Draw(t, label)) }
		maybe := rapid.Bool().Draw(t, "maybe")
		optional := new(rapid.Uint64Range(0, 1<<60).Draw(t, "optional int"))
		if !maybe {
			optional = nil
		}
		raw := rapid.SliceOfN(rapid.Byte(), 1, 40).Draw(t, "bytes")
		want := sample{
			Text: rapid.String().Draw(t, "text"), NullText: rapid.String().Draw(t, "null text"), Int: rapid.Uint64Range(0, 1<<60).Draw(t, "int"),
			NullInt: rapid.IntRange(-3, 3).Draw(t, "null int"), Bool: maybe, OptionalInt: optional, Seconds: at("seconds"),
			Milliseconds: at("milliseconds"), Duration: time.Duration(rapid.Int64Range(0, 1000).Draw(t, "minutes")) * time.Minute,
			Amount: invoice.NewAmount(rapid.Uint64().Draw(t, "amount")), JSON: map[string]string{"key": rapid.String().Draw(t, "value")},
			Bytes: raw, Hex: bytes.Clone(raw), Base64: bytes.Clone(raw),
		}
		copy(want.Address[:], raw)
		if maybe {
			want.NullSeconds, want.OptionalBool = at("null seconds"), new(false)
			copy(want.Hash[:], raw)
		} else {
			want.JSON = nil
		}
		got, err := sampleTable.Scan(storedRow(sampleTable.Values(want, "")))
		if err != nil || !reflect.DeepEqual(want, got) {
			t.Fatalf("a row is read as %+v, error %v; want %+v", got, err, want)
		}
	})
}

func TestEmptyFieldsAreNull(t *testing.T) {
	values := sampleTable.Values(sample{})
	for i, c := range slices.Collect(sampleTable.of(new(sample))) {
		null := strings.HasPrefix(c.name, "null_") || strings.HasPrefix(c.name, "optional_") || c.name == "hash" || c.name == "json"
		if !c.read && (values[i] == nil) != null { // read columns are the last
			t.Errorf("the column %s of an empty row is written as %#v; want NULL: %v", c.name, values[i], null)
		}
	}
	row := make(storedRow, len(values)+1)
	if got, err := sampleTable.Scan(row); err != nil || !reflect.DeepEqual(sample{}, got) {
		t.Errorf("a row of NULLs is read as %+v, error %v; want an empty one", got, err)
	}
}

func TestColumnsOfATable(t *testing.T) {
	type row struct {
		id, name, owner string
		size            int
	}
	table := NewTable("files", func(r *row) []Column {
		return []Column{Col("id", Text(&r.id)), Col("name", Null(Text(&r.name))), Col("size", Int(&r.size)), Expr("owners.name", Text(&r.owner))}
	})
	for got, want := range map[string]string{
		table.Select():                  "SELECT id, name, size, owners.name FROM files",
		table.Of("f"):                   "f.id, f.name, f.size, owners.name",
		table.Only("size", "id").List(): "id, size",
		table.Without("id").Excluded():  "name = excluded.name, size = excluded.size",
	} {
		expect.Equal(t, got, want, "got")
	}
	want := Insertion{Table: "files", Columns: []string{"id", "name", "size BIGINT", "at BIGINT"}, Conflict: "ON CONFLICT DO NOTHING"}
	expect.NoDiff(t, cmp.Diff(want, table.Insertion("ON CONFLICT DO NOTHING", "at BIGINT")), "the insertion")
	expect.NoDiff(t, cmp.Diff([]any{"a", nil, int64(2), int64(7)}, table.Values(row{id: "a", size: 2, owner: "b"}, int64(7))), "the values")
	defer func() {
		if recover() == nil {
			t.Error("a table without a column of this name was made")
		}
	}()
	table.Only("nothing")
}

// TestWrongColumns reads columns that have another type than their field, or a text that it cannot have.
func TestWrongColumns(t *testing.T) {
	var s sample
	for _, test := range []struct {
		field Field
		value any
		want  string
	}{
		{Text(&s.Text), int64(1), "a column holds a int64 where text was expected"},
		{Int(&s.Int), "1", "a column holds a string where an integer was expected"},
		{Seconds(&s.Seconds), 1.5, "a column holds a float64 where an integer was expected"},
		{Amount(&s.Amount), "1.5", `a column holds "1.5": `},
		{JSON(&s.JSON), "{", `a column holds "{": `},
	} {
		if err := test.field.Scan(test.value); err == nil || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("reading %#v: error %v, want %s…", test.value, err, test.want)
		}
	}
	if _, err := sampleTable.Scan(storedRow{}); err == nil || errors.Unwrap(err) != nil {
		t.Errorf("a row with too few columns was read: %v", err)
	}
}
