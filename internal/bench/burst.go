package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/jackc/pgx/v5"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/chain"
)

const (
	// burst is how many payments one block holds, and bursts how many such blocks are measured.
	burst, bursts = 500, 5
	// burstPoll is the interval at which the API is asked for the newest payment. Asking takes CPU time
	// of the server and the database.
	burstPoll = 5 * time.Millisecond
	// burstAim is the aim on PostgreSQL.
	burstAim = 150 * time.Millisecond
)

// measureBurst measures the time from the sealing of a block with many payments
// until the API lists them all. The ceiling is a bare loop that reads the same from the node,
// and copies rows like the block's payments and events into tables with the same indexes.
func (b *bench) measureBurst(ctx context.Context, kind string) (err error) {
	database, err := b.url(ctx, kind, "burst")
	if err != nil {
		return err
	}
	w, err := b.start(ctx, serverConfig{Database: database})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	var stored, copied []time.Duration
	for n := range bursts {
		took, err := w.burst(ctx, 1_000_000*(n+1))
		if err != nil {
			return err
		}
		stored = append(stored, took)
		if took, err = w.bareBurst(ctx, database); err != nil {
			return fmt.Errorf("bare loop: %w", err)
		}
		copied = append(copied, took)
	}
	figure, ceiling := quantile(stored, 0.5), quantile(copied, 0.5)
	note := fmt.Sprintf("ceiling: a bare loop that reads and copies the same; medians of %d, %v to %v and %v to %v", bursts,
		quantile(stored, 0), quantile(stored, 1), quantile(copied, 0), quantile(copied, 1))
	if kind != "sqlite" {
		note += fmt.Sprintf("; aim %v", burstAim)
	}
	b.report.slower(kind, fmt.Sprintf("block of %d payments sealed to all listed", burst), figure, ceiling, note)
	return nil
}

// burst pays many new invoices of a price in one block, and returns how long after its sealing the API
// lists all payments.
func (w *world) burst(ctx context.Context, price int) (time.Duration, error) {
	ids := make(map[string]bool, burst)
	for range burst {
		made, err := w.requestOf(ctx, price)
		if err != nil {
			return 0, err
		}
		if err := w.pay(ctx, made); err != nil {
			return 0, err
		}
		ids[made.ID] = true
	}
	sealed, err := seal(ctx, w.node)
	if err != nil {
		return 0, err
	}
	// The newest is asked for first, since reading all of them again and again takes CPU time.
	wanted := func(p apitypes.Payment) bool { return ids[p.InvoiceID] }
	if err := w.shows(ctx, burstPoll, 1, wanted); err != nil {
		return 0, err
	}
	err = w.shows(ctx, burstPoll, burst, wanted)
	return time.Since(sealed), err
}

// bareTables are the tables of which a block's rows are copied, and how to find the newest.
var bareTables = map[string]string{"payments": "seen_id", "events": "seq"}

// bareBurst reads the newest block from the node as the service does, copies as many payments and
// events as it has, without any rules, and returns how long that took.
func (w *world) bareBurst(ctx context.Context, database string) (took time.Duration, err error) {
	copyRows, end, err := prepareCopies(ctx, database)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, end()) }()
	node, err := rpc.DialContext(ctx, w.node.WSURL())
	if err != nil {
		return 0, err
	}
	defer node.Close()
	began := time.Now()
	eth := ethclient.NewClient(node)
	head, err := eth.HeaderByNumber(ctx, nil)
	if err != nil {
		return 0, err
	}
	logs, err := eth.FilterLogs(ctx, ethereum.FilterQuery{FromBlock: head.Number, ToBlock: head.Number, Topics: [][]common.Hash{{chain.TransferTopic}}})
	if err != nil {
		return 0, err
	}
	if len(logs) != burst {
		return 0, fmt.Errorf("the block has %d transfers, want %d", len(logs), burst)
	}
	if _, err := eth.BlockReceipts(ctx, rpc.BlockNumberOrHashWithHash(head.Hash(), false)); err != nil {
		return 0, err
	}
	if _, err := eth.BlockByHash(ctx, head.Hash()); err != nil { // with its transactions
		return 0, err
	}
	err = copyRows()
	return time.Since(began), err
}

// prepareCopies reads the newest rows of bareTables and makes empty tables like them, on PostgreSQL
// with the same indexes. The first function that it returns copies the rows in one transaction: by
// COPY, or on SQLite by an INSERT from the table itself.
func prepareCopies(ctx context.Context, database string) (copyRows, end func() error, err error) {
	if strings.HasPrefix(database, "sqlite:") {
		var inserts strings.Builder
		for table, key := range bareTables {
			if err := execute(ctx, database, fmt.Sprintf("CREATE TABLE IF NOT EXISTS bare_%[1]s AS SELECT * FROM %[1]s LIMIT 0", table)); err != nil {
				return nil, nil, err
			}
			fmt.Fprintf(&inserts, "INSERT INTO bare_%[1]s SELECT * FROM %[1]s ORDER BY %[2]s DESC LIMIT %[3]d;", table, key, burst)
		}
		return func() error { return execute(ctx, database, "BEGIN IMMEDIATE;"+inserts.String()+"COMMIT") }, func() error { return nil }, nil
	}
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		return nil, nil, err
	}
	end = func() error { return conn.Close(ctx) }
	columns, rows := make(map[string][]string), make(map[string][][]any)
	for table, key := range bareTables {
		if columns[table], rows[table], err = newestRows(ctx, conn, table, key); err != nil {
			return nil, nil, errors.Join(err, end())
		}
	}
	return func() error {
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			for table := range bareTables {
				if _, err := tx.CopyFrom(ctx, pgx.Identifier{"bare_" + table}, columns[table], pgx.CopyFromRows(rows[table])); err != nil {
					return err
				}
			}
			return nil
		})
	}, end, nil
}

// newestRows makes an empty table like another one, and returns the newest rows of that.
func newestRows(ctx context.Context, conn *pgx.Conn, table, key string) (columns []string, all [][]any, err error) {
	if _, err := conn.Exec(ctx, fmt.Sprintf("DROP TABLE IF EXISTS bare_%[1]s; CREATE TABLE bare_%[1]s (LIKE %[1]s INCLUDING INDEXES)", table)); err != nil {
		return nil, nil, err
	}
	rows, err := conn.Query(ctx, fmt.Sprintf("SELECT * FROM %s ORDER BY %s DESC LIMIT %d", table, key, burst))
	if err != nil {
		return nil, nil, err
	}
	for _, f := range rows.FieldDescriptions() {
		columns = append(columns, f.Name)
	}
	all, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) ([]any, error) { return row.Values() })
	return columns, all, err
}
