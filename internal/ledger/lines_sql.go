package ledger

import (
	"encoding/json"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// storedLine is the JSON of a line item in the column line_items.
type storedLine struct {
	Label  string `json:"label"`
	Amount string `json:"amount"`
}

func parseLines(text string) ([]invoice.LineItem, error) {
	var stored []storedLine
	if err := json.Unmarshal([]byte(text), &stored); err != nil {
		return nil, err
	}
	lines := make([]invoice.LineItem, len(stored))
	for i, l := range stored {
		amount, err := invoice.ParseAmount(l.Amount)
		if err != nil {
			return nil, err
		}
		lines[i] = invoice.LineItem{Label: l.Label, Amount: amount}
	}
	return lines, nil
}

func linesText(lines []invoice.LineItem) string {
	stored := db.Each(lines, func(l invoice.LineItem) storedLine {
		return storedLine{Label: l.Label, Amount: l.Amount.String()}
	})
	return db.JSONText(stored)
}
