package locale

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/language"
)

// Limits of the parsed part of a list of languages.
const (
	maxWanted = 20 // languages
	maxTag    = 35 // bytes of each; RFC 5646 finds that enough
)

// For returns the texts in the language of a request: its parameter lang, else the best match of its
// header Accept-Language, else English.
func (c *Catalogue) For(r *http.Request) *Text {
	for _, list := range []string{r.URL.Query().Get("lang"), r.Header.Get("Accept-Language")} {
		if _, index, confidence := c.matcher.Match(wanted(list)...); confidence != language.No {
			return c.languages[index]
		}
	}
	return c.English()
}

// wanted returns the languages of a list in the format of Accept-Language, the most wanted first. It
// leaves out unknown languages: a browser may list one that is newer than this program.
func wanted(list string) []language.Tag {
	type weighted struct {
		tag    language.Tag
		weight float64
	}
	var all []weighted
	for entry := range strings.SplitSeq(list, ",") {
		name, parameter, _ := strings.Cut(entry, ";")
		if name = strings.TrimSpace(name); len(name) > maxTag {
			continue
		}
		tag, err := language.Parse(name)
		if w := weight(parameter); err == nil && w > 0 {
			all = append(all, weighted{tag, w})
		}
		if len(all) == maxWanted {
			break
		}
	}
	slices.SortStableFunc(all, func(a, b weighted) int { return cmp.Compare(b.weight, a.weight) })
	tags := make([]language.Tag, len(all))
	for i, w := range all {
		tags[i] = w.tag
	}
	return tags
}

// weight returns the weight of a parameter such as q=0.8: 1 without one, and 0 if it is malformed.
func weight(parameter string) float64 {
	value, found := strings.CutPrefix(strings.ToLower(strings.ReplaceAll(parameter, " ", "")), "q=")
	if !found {
		return 1
	}
	w, err := strconv.ParseFloat(value, 64)
	if err != nil || w > 1 { // NaN compares false
		return 0
	}
	return w
}
