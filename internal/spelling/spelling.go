// Package spelling finds the known name that a misspelt one was meant to be.
package spelling

import "strings"

// maxLetters bounds the compared letters of a name.
const maxLetters = 40

// Nearest returns the known name that is most similar to a name, or "" if all differ too much. Case
// and punctuation do not count, so that created_after is createdAfter.
func Nearest(name string, known []string) string {
	plain := letters(name)
	best, found := 1+min(2, len(plain)/3), "" // a longer name may have more typing errors
	for _, k := range known {
		if d := editDistance(plain, letters(k)); d < best {
			best, found = d, k
		}
	}
	return found
}

// Hint returns text that continues an error about an unknown name: the nearest known name, else all known ones, if there
// are few. It is "" if there is nothing to suggest.
func Hint(name string, known []string) string {
	const few = 10
	switch similar := Nearest(name, known); {
	case similar != "":
		return DidYouMean(similar)
	case len(known) > 0 && len(known) <= few:
		return "; want " + strings.Join(known, ", ")
	}
	return ""
}

// DidYouMean returns text that continues an error about an unknown name with the name that may be meant.
func DidYouMean(name string) string { return "; did you mean " + name + "?" }

// letters returns the first ASCII letters and digits of a name, in lower case.
func letters(name string) string {
	plain := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(name))
	return plain[:min(len(plain), maxLetters)]
}

// editDistance returns the least number of inserted, deleted and replaced bytes, and of exchanges of two neighbours,
// that makes a into b.
func editDistance(a, b string) int {
	var before []int // the row of a without its last two bytes
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			replaced := last[j]
			if a[i] != b[j] {
				replaced++
			}
			row[j+1] = min(replaced, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
