package server

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/config"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/identity"
	"github.com/quittance/quittance/internal/indexer"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/mailer"
	"github.com/quittance/quittance/internal/screening"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/testdeps"
	"github.com/quittance/quittance/internal/web/api"
	"github.com/quittance/quittance/internal/web/checkout"
	"github.com/quittance/quittance/internal/web/dashboard"
	"github.com/quittance/quittance/internal/web/webpage"
	"github.com/quittance/quittance/internal/webhooks"
	"github.com/quittance/quittance/internal/x402"
)

const day = 24 * time.Hour

// limitRows returns the first two cells of each row of the table of limits, without the
// commas, as the constants give them.
func limitRows() []string {
	seconds := func(d time.Duration) int { return int(d / time.Second) }
	row := fmt.Sprintf
	return []string{
		row("`owner` | %d requests a second %d at once (`limits.perOwner`)", config.DefaultPerOwner, config.DefaultPerOwner*seconds(ownerWindow)),
		row("`address` | %d requests a second %d at once (`limits.perAddress`)", config.DefaultPerAddress, config.DefaultPerAddress*seconds(addressWindow)),
		row("`authentication` | %d wrong keys a second %d at once", maxRefusals/seconds(refusalWindow), maxRefusals),
		row("`lookup` | %d wrong keys cookies and links that sign in a second %d at once; besides %d a second %d at once that come again after %d s",
			maxLookups/seconds(lookupWindow), maxLookups, maxRepeated/seconds(repeatedWindow), maxRepeated, seconds(retryPause)),
		row("`in_flight` | requests whose body has arrived: public %d api %d operator %d", maxInFlight[webpage.PublicDoor], maxInFlight[webpage.APIDoor], maxInFlight[webpage.OperatorDoor]),
		row("`bodies` | memory for bodies: public %d MiB api %d MiB operator %d MiB; a request with a body counts %d KiB and its declared length or else the most that it may have",
			maxBodyBytes[webpage.PublicDoor]>>20, maxBodyBytes[webpage.APIDoor]>>20, maxBodyBytes[webpage.OperatorDoor]>>20, requestCost>>10),
		row("`requests` | as many as connections; over HTTP/2 %d of a connection with %d KiB that were not read yet and %d KiB of each",
			streamsOfConnection, maxUnreadConnection>>10, maxUnreadStream>>10),
		row("streams of events requests that wait | %d for each owner of keys %d in all; a write %d s and %d KiB or one event",
			api.MaxOwnWaiting, api.MaxWaiting, seconds(webpage.ChunkTimeout), webhooks.MaxNext>>10),
		row("a stream of deliveries whose process was killed | %d s until a redelivery is no longer accepted for it", seconds(listenerTime)),
		row("`wait` | %d s", api.MaxWait),
		row("pings of endpoints | %d for each owner of keys %d in all", api.MaxOwnPings, api.MaxPings),
		row("settlements by x402 being made | %d for each owner of keys %d in all", api.MaxOwnSettling, api.MaxSettling),
		row("settlement reports being made | %d for each owner of keys %d in all; a period of %d days; %d minutes",
			api.MaxOwnReports, api.MaxReports, api.MaxReportPeriod/day, api.ReportTimeout/time.Minute),
		row("a verification of the audit log | %d minutes; counts as a settlement report", api.VerifyTimeout/time.Minute),
		row("exports as CSV | %d for each owner of keys %d in all; a write %d s; %d customers that a text finds", api.MaxOwnExports, api.MaxExports, seconds(webpage.ChunkTimeout), api.MaxFoundCustomers),
		row("creates that wait for a transaction | %d s until it begins; 128 in a transaction a second one at a time while 128 wait or the first takes over 50 ms", seconds(ledger.CreateWait)),
		row("connections to the database that requests use | 15 of 24 to PostgreSQL: 13 those that read 10 those that read for merchants and operators; of the %d of SQLite that read 4 3 and 2; a statement and a transaction wait %d s",
			db.SQLiteReaders, seconds(db.ShareWait)),
		row("lists being read | %d in all of which an owner of keys has its share", api.MaxPages),
		row("a page of a list | %d elements %d by default; %d MiB; a cursor of %d bytes", api.MaxPage, api.DefaultPage, api.MaxPageBytes>>20, api.MaxCursor),
		row("elements examined for a part of a page | %d", db.MaxExamined),
		row("pairs of metadata in a filter | %d", api.MaxMetadataFilters),
		row("the text `q` | %d characters", invoice.MaxLabel),
		row("what SQLite's connections keep of the file | %d MB the one that writes %d MB each of the %d that read; %d prepared statements of each",
			db.SQLiteWriterCache/1000, db.SQLiteReaderCache/1000, db.SQLiteReaders, db.SQLiteStatements),
		row("keys in memory | %d that are valid %d that are unknown %d that were read before; %d uses that wait; %d sessions", access.MaxCached, access.MaxCached, access.MaxCached, access.MaxCached, access.MaxKnown),
		row("merchants in memory | %d", access.MaxCachedMerchants),
		row("addresses in memory | %d while a chain's old blocks are read", indexer.MaxCached),
		row("transfer amounts in memory | %d free ones of each of %d crowded prices", invoice.MaxSuffix, ledger.MaxShortlists),
		row("events in memory for streams | %d; %d MiB of bodies", webhooks.MaxEvents, webhooks.MaxBytes>>20),
		row("opened pages in memory | %d; %d that wait", maxOpened, maxOpenings),
		row("merchants in memory for deliveries | %d to which nothing is to be delivered; all others", webhooks.MaxKnown),
		row("the standby of PostgreSQL | %d connections of a process; a read waits %d ms for it and takes %d s; %d s until it is tried again",
			db.StandbyConns, db.StandbyWait/time.Millisecond, seconds(db.StandbyTimeout), seconds(db.StandbyRetry)),
		row("the inbox | %d of each kind are counted; the dashboard shows %d on a page", ledger.MaxInboxCount, dashboard.InboxSize),
		row("timeline of an invoice | %d payments %d refunds %d sweeps %d events %d attempts %d transactions",
			ledger.MaxHistoryPayments, ledger.MaxHistoryPayments, ledger.MaxHistoryPayments, ledger.MaxHistoryEvents, ledger.MaxHistoryAttempts, ledger.MaxHistoryTxs),
		row("an unattributed payment | %d candidates %d claims", api.MaxCandidates, api.MaxListedClaims),
		row("events that one request sends again | as many as it finds in %d s; %d requests for each owner of keys %d in all", seconds(api.RedeliverTime), api.MaxOwnRedelivering, api.MaxRedelivering),
		row("payments by x402 | a header of %d KiB; a URL of %d bytes other texts of %d; `maxTimeoutSeconds` of %d to %d; %d s until an answer without the outcome "+
			"%d requests that wait with shares %d for one invoice; success is answered %d times or once; an invoice asks for %d s",
			x402.MaxHeader>>10, x402.MaxURL, x402.MaxText, seconds(x402.MinTimeout), seconds(x402.MaxTimeout), seconds(x402.MaxWait), x402.MaxWaiting, x402.MaxWaitingForInvoice,
			x402.MaxAnswers, seconds(x402.Timeout)),
		row("an erasure of a customer | %d invoices or %d answers to their webhooks in a transaction", ledger.EraseBatch, ledger.EraseAnswers),
		row("hosts of former public URLs | %d", db.MaxFormerHosts),
		row("calls of the [screening](payments.md#screening) hook | %d at a time; %d s; an answer of %d KiB a reason of %d characters",
			screening.MaxInFlight, seconds(screening.Timeout), screening.MaxAnswer>>10, invoice.MaxScreeningReason),
		row("claims | %d a minute of one invoice %d of one client network %d in all; a form of %d KiB",
			checkout.ClaimsOfInvoice, checkout.ClaimsOfClient, checkout.AllClaims, checkout.MaxClaimForm>>10),
		row("what wallets sent | %d reports a minute of one invoice %d of one client network %d in all; %d transactions of an invoice",
			checkout.ReportsOfInvoice, checkout.ReportsOfClient, checkout.AllReports, ledger.MaxReportedTransactions),
		row("addresses that payers name for refunds | %d a minute for one refund %d of one client network %d in all; a form of %d KiB",
			checkout.AddressesOfRefund, checkout.AddressesOfClient, checkout.AllAddresses, checkout.MaxClaimForm>>10),
		row("invoices of payment links | %d a minute of one link %d of one client network %d in all; %d an hour or in their longer lifetime of one client network at a merchant; a form of %d KiB",
			checkout.InvoicesOfLink, checkout.InvoicesOfClient, checkout.AllLinkInvoices, checkout.InvoicesOfClientPerHour, checkout.MaxClaimForm>>10),
		row("authorizations | %d a minute of one invoice %d of one client network %d of an IPv6 /48 %d in all; a signature of %d bytes; a window of %d s to %d h; %d gas %d with an account's deployment; "+
			"in 24 hours %d for one merchant %d of one payer %d in all of which a merchant has its share where those refused without having been sent count for the payer alone (`chains[].gasless`)",
			api.AuthorizationsOfInvoice, api.AuthorizationsOfClient, api.AuthorizationsOfClient*limits.SiteWeight, api.AllAuthorizations, invoice.MaxAuthorizationSignature, seconds(invoice.MinAuthorizationWindow), invoice.MaxAuthorizationWindow/time.Hour,
			chain.MaxAuthorizationGas, chain.MaxDeployGas, config.DefaultGasless().PerMerchant, config.DefaultGasless().PerPayer, config.DefaultGasless().PerDay),
		row("calls of a chain's nodes for requests | %d a second %d at once (`chains[].requestCallsPerSecond`); %d a second %d at once for one merchant; %d in flight of which a merchant has its share",
			chain.DefaultRequestCalls, chain.DefaultRequestCalls*seconds(chain.RequestWindow), chain.RequestCallsOfOwner(chain.DefaultRequestCalls),
			chain.RequestCallsOfOwner(chain.DefaultRequestCalls)*seconds(chain.RequestWindow), chain.MaxRequestCalls),
		row("requests of payers that wait | %d s; %d for one invoice %d in all with shares", api.MaxAuthorizationWait, api.MaxWaitingForInvoice, api.MaxWaitingPayers),
		row("mails | %d receipts of one invoice ever; %d to one mailbox in %d hours; %d a minute of one client network %d in all; %d that wait of which a merchant has its share; an address of %d bytes; %d s for an attempt %d at a time %d of them of one merchant; %d attempts until one is given up after about a day",
			mailer.MaxOfInvoice, mailer.MaxOfMailbox, mailer.Day/time.Hour, checkout.MailsOfClient, checkout.AllMails, mailer.MaxWaiting, mailer.MaxAddress, seconds(mailer.Timeout), mailer.MaxInFlight, mailer.MaxInFlightOfMerchant, mailer.MaxAttempts),
		row("invoices by e-mail | one sent %d times to one address again after %d hour; with reminders in 24 hours %d of one merchant %d of them to one mailbox %d to it in all; %d reminders of one invoice up to %d hours from `expiresAt`; %d mails of one are listed",
			mailer.MaxOfInvoice, mailer.Again/time.Hour, mailer.MaxOfMerchant, mailer.MaxToMailbox, mailer.MaxOfMailbox, invoice.MaxReminders, invoice.MaxReminderHours, mailer.MaxListed),
		row("payments and refunds on a receipt | the newest %d of each", checkout.MaxReceiptRows),
		row("submissions of a prepared refund | %d; %d minutes until others withdraw one without a transaction", invoice.MaxSubmissions, invoice.SubmissionPatience/time.Minute),
		row("transfers that one transaction confirms | %d or one block", indexer.MaxConfirmed),
		row("prepared refunds | %d of one payment further [tags](refunds.md#arriving-transfers) are ignored; %d days until one expires; a node has %d s to say whether the recipient is a contract",
			invoice.MaxPreparedRefunds, invoice.RefundLifetime/day, seconds(chain.AccountTimeout)),
		row("transactions looked up | %d a minute for one invoice %d for one client network %d in all; %d at a time with shares; the nodes have %d s of which an answer waits for %d ms; %d transfers are shown",
			checkout.LookupsOfInvoice, checkout.LookupsOfClient, checkout.Lookups, checkout.MaxLookups, seconds(chain.Timeout), checkout.AnswerWithin/time.Millisecond, chain.MaxTransfers),
		row("payments on a checkout page refunds | the newest %d of each", same(checkout.MaxPayments, checkout.MaxRefunds)),
		row("streams of open checkout pages | %d of one invoice %d of one client network %d in all and three quarters of the door's connections with shares; a write %d s; %d s until another try",
			checkout.StreamsOfInvoice, checkout.StreamsOfClient, checkout.MaxStreams, seconds(webpage.WriteTimeout), seconds(webpage.RetryStreams)),
		row("size of a request | body %d KiB of a logo or a returned mail %d KiB of the form with one %d KiB; headers %d KiB", api.MaxBody>>10, same(access.MaxLogoBytes, mailer.MaxReport)>>10, dashboard.LogoFormBytes>>10, maxHeaderBytes>>10),
		row("time of a body | %d s; after %d s it must be as fast as %d KiB a second", seconds(bodyTimeout), seconds(bodyGrace), minBodyRate>>10),
		row("the header `Authorization` | %d bytes", api.MaxAuthorization),
		row("an amount | %d digits and below 2^256", invoice.MaxAmountDigits),
		row("a JSON body | nested %d deep", api.MaxDepth),
		row("`Idempotency-Key` | %d characters; %d hours of an erasure %d days", api.MaxIdempotencyKey, ledger.IdempotencyWindow/time.Hour, ledger.ErasureLifetime/day),
		row("an invoice | %d days until it expires; %d line items; `merchantId` of %d characters; `metadata` of %d pairs keys of %d and values of %d characters; "+
			"`reference` `customer.id` and labels of %d `description` of %d `customer.email` of %d characters; `returnUrl` and `cancelUrl` of %d bytes",
			invoice.MaxLifetime/day, invoice.MaxLineItems, invoice.MaxMerchantID, invoice.MaxMetadata, invoice.MaxMetadataKey, invoice.MaxMetadataValue,
			invoice.MaxLabel, invoice.MaxDescription, invoice.MaxEmail, invoice.MaxReturnURL),
		row("a payment link | `slug` of %d `title` and `lineItem` of %d `description` of %d `referencePrefix` of %d characters; `expiresIn` of %d s to %d days",
			invoice.MaxSlug, invoice.MaxLabel, invoice.MaxDescription, invoice.MaxReferencePrefix, seconds(invoice.MinLinkLifetime), invoice.MaxLifetime/day),
		row("a merchant | `supportContact` of %d bytes; `statement` of %d characters and %d lines; %d `allowedAddresses`; `returnHosts` of %d hosts of %d bytes; "+
			"`embedOrigins` of %d origins of %d bytes; `timezone` of %d bytes",
			invoice.MaxSupportContact, invoice.MaxStatement, invoice.MaxStatementLines, invoice.MaxAllowedAddresses, invoice.MaxReturnHosts, invoice.MaxHostName,
			invoice.MaxEmbedOrigins, invoice.MaxOrigin, invoice.MaxTimezone),
		row("a logo | %d KiB; %d to %d pixels wide and high; %d uploads of a merchant in %d minutes one of all at a time",
			access.MaxLogoBytes>>10, access.MinLogoSide, access.MaxLogoSide, access.LogosOfMerchant, access.LogoWindow/time.Minute),
		row("keys | %d active ones of the operator and of each merchant; an overlap of %d days", access.MaxKeys, access.MaxOverlap/day),
		row("a summary | a period of %d days; the newest %d invoices of a state or of a report on invoices are added up", api.MaxSummaryPeriod/day, api.MaxSummedInvoices),
		row("sessions at the dashboard | %d days; %d hours without a request; %d of one key; %d minutes until it is confirmed again; a link signs in for %d minutes",
			access.SessionLifetime/day, access.SessionIdle/time.Hour, access.MaxSessions, access.ConfirmedFor/time.Minute, access.SignInLinkLifetime/time.Minute),
		row("people | an invitation is open for %d days; %d open ones of the operator and of each merchant; a person is a member of %d merchants",
			access.InvitationLifetime/day, access.MaxInvitations, access.MaxMemberships),
		row("passkeys | %d of a person; %d minutes to use one; %d sign-ins by passkey or provider of one client network in %d minutes; %d of all at a time",
			access.MaxPasskeys, access.CeremonyLifetime/time.Minute, dashboard.SignInsOfClient, dashboard.MailWindow/time.Minute, access.MaxCeremonies),
		row("sign-ins by a provider | one account of a person; %d at a time; %d s for its answers; %d minutes until its description is read again",
			identity.MaxInFlight, seconds(identity.Deadline), identity.DescriptionLifetime/time.Minute),
		row("approvals | %d to %d people; %d open requests of each merchant %d of each person or key for %d days; kept for %d more; mails about one to %d people; to one person %d minutes apart %d of each merchant in %d hours",
			access.MinApprovers, access.MaxApprovers, access.MaxApprovals, access.MaxApprovalsOf, access.ApprovalLifetime/(24*time.Hour), access.ApprovalKept/(24*time.Hour), access.MaxNotified, access.ApprovalNoticePause/time.Minute, dashboard.MailsOfPersonADay, dashboard.MailDay/time.Hour),
		row("mails that sign people in | %d to one address and %d of one client network in %d minutes; %d to one address and %d invitations of the operator and of each merchant in %d hours; %d that wait %d at a time; %d s for one that somebody waits for",
			dashboard.MailsOfPerson, dashboard.MailsOfClient, dashboard.MailWindow/time.Minute, dashboard.MailsOfPersonADay, dashboard.InvitationsOfMerchant, dashboard.MailDay/time.Hour, mailer.MaxQueued, mailer.MaxInFlight, seconds(mailer.SendTimeout)),
		row("keys whose links led one to another | %d behind a session", access.MaxParentKeys),
		row("filters that people keep | %d of a person and a list; a name of %d characters; a query of %d bytes", access.MaxSavedFilters, access.MaxFilterName, access.MaxFilterQuery),
		row("streams of the dashboard's open pages | %d of a person; %d in all of which the people of one merchant have as many as are free", dashboard.StreamsOfKey, dashboard.MaxStreams),
		row("a text in a provider's notice | %d bytes", api.MaxNoticeText),
		row("what a merchant's keys store | `audit_storage`: %d GiB of entries of the audit log; `invoice_storage`: %d invoices counted every %d s; set by `quittance merchant quotas` and shown by `GET /api/merchants/{id}`",
			access.DefaultAuditQuota>>30, access.DefaultInvoiceQuota, seconds(access.QuotaInterval)),
		row("an entry of the audit log | `before` and `after` of %d KiB other texts of %d bytes", access.MaxChange>>10, access.MaxEntryText),
		row("the log of requests | the newest %d of each owner of keys and up to %d more; %d days; %d that wait of each of %d owners of keys %d in all; %d written in %d s",
			access.MaxKept, access.MaxUncounted, access.Lifetime/day, access.MaxPending, access.MaxOwners, access.MaxWaiting, access.MaxBatch, seconds(access.Interval)),
		row("time of a request | headers %d s whole %d s answer %d s", seconds(readHeaderTimeout), seconds(readTimeout), seconds(api.RequestTimeout)),
		row("idle connections | %d s; at a door without room %d s for a first request and %d s for a request to arrive", seconds(idleTimeout), seconds(newConnectionGrace), seconds(arrivalGrace)),
		row("an attempt to deliver an event | %d s; %d hours of retries; %d KiB of the answer's body and of its headers are read %d KiB of the body and errors of %d bytes are kept",
			seconds(webhooks.DefaultTimeout), webhooks.RetryWindow/time.Hour, webhooks.MaxResponse>>10, webhooks.MaxExcerpt>>10, webhooks.MaxError),
		row("URL of a webhook endpoint | %d bytes", webhooks.MaxURL),
		row("headers of a webhook endpoint | %d; a name of %d bytes a value of %d", webhooks.MaxHeaders, webhooks.MaxHeaderName, webhooks.MaxHeaderValue),
	}
}

