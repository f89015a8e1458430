package webhook

import (
	"errors"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// decimal is the grammar that Verify documents for t, written differently from the code.
var decimal = regexp.MustCompile(`^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$`)

func FuzzParse(f *testing.F) {
	for _, header := range []string{
		"", " ", "t=1,v1=ab", "v1=ab, t=1.5e3", "t=1,t=2,v1=ab", "t=1,v1=ab,v1=cd", "t=1,v1=", "t=inf,v1=a", "t=0x1p4,v1=a", "t=1e400,v1=a",
		"t=1_0,v1=a", "t=.,v1=a", "t=+.5e-3,v1=a,b=c", "t=1,v1=a,", "t=1,v1=a=b", "=,=", strings.Repeat("t", MaxHeader+1),
	} {
		f.Add(header)
	}
	f.Fuzz(func(t *testing.T, header string) {
		sig, err := parse(header)
		if err != nil {
			if !reflect.DeepEqual(sig, signature{}) {
				t.Errorf("parse gave both %+v and %v", sig, err)
			}
			if !errors.Is(err, ErrMissingHeader) && !errors.Is(err, ErrMalformedHeader) {
				t.Errorf("got %v, want missing_header or malformed_header", err)
			}
			return
		}
		if !decimal.MatchString(sig.timestamp) || math.IsInf(sig.seconds, 0) || math.IsNaN(sig.seconds) {
			t.Errorf("t=%q passed for the number %v", sig.timestamp, sig.seconds)
		}
		if len(sig.digests) == 0 || slices.ContainsFunc(sig.digests, func(d string) bool { return d == "" || strings.Contains(d, ",") }) {
			t.Errorf("v1=%q passed", sig.digests)
		}
		again, err := parse("t=" + sig.timestamp + ",v1=" + strings.Join(sig.digests, ",v1="))
		if err != nil || !reflect.DeepEqual(again, sig) {
			t.Errorf("written anew it reads %+v, %v; want %+v", again, err, sig)
		}
	})
}

func FuzzFinite(f *testing.F) {
	for _, text := range []string{"1700000000", "+1", "-1.", ".5e3", "1e308", "1e309", "1e-999", "nan", "e", "--1", "1e"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		number, ok := finite(text)
		if ok && (math.IsInf(number, 0) || math.IsNaN(number)) {
			t.Errorf("finite(%q) = %v", text, number)
		}
		if matches := decimal.MatchString(text); ok && !matches || !ok && matches && !math.IsInf(number, 0) {
			t.Errorf("finite(%q) = %v, %v, but the grammar says %v", text, number, ok, matches)
		}
	})
}

func FuzzVerify(f *testing.F) {
	now := time.Unix(1_700_000_000, 0)
	f.Add("k", Sign("k", now, []byte("{}")), []byte("{}"), now.Unix())
	f.Add("k", "t=1.7e9,v1="+digest("k", "1.7e9", nil), []byte{}, now.Unix())
	f.Add("", "t=1700000000,v1="+digest("", "1700000000", nil), []byte{}, now.Unix())
	f.Add("k", "t=1700000000", []byte("{}"), int64(math.MaxInt64))
	f.Add("k", "t=1e308,v1=ab", []byte("{}"), int64(math.MinInt64))
	f.Fuzz(func(t *testing.T, secret, header string, body []byte, now int64) {
		err := Verify(secret, header, body, time.Unix(now, 0))
		var refused *Error
		if err != nil && !errors.As(err, &refused) {
			t.Fatalf("got %v (%T), want a *webhook.Error", err, err)
		}
		sig, parseErr := parse(header)
		if parseErr != nil {
			if !errors.Is(err, parseErr) {
				t.Errorf("got %v, want %v", err, parseErr)
			}
			return
		}
		fresh := math.Abs(float64(time.Unix(now, 0).Unix())-sig.seconds) <= 300
		good := secret != "" && slices.Contains(sig.digests, digest(secret, sig.timestamp, body))
		switch {
		case !fresh && !errors.Is(err, ErrStaleTimestamp):
			t.Errorf("got %v, want stale_timestamp", err)
		case fresh && !good && !errors.Is(err, ErrBadSignature):
			t.Errorf("got %v, want bad_signature", err)
		case fresh && good && err != nil:
			t.Errorf("got %v, want none", err)
		}
	})
}
