package clientip

import "strings"

// forwardedFor returns the parameter "for" of each element of a Forwarded header
// (RFC 7239, section 4). An element that lacks it, has two or is malformed gives an
// empty text. An unterminated quoted string makes everything from its element on one
// malformed element.
func forwardedFor(header string) (hops []string) {
	for rest, more := header, true; more; {
		var hop string
		hop, rest, more = forwardedElement(rest)
		hops = append(hops, hop)
	}
	return hops
}

// forwardedElement returns the parameter "for" of the first element of a list, and the
// elements after it.
func forwardedElement(list string) (hop, rest string, more bool) {
	var seen, bad bool
	for {
		name, value, tail, ok := forwardedPair(list)
		if !ok {
			return "", "", false
		}
		if strings.EqualFold(name, "for") {
			bad = bad || seen
			hop, seen = value, true
		}
		if bad {
			hop = ""
		}
		if tail == "" {
			return hop, "", false
		}
		list = tail[1:]
		if tail[0] == ',' {
			return hop, list, true
		}
	}
}

// forwardedPair returns the first name and value, and what follows them, which begins
// with ';' or ',' or is empty. ok is false if a quoted string does not end.
func forwardedPair(text string) (name, value, tail string, ok bool) {
	end := strings.IndexAny(text, "=;,")
	if end < 0 {
		return "", "", "", true
	}
	if text[end] != '=' {
		return "", "", text[end:], true
	}
	name, text = strings.TrimSpace(text[:end]), text[end+1:]
	if strings.HasPrefix(text, `"`) {
		if value, text, ok = quotedString(text[1:]); !ok {
			return "", "", "", false
		}
	}
	end = strings.IndexAny(text, ";,")
	if end < 0 {
		end = len(text)
	}
	return name, value + strings.TrimSpace(text[:end]), text[end:], true
}

// quotedString returns the value of a quoted string (RFC 9110, section 5.6.4) whose
// first quote was cut off, and what follows its last.
func quotedString(text string) (value, rest string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			return b.String(), text[i+1:], true
		case '\\':
			if i++; i == len(text) {
				return "", "", false
			}
		}
		b.WriteByte(text[i])
	}
	return "", "", false
}
