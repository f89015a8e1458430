package access

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// Holding records that a merchant holds an address: its invoices may settle to the address, and it
// sees the unattributed payments that the address receives. An address is held by one merchant that
// claimed it, or by all to which the operator granted it, until the operator takes it back.
type Holding struct {
	Address    invoice.Address
	MerchantID string
}

// compare orders holdings. Transactions insert them in this order, which avoids deadlocks.
func (h Holding) compare(o Holding) int {
	return cmp.Or(bytes.Compare(h.Address[:], o.Address[:]), cmp.Compare(h.MerchantID, o.MerchantID))
}

const (
	grantedTo = "address_grants WHERE address = wanted_address AND merchant_id = holder"
	heldBy    = "held_addresses h WHERE h.address = wanted_address AND (h.sole_holder = holder OR EXISTS (SELECT 1 FROM " + grantedTo + "))"
)

// SendSettled asks whether merchants can have invoices at addresses without another row: the settlement addresses are
// recorded, none is a deposit address, ClaimAddresses would find the claims, and GrantAddresses the grants. settled
// answers after the next Flush.
func SendSettled(ctx context.Context, tx *db.Tx, claims, grants []SettlementAddress) (settled func() bool, err error) {
	claimed, err := sendSettled(ctx, tx, claims, heldBy)
	if err != nil {
		return nil, err
	}
	granted, err := sendSettled(ctx, tx, grants, grantedTo)
	return func() bool { return *claimed == len(claims) && *granted == len(grants) }, err
}

// sendSettled counts the addresses that have a row with the merchant.
func sendSettled(ctx context.Context, tx *db.Tx, all []SettlementAddress, tableAndConditions string) (count *int, err error) {
	rows := db.Each(all, func(s SettlementAddress) []any { return []any{s.Address.String(), s.MerchantID, s.ChainKey} })
	return tx.SendCountExisting(ctx, append(holdingColumns[:2:2], "chain"), rows, "settlement_addresses AS settled WHERE settled.chain_key = chain AND "+
		"settled.address = wanted_address AND settled.merchant_id = holder AND EXISTS (SELECT 1 FROM "+tableAndConditions+" LIMIT 1 OFFSET 0) AND "+
		"NOT EXISTS (SELECT 1 FROM deposits WHERE deposits.address = wanted_address LIMIT 1 OFFSET 0)")
}

// ClaimAddresses makes the merchants hold addresses that no merchant held, and returns the holdings that other
// merchants prevent. Of two transactions that claim one address, the second waits for the first.
func ClaimAddresses(ctx context.Context, tx *db.Tx, claims []Holding, now time.Time) (refused []Holding, err error) {
	claims = sortedHoldings(claims)
	missing, err := lackingHoldings(ctx, tx, claims, heldBy)
	if err != nil || len(missing) == 0 {
		return nil, err
	}
	first := slices.CompactFunc(slices.Clone(missing), func(a, b Holding) bool { return a.Address == b.Address })
	if err := insertHolders(ctx, tx, first, now); err != nil {
		return nil, err
	}
	rows := db.Each(first, func(h Holding) []any {
		return []any{h.Address.String(), h.MerchantID, invoice.UnixSeconds(now)}
	})
	err = tx.Insert(ctx, db.Insertion{Table: "held_addresses", Columns: []string{"address", "sole_holder", "created_at"}, Conflict: "ON CONFLICT DO NOTHING"}, rows)
	if err != nil {
		return nil, err
	}
	return lackingHoldings(ctx, tx, missing, heldBy)
}