// same returns the common value of constants that share a row of the table.
func same(values ...int) int {
	if slices.Max(values) != slices.Min(values) {
		panic(fmt.Sprint("the table has one value; the constants are ", values))
	}
	return values[0]
}

// notInTable are constants with names like limits, and what they are.
var notInTable = map[string]string{
	"checkout.MaxID":             "a longer path is 404 as every unknown one",
	"invoice.MaxSuffix":          "of a transfer amount",
	"webhooks.MaxResponseHeader": "the same as MaxResponse",
	"access.MaxCountedUses":      "bounds what a message to the operator counts",
}

// TestLimitsAreDocumented compares the table of limits in docs/operations.md with the constants, row
// by row. The limits of commands and of sweeps are compared in their packages.
func TestLimitsAreDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(testdeps.Repo("docs/operations.md"))
	expect.OK(t, err)
	_, section, _ := strings.Cut(string(text), "\n## Limits\n")
	section, _, _ = strings.Cut(section, "\n## ")
	section = strings.ReplaceAll(section, ",", "")
	var rows []string
	for _, m := range regexp.MustCompile(`(?m)^\| (.*? \| .*?) \|`).FindAllStringSubmatch(section, -1)[1:] {
		if !strings.HasPrefix(m[1], "`quittance ") && !strings.HasPrefix(m[1], "sweeps |") {
			rows = append(rows, m[1])
		}
	}
	want := limitRows()
	slices.Sort(want)
	slices.Sort(rows)
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("the table of limits in docs/operations.md (-constants +table); limitRows and the table have the same rows:\n%s", diff)
	}
	if remembers := fmt.Sprintf("remembers %d", maxBuckets); !strings.Contains(section, remembers) {
		t.Errorf("docs/operations.md lacks %q", remembers)
	}
	if webhooks.MaxResponseHeader != webhooks.MaxResponse {
		t.Errorf("the table has one limit of an answer's body and headers; they are %d and %d", webhooks.MaxResponse, webhooks.MaxResponseHeader)
	}
}

