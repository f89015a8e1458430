// Package repotest has the tests about the repository as a whole: its names and comments, its
// documents, and its generated files.
package repotest