// GrantAddresses grants the addresses to the merchants. It returns the new grants, and the holdings
// that other merchants lose because they had only claimed the addresses; these merchants no longer see
// the unattributed payments to the addresses.
func GrantAddresses(ctx context.Context, tx *db.Tx, grants []Holding, now time.Time) (granted, lost []Holding, err error) {
	missing, err := lackingHoldings(ctx, tx, sortedHoldings(grants), grantedTo)
	if err != nil || len(missing) == 0 {
		return nil, nil, err
	}
	if err := insertHolders(ctx, tx, missing, now); err != nil {
		return nil, nil, err
	}
	var addresses []string
	var held, rows [][]any
	for _, h := range missing {
		text := h.Address.String()
		rows = append(rows, []any{text, h.MerchantID, invoice.UnixSeconds(now)})
		if n := len(addresses); n == 0 || addresses[n-1] != text {
			addresses = append(addresses, text)
			held = append(held, []any{text, invoice.UnixSeconds(now)})
		}
	}
	if err := tx.Insert(ctx, db.Insertion{Table: "held_addresses", Columns: []string{"address", "created_at"}, Conflict: "ON CONFLICT DO NOTHING"}, held); err != nil {
		return nil, nil, err
	}
	if lost, err = endClaims(ctx, tx, addresses); err != nil {
		return nil, nil, err
	}
	err = tx.Insert(ctx, db.Insertion{Table: "address_grants", Columns: []string{"address", "merchant_id", "created_at"}, Conflict: "ON CONFLICT DO NOTHING"}, rows)
	if err != nil {
		return nil, nil, err
	}
	lost = slices.DeleteFunc(lost, func(h Holding) bool { return slices.Contains(missing, h) })
	for _, h := range lost {
		if err := hideUnattributed(ctx, tx, h); err != nil {
			return nil, nil, err
		}
	}
	return missing, lost, nil
}

// hideUnattributed hides the unattributed payments to an address from a merchant.
func hideUnattributed(ctx context.Context, tx *db.Tx, h Holding) error {
	_, err := tx.Exec(ctx, `DELETE FROM unattributed WHERE merchant_id = $1 AND seen_id IN (
		SELECT seen_id FROM payments WHERE to_address = $2 AND invoice_id IS NULL)`, h.MerchantID, h.Address.String())
	return db.During("end the holding of an address", err)
}

// ReleaseAddress ends a holding, a claim or a grant, and hides the address's unattributed payments from the merchant.
// It returns ErrNotFound if the merchant does not hold the address. An address without a holder cannot be claimed, only
// granted: otherwise the merchant's next create would claim it again.
func ReleaseAddress(ctx context.Context, tx *db.Tx, h Holding) error {
	if err := lockHoldings(ctx, tx, []Holding{h}); err != nil {
		return err
	}
	var ended int64
	for _, statement := range []string{
		"UPDATE held_addresses SET sole_holder = NULL WHERE address = $1 AND sole_holder = $2",
		"DELETE FROM address_grants WHERE address = $1 AND merchant_id = $2",
	} {
		n, err := tx.Exec(ctx, statement, h.Address.String(), h.MerchantID)
		if err != nil {
			return fmt.Errorf("release an address: %w", err)
		}
		ended += n
	}
	if ended == 0 {
		return fmt.Errorf("release the address %s: %w", h.Address, db.ErrNotFound)
	}
	return hideUnattributed(ctx, tx, h)
}

// lockHoldings locks the addresses of holdings until the transaction ends.
func lockHoldings(ctx context.Context, tx *db.Tx, all []Holding) error {
	var addresses []string
	for _, h := range sortedHoldings(all) {
		addresses = append(addresses, h.Address.String())
	}
	_, err := db.QueryIn(addresses, func(chunk []any) ([]string, error) {
		return db.QueryAll(ctx, tx, db.ScanID, "SELECT address FROM held_addresses WHERE address IN "+
			db.ParameterList(0, len(chunk))+" ORDER BY address"+tx.ForUpdate(), chunk...)
	})
	return db.During("lock addresses", err)
}