// TestEveryLimitHasARow compares the constants that limit what callers may send or get with limitRows.
func TestEveryLimitHasARow(t *testing.T) {
	t.Parallel()
	used := make(map[string]bool)
	ast.Inspect(parseFile(t, "limits_docs_test.go"), func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if of, ok := s.X.(*ast.Ident); ok {
				used[of.Name+"."+s.Sel.Name] = true
			}
		}
		return true
	})
	found := make(map[string]bool)
	for _, pkg := range []string{"access", "invoice", "mailer", "web/api", "web/checkout", "webhooks"} {
		for _, name := range limitsOf(t, pkg) {
			found[name] = true
			if _, other := notInTable[name]; !used[name] && !other {
				t.Errorf("%s has no row in the table of limits: add it to limitRows and to docs/operations.md", name)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(notInTable)) {
		if !found[name] {
			t.Errorf("notInTable has %s, which does not exist", name)
		}
	}
	if len(found) < 40 {
		t.Errorf("only %d limits were found", len(found))
	}
}

// limitsOf returns the exported constants of a package with names that begin with Max or Min.
func limitsOf(t *testing.T, pkg string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(testdeps.Repo("internal/" + pkg + "/*.go"))
	expect.OK(t, err)
	limit := regexp.MustCompile("^(Max|Min)[A-Z]")
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, d := range parseFile(t, file).Decls {
			constants, ok := d.(*ast.GenDecl)
			if !ok || constants.Tok != token.CONST {
				continue
			}
			for _, spec := range constants.Specs {
				for _, name := range spec.(*ast.ValueSpec).Names {
					if limit.MatchString(name.Name) {
						names = append(names, path.Base(pkg)+"."+name.Name)
					}
				}
			}
		}
	}
	return names
}

func parseFile(t *testing.T, path string) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	expect.OK(t, err)
	return f
}
