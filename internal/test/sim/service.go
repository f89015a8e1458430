package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/mail"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/config"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/mailer"
	"github.com/quittance/quittance/internal/server"
	"github.com/quittance/quittance/internal/test/simdisk"
	"github.com/quittance/quittance/internal/webhooks"
)

// euros is the currency of the second token.
const euros = "EURC"

// service is the program under test. It runs until it is stopped or killed, and can be started again on its files.
type service struct {
	world    *world
	index    int
	name     string // of the replica; empty for the first one
	address  string // where it listens
	database string // its URL
	disk     *simdisk.Disk
	runs     int
	keySteps int           // of replacing master keys
	backup   string        // a file; empty without one
	backedUp int           // keySteps of the backup
	held     chan struct{} // full while somebody stops, starts or copies the service
	changed  bool          // it runs with another configuration than at first and in the end
	// faulty is set while faults of the disk may keep the service from starting, and from stopping in order.
	faulty  bool
	healthy atomic.Int64 // the number of the run; 0 while the disk may have faults

	host  *host
	stop  context.CancelFunc
	ended chan error
}

// randomReader reads from a source of random numbers. It is safe for concurrent use.
type randomReader struct {
	mu sync.Mutex
	r  *rand.Rand
}

func (r *randomReader) Read(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var word [8]byte
	for i := range b {
		if i%8 == 0 {
			binary.LittleEndian.PutUint64(word[:], r.r.Uint64())
		}
		b[i] = word[i%8]
	}
	return len(b), nil
}

// template is a database that has only the schema.
var template string

// makeTemplate makes the template in a folder.
func makeTemplate(ctx context.Context, folder string) error {
	template = filepath.Join(folder, "template.db")
	store, err := db.Open(ctx, "sqlite:"+template)
	if err != nil {
		return err
	}
	return store.Close()
}

// newService returns a replica of the service with an empty database. Its folder stays empty with PostgreSQL.
func newService(w *world, i int, folder string) (*service, error) {
	path := filepath.Join(folder, "quittance.db")
	s := &service{world: w, index: i, held: make(chan struct{}, 1), address: fmt.Sprintf("127.0.0.1:%d", 8080+i), database: "sqlite:" + path}
	if i > 0 {
		s.name = fmt.Sprint(" ", i+1)
	}
	raw, err := os.ReadFile(template)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	if w.database != nil {
		s.database = w.database.urls[i]
	} else if err := os.WriteFile(path, raw, 0o600); err != nil {
		return nil, err
	}
	s.disk, err = simdisk.New(folder)
	return s, err
}

// start starts the service, and waits until it accepts requests.
func (s *service) start() error {
	s.runs++
	if s.healthy.Store(int64(s.runs)); s.faulty {
		s.healthy.Store(0)
	}
	r := stream(s.world.seed, fmt.Sprint("start ", s.name, s.runs))
	if s.runs > 1 && r.IntN(6) == 0 {
		s.world.setClock(r)
	}
	s.changed = s.world.changes && s.runs > 1 && time.Since(s.world.plan.began) < s.world.active
	s.host = s.world.net.host("service")
	ready := make(chan struct{})
	if s.runs > 1 && stream(s.world.seed, fmt.Sprint("keys ", s.name, s.runs)).IntN(2) == 0 {
		s.replaceMasterKey()
	}
	cfg := s.config()
	cfg.Chains = s.configure(r)
	cfg.Listeners = []*server.Listener{server.NewListener(s.host.listen(s.address), server.Address{})}
	cfg.Ready = func(string) { close(ready) }
	ctx, stop := context.WithCancel(context.Background())
	s.stop, s.ended = stop, make(chan error, 1)
	go func() { s.ended <- server.Run(ctx, cfg) }()
	select {
	case <-ready:
		s.world.log.say("operator"+s.name, "the service runs")
		return nil
	case err := <-s.ended:
		s.ended = nil
		return fmt.Errorf("the service did not start: %w", err)
	}
}

// stopNow stops the service as a signal does, if it runs.
func (s *service) stopNow() error {
	if s.ended == nil {
		return nil
	}
	s.world.log.say("operator"+s.name, "stop the service")
	s.stop()
	err := <-s.ended
	s.ended = nil
	s.host.cut()
	return err
}