// endClaims ends the claims to the addresses, and returns the claims that it ended.
func endClaims(ctx context.Context, tx *db.Tx, addresses []string) ([]Holding, error) {
	ended, err := db.QueryIn(addresses, func(chunk []any) ([]Holding, error) {
		return db.QueryAll(ctx, tx, db.Fields(func(h *Holding) []any {
			return []any{db.Address(&h.Address), &h.MerchantID}
		}), "SELECT address, sole_holder FROM held_addresses WHERE sole_holder IS NOT NULL AND address IN "+
			db.ParameterList(0, len(chunk))+" ORDER BY address"+tx.ForUpdate(), chunk...)
	})
	if err != nil || len(ended) == 0 {
		return nil, err
	}
	return ended, db.SendIn(ctx, tx, "UPDATE held_addresses SET sole_holder = NULL WHERE address IN ", addresses)
}

// insertHolders inserts the merchants of holdings, unless they exist.
func insertHolders(ctx context.Context, tx *db.Tx, holdings []Holding, now time.Time) error {
	var ids []string
	for _, h := range holdings {
		ids = append(ids, h.MerchantID)
	}
	return InsertMerchants(ctx, tx, ids, now)
}

// holdingColumns name the columns of holdingRows.
var holdingColumns = []string{"wanted_address", "holder"}

func holdingRows(all []Holding) [][]any {
	rows := db.Each(all, func(h Holding) []any { return []any{h.Address.String(), h.MerchantID} })
	return rows
}

// lackingHoldings returns the holdings for which no row exists.
func lackingHoldings(ctx context.Context, q db.Querier, all []Holding, tableAndConditions string) ([]Holding, error) {
	found, err := q.WhichExist(ctx, holdingColumns, holdingRows(all), tableAndConditions)
	exists := make(map[int]bool, len(found))
	for _, n := range found {
		exists[n] = true
	}
	var lacking []Holding
	for i, h := range all {
		if !exists[i] {
			lacking = append(lacking, h)
		}
	}
	return lacking, err
}

// sortedHoldings returns the holdings in order, each once.
func sortedHoldings(all []Holding) []Holding {
	return slices.Compact(slices.SortedFunc(slices.Values(all), Holding.compare))
}

// InsertUnattributed adds payments without an invoice, by their SeenID, to the unattributed payments of the merchants
// that hold the settlement address which received them, if their invoices named it on that chain. It locks the address,
// so that a merchant that loses it keeps no payments. Payments to a deposit address are added for its merchant.
func InsertUnattributed(ctx context.Context, tx *db.Tx, seen []string) error {
	return db.InBatches(seen, "", func(part []string) error {
		if tx.OnPostgres() { // a separate statement, so that the next one sees earlier commits
			err := tx.Send(ctx, nil, `SELECT address FROM held_addresses WHERE address IN (
				SELECT to_address FROM payments WHERE seen_id IN `+db.ParameterList(0, len(part))+") ORDER BY address FOR SHARE", db.ToAny(part)...)
			if err != nil {
				return err
			}
		}
		err := tx.Send(ctx, nil, `INSERT INTO unattributed (seen_id, merchant_id, chain_key)
			SELECT payments.seen_id, settled.merchant_id, payments.chain_key
			FROM payments JOIN settlement_addresses AS settled ON settled.chain_key = payments.chain_key AND settled.address = payments.to_address
			JOIN held_addresses AS held ON held.address = settled.address
			WHERE (held.sole_holder = settled.merchant_id OR EXISTS (
				SELECT 1 FROM address_grants AS granted WHERE granted.address = held.address AND granted.merchant_id = settled.merchant_id))
			AND payments.seen_id IN `+db.ParameterList(0, len(part)), db.ToAny(part)...)
		if err != nil {
			return err
		}
		return tx.Send(ctx, nil, `INSERT INTO unattributed (seen_id, merchant_id, chain_key)
			SELECT payments.seen_id, invoices.merchant_id, payments.chain_key FROM payments JOIN invoices ON invoices.id = payments.deposit_of
			WHERE payments.seen_id IN `+db.ParameterList(0, len(part)), db.ToAny(part)...)
	})
}
