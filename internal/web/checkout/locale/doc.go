// Package locale holds the texts of the checkout's pages, one file per language.
//
// To add a text, add its id to every file of this folder: English decides the placeholders and whether the text has
// plural forms; the other languages write the forms that the language has (zero, one, two, few, many, other). The
// number that decides the form is always the placeholder Count. A text is used by its id, written out, as
//
//	text.T("status.paid.headline", nil)                              // in Go, without markup
//	text.HTML("status.paid.text", locale.Values{"Time": text.Time(at)}) // in Go, for a page
//	{{t "pay.send.only" "Currency" .Currency "Network" .Network}}    // in a template
//
// Ids that begin with "script." are also in the page, as JSON in the element with the id "texts". A script replaces
// their placeholders itself; the modules of internal/web/checkout/web write t("wallet.pay") for "script.wallet.pay".
//
// To add a language, add a file that is named by its BCP 47 tag, with every id of en.json. The tests name the ids and
// plural forms that are missing. Nothing else has to be changed: the menu and the negotiation know every file.
package locale
