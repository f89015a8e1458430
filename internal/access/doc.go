// Package access holds the rules of access to the API: keys, their scopes, and the
// principal on whose behalf a request acts. It is pure.
package access
