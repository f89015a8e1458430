package api

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/quittance/quittance/internal/invoice"
)

// details reads the details of a new invoice.
func details(o object, dst *invoice.Details) error {
	change, err := detailsChange(o, false)
	if err == nil {
		*dst = dst.Change(change)
	}
	return err
}

// detailsChange reads the members of an invoice's details. With removable, null removes a value, as in RFC 7396.
func detailsChange(o object, removable bool) (c invoice.DetailsChange, err error) {
	m := memberReader{removable}
	err = cmp.Or(
		m.text(o, "", "reference", &c.Reference),
		m.uniqueReference(o, &c.UniqueReference),
		m.metadata(o, &c),
		m.customer(o, &c),
		m.text(o, "", "description", &c.Description),
		m.text(o, "", "returnUrl", &c.ReturnURL),
		m.text(o, "", "cancelUrl", &c.CancelURL),
	)
	return c, err
}

// memberReader reads optional members.
type memberReader struct{ removable bool }

// removes reports whether the member is null and null removes it.
func (m memberReader) removes(o object, name string) bool {
	v, ok := o[name]
	return ok && v == nil && m.removable
}

// text reads a text that is not empty. A pointer to an empty text removes it.
func (m memberReader) text(o object, path, name string, dst **string) error {
	if m.removes(o, name) {
		*dst = new(string)
		return nil
	}
	return optional(o, name, func(string) error {
		*dst = new(string)
		if err := text(o, path, name, *dst, asIs); err != nil {
			return err
		}
		switch {
		case **dst != "":
			return nil
		case m.removable:
			return invalidField(path+name, "must not be empty; null removes it")
		}
		return invalidField(path+name, "must not be empty; leave it out")
	})
}

func (m memberReader) uniqueReference(o object, dst **bool) error {
	return optional(o, "uniqueReference", func(name string) error {
		*dst = new(bool)
		return boolean(o, name, *dst)
	})
}

func (m memberReader) customer(o object, c *invoice.DetailsChange) error {
	const name = "customer"
	if m.removes(o, name) {
		c.CustomerID, c.CustomerEmail = new(string), new(string)
		return nil
	}
	return optional(o, name, func(string) error {
		customer, err := o.object("", name)
		if err != nil {
			return err
		}
		return cmp.Or(m.text(customer, name+".", "id", &c.CustomerID), m.text(customer, name+".", "email", &c.CustomerEmail))
	})
}

func (m memberReader) metadata(o object, c *invoice.DetailsChange) error {
	const name = "metadata"
	if m.removes(o, name) {
		c.NoMetadata = true
		return nil
	}
	return optional(o, name, func(string) error {
		pairs, err := o.object("", name)
		if err != nil {
			return err
		}
		c.Metadata = make(map[string]*string, len(pairs))
		for _, key := range slices.Sorted(maps.Keys(pairs)) {
			if m.removes(pairs, key) {
				c.Metadata[key] = nil
				continue
			}
			value, ok := pairs[key].(string)
			if !ok {
				return invalidField(fmt.Sprintf("%s[%.40s]", name, key), "must be a string; it is %s", kind(pairs[key]))
			}
			c.Metadata[key] = &value
		}
		return nil
	})
}

// texts reads an array of strings into dst, which is unchanged if the array is absent. It does not check the texts.
func texts[T ~string](o object, name string, dst *[]T) error {
	return array(o, name, dst, func(path string, element any, to *T) error {
		text, ok := element.(string)
		if *to = T(text); !ok {
			return invalidField(path, "must be a string; it is %s", kind(element))
		}
		return nil
	})
}
