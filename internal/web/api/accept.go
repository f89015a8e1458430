package api

import (
	"net/http"
	"strings"
)

// wantsCSV reports whether the header Accept prefers text/csv to application/json
// (RFC 9110, section 12.5.1). A header that does not parse prefers neither.
func wantsCSV(r *http.Request) bool {
	accept := strings.Join(r.Header.Values("Accept"), ",")
	return quality(accept, "text", "csv") > quality(accept, "application", "json")
}

// quality returns the weight of a media type in thousandths, which is the weight of the most specific
// range that matches.
func quality(accept, typ, subtype string) int {
	best, weight := 0, 0
	for element := range strings.SplitSeq(accept, ",") {
		name, params, _ := strings.Cut(element, ";")
		specific := 0
		switch strings.ToLower(strings.TrimSpace(name)) {
		case typ + "/" + subtype:
			specific = 3
		case typ + "/*":
			specific = 2
		case "*/*":
			specific = 1
		}
		if specific > best {
			best, weight = specific, qvalue(params)
		}
	}
	return weight
}

// qvalue returns the parameter q in thousandths: 1000 if it is absent, and 0 if it does
// not parse.
func qvalue(params string) int {
	for param := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(param), "=")
		if !strings.EqualFold(name, "q") {
			continue
		}
		whole, fraction, _ := strings.Cut(value, ".")
		if len(fraction) > 3 || strings.Trim(fraction, "0123456789") != "" || whole != "0" && (whole != "1" || strings.Trim(fraction, "0") != "") {
			return 0
		}
		if whole == "1" {
			return 1000
		}
		thousandths := 0
		for _, digit := range (fraction + "000")[:3] {
			thousandths = thousandths*10 + int(digit-'0')
		}
		return thousandths
	}
	return 1000
}