// kill cuts the service off, as if its process or its machine had failed. Its disk keeps what was synced, or all.
func (s *service) kill(r *rand.Rand) {
	f := simdisk.Fault{Kind: []simdisk.Kind{simdisk.Kill, simdisk.PowerLoss}[r.IntN(2)], Seed: r.Uint64()}
	s.world.log.say("operator"+s.name, "kill the service: %s", f.Kind)
	s.disk.Stop(f)
	s.refuse(true)
	s.host.cut()
	if s.ended != nil {
		s.stop()
		s.world.log.say("operator"+s.name, "the killed service: %v", <-s.ended)
	}
	s.refuse(false)
	s.ended = nil
	s.restartDisk()
}

func (s *service) restartDisk() {
	if err := s.disk.Restart(); err != nil {
		s.world.fail("restart the disk: %v", err)
	}
}

// stopped reports whether a fault has stopped the disk.
func (s *service) stopped() bool {
	select {
	case <-s.disk.Stopped():
		return true
	default:
		return false
	}
}

// config is the configuration of the service without its chains, as serve makes it of a file.
func (s *service) config() server.Config {
	w := s.world
	random := &randomReader{r: stream(w.seed, "service "+s.name+fmt.Sprint(s.runs))}
	return server.Config{
		Database: s.database, Access: server.Access{Mode: access.Live, OperatorKey: w.operatorKey},
		AllowListDelay: w.listDelay, Keyring: s.keyring(),
		KeepEvents: config.DefaultRetention, KeepAttempts: config.DefaultRetention,
		WebhookAllow: webhooks.Loopback(), Dial: s.host.dial, OpenFiles: 4096,
		PublicURL: "http://" + s.world.services[0].address,
		SMTP:      &mailer.SMTP{Host: mailHost, Port: 25, Encryption: mailer.NoTLS, From: mail.Address{Address: "receipts@shop.example"}, Now: s.now, Dial: s.host.dial},
		Screening: w.screeningConfig(),
		Now:       s.now, Rand: random, Logger: w.log.logger("service" + s.name),
	}
}

// configured is the configuration of the chain.
func (c *worldChain) configured() server.Chain {
	conf := chain.Chain{
		Key: c.key, ID: c.id.Uint64(), Finality: c.finality, Quorum: c.quorum, CompareLogs: c.compareLogs, FullBloom: c.fullBloom,
		Tokens:         []chain.Token{{Currency: chain.USDC, Address: invoice.Address(c.token), Decimals: 6}},
		DepositFactory: invoice.Address(c.factory), AuthorizationRelay: invoice.Address(c.relay),
		Limits: c.limits, Sweep: chain.SweepPolicy{When: c.sweep},
	}
	if c.both {
		conf.Tokens = append(conf.Tokens, chain.Token{Currency: euros, Address: invoice.Address(c.other), Decimals: 6})
	}
	if c.quorum == 1 { // otherwise two nodes read every block, and the audit has no effect
		conf.AuditCallsPerMinute = auditCalls
	}
	out := server.Chain{PollInterval: c.poll, IdleInterval: c.idle}
	if c.writes {
		conf.Registry = invoice.Address(c.registry)
		out.OperatorKey = operatorKey
	}
	if c.gasless {
		out.Gasless = new(ledger.AuthorizationBudget(config.DefaultGasless()))
	}
	for _, n := range c.nodes {
		conf.RPC = append(conf.RPC, "http://"+n.address)
	}
	out.Chain = conf
	return out
}

// serve serves HTTP at an address of a host until the host is cut.
func serve(h *host, address string, to http.Handler) {
	own := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if e := recover(); e != nil && e != http.ErrAbortHandler { //nolint:errorlint // net/http compares it, too
				fmt.Fprintf(os.Stderr, "the simulator is wrong: %v\n%s", e, debug.Stack())
				os.Exit(2) //nolint:revive // net/http would hide it
			} else if e != nil {
				panic(e)
			}
		}()
		to.ServeHTTP(w, r)
	})
	s := &http.Server{Handler: own, ReadHeaderTimeout: time.Minute, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	l := h.listen(address)
	go func() {
		if err := s.Serve(l); !errors.Is(err, net.ErrClosed) {
			panic(err)
		}
	}()
}
