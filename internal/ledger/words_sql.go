package ledger

import (
	"context"
	"slices"
	"strings"
	"unicode"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// Limits of the search for words.
const (
	// maxWords bounds the words of an invoice, and of a search.
	maxWords = 40
	// maxWord bounds a word, in characters. It is the limit of an e-mail address.
	maxWord = 254
	// wordsOfPrefix bounds the different words that begin with a word of a search.
	wordsOfPrefix = 20
	// wordMerchants bounds the merchants whose invoices the operator's search reads.
	wordMerchants = 50
)

// wordsOf returns the different words of a text in lower case, without their order, at most maxWords.
func wordsOf(text string) []string {
	words := strings.FieldsFunc(strings.ToLower(text), func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) && !unicode.IsMark(c) })
	for i, word := range words {
		if characters := []rune(word); len(characters) > maxWord {
			words[i] = string(characters[:maxWord])
		}
	}
	slices.Sort(words)
	words = slices.Compact(words)
	return words[:min(len(words), maxWords)]
}

var wordInsertion = db.Insertion{Table: "invoice_words", Columns: []string{"invoice_id", "merchant_id", "word"}}

// wordRows returns the rows of wordInsertion. An e-mail address is one word, and each of its parts.
func wordRows(invoices []invoice.Invoice) (rows [][]any) {
	for _, inv := range invoices {
		words := wordsOf(inv.Details.Customer.Email + " " + inv.Details.Description)
		if email := strings.ToLower(inv.Details.Customer.Email); email != "" && !slices.Contains(words, email) {
			words = append(words, email)
		}
		for _, word := range words {
			rows = append(rows, []any{inv.ID, inv.MerchantID, word})
		}
	}
	return rows
}

// invoicesOfWords returns the ids of new invoices with all words of a text, or with words that begin with them. An
// e-mail address is one word.
func invoicesOfWords(ctx context.Context, q db.Querier, text, merchantID string) ([]string, error) {
	words := wordsOf(text)
	if fields := strings.Fields(text); len(fields) == 1 && strings.Contains(text, "@") {
		words = []string{strings.ToLower(fields[0])}
	}
	if len(words) == 0 || merchantID != "" {
		return invoicesOfMerchantsWords(ctx, q, words, merchantID)
	}
	merchants, err := distinct(ctx, q, "invoice_words", "invoice_words_by_merchant_word", "merchant_id", nil, "", wordMerchants)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, m := range merchants {
		of, err := invoicesOfMerchantsWords(ctx, q, words, m)
		if err != nil {
			return nil, err
		}
		ids = append(ids, of...)
	}
	return ids, nil
}

// invoicesOfMerchantsWords reads the invoices of the word with the fewest, and leaves out those without the others.
func invoicesOfMerchantsWords(ctx context.Context, q db.Querier, words []string, merchantID string) (ids []string, err error) {
	rarest := ""
	for _, word := range words {
		found, err := invoicesOfWord(ctx, q, word, merchantID)
		if err != nil {
			return nil, err
		}
		if rarest == "" || len(found) < len(ids) {
			rarest, ids = word, found
		}
	}
	for _, word := range words {
		if word == rarest {
			continue
		}
		ids, err = db.AllIn(ctx, q, db.ScanID, "SELECT DISTINCT invoice_id FROM invoice_words WHERE word >= $1 AND word < $2 AND invoice_id IN ", ids, word, afterPrefix(word))
		if err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// invoicesOfWord returns the newest invoices of a merchant for each of the first words that begin with a word.
func invoicesOfWord(ctx context.Context, q db.Querier, word, merchantID string) (ids []string, err error) {
	words, err := distinct(ctx, q, "invoice_words", "invoice_words_by_merchant_word", "word", []any{merchantID}, word, wordsOfPrefix)
	for _, w := range words {
		found, err := db.QueryAll(ctx, q, db.ScanID, "SELECT invoice_id FROM invoice_words "+q.IndexedBy("invoice_words_by_merchant_word")+
			"WHERE merchant_id = $1 AND word = $2 ORDER BY merchant_id DESC, word DESC, invoice_id DESC LIMIT $3", merchantID, w, searchRows)
		if err != nil {
			return nil, err
		}
		ids = append(ids, found...)
	}
	slices.Sort(ids)
	return slices.Compact(ids), err
}

// afterPrefix sorts after all texts that begin with a text.
func afterPrefix(text string) string { return text + string(unicode.MaxRune) }

// distinct returns the first different values of a column that begin with a prefix. It looks each up by the index, whose
// columns are merchant_id, if a merchant is given, and then the column. The number of rows of a value makes no difference.
func distinct(ctx context.Context, q db.Querier, table, index, column string, merchant []any, prefix string, limit int) ([]string, error) {
	where := " FROM " + table + " "
	if index != "" {
		where += q.IndexedBy(index)
	}
	where += "WHERE "
	if len(merchant) > 0 {
		where += "merchant_id = $4 AND "
	}
	bound := " AND " + column + " < $2"
	return db.QueryAll(ctx, q, db.ScanID, `WITH RECURSIVE listed (n, value) AS (
		SELECT 1, (SELECT min(`+column+`)`+where+column+` >= $1`+bound+`)
		UNION ALL
		SELECT n + 1, (SELECT min(`+column+`)`+where+column+` > listed.value`+bound+`) FROM listed WHERE n < $3 AND value IS NOT NULL)
		SELECT value FROM listed WHERE value IS NOT NULL`, append([]any{prefix, afterPrefix(prefix), limit}, merchant...)...)
}
