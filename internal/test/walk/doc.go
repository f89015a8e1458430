// Package walk walks through the product as four kinds of people do, with the built program and a browser: a merchant's
// developer, an operator, payers and an accountant. `make walk` runs it.
//
// A person knows only what pages, terminals and documents show. A value that is needed and not found there is a guess. A
// page or an answer that offers no next step is a dead end, which fails the walk. Steps are clicks, fields and commands.
package walk
