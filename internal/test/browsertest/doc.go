// Package browsertest opens pages of the service in Debian's chromium, with wallets that a test controls. A development
// world runs in the test's process.
//
// One chromium serves all tests of a package. Its TestMain calls Main. Each page has separate storage, except pages
// that OpenBeside opens.
package browsertest
