package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/quittance/quittance/client"
)

const eventsHelp = `Usage: quittance events COMMAND

Commands:
  list        list events, and how their deliveries stand
  show        show one event, and every attempt to deliver it
  redeliver   send events again

Run "quittance events COMMAND --help" for what a command takes.
`

// runEvents is events without one of its commands: it lists them.
func runEvents(_ context.Context, env environment, args []string) error {
	return listCommands(env, "events", eventsHelp, args)
}

// defaultURL is where quittance dev and quittance serve listen unless they are
// told otherwise.
const defaultURL = "http://127.0.0.1:8080"

// callTimeout is how long one request to a service may take.
const callTimeout = 30 * time.Second

// serviceFlag adds the flag that says which service to ask.
func serviceFlag(flags *flag.FlagSet) *string { return flags.String("url", defaultURL, "") }

// openClient returns a client of the service at a URL.
func openClient(url string) (*client.Client, error) {
	c, err := client.New(url, client.WithHTTPClient(&http.Client{Timeout: callTimeout}))
	if err != nil {
		return nil, usageError{fmt.Errorf("--url %q is no address of a service; want one such as %s", url, defaultURL)}
	}
	return c, nil
}

// asking returns a command that asks the service at --url, with an error that
// says what to do where none answers.
func asking(c command) command {
	return func(ctx context.Context, env environment, args []string) error {
		err := c(ctx, env, args)
		if dial := (*net.OpError)(nil); errors.As(err, &dial) && dial.Op == "dial" && dial.Addr != nil {
			return fmt.Errorf("no service answers at %s: %w; start it, or say with --url where it is", dial.Addr, dial.Err)
		}
		return err
	}
}

const eventsListHelp = `Usage: quittance events list [flags]

Lists events, the newest first, and how their deliveries stand.

Flags:
  --url URL          the service (default http://127.0.0.1:8080)
  --merchant ID      only events of this merchant
  --type TYPE        only events of this type, such as invoice.paid
  --invoice ID       only events about this invoice
  --delivery STATE   only events whose delivery is pending, delivered or failed, or
                     none for those without one
  --limit N          how many to list at most (default 50); 0 for all
  --json             write JSON, as the service's GET /api/events does
`

func runEventsList(ctx context.Context, env environment, args []string) error {
	flags := flag.NewFlagSet("events list", flag.ContinueOnError)
	var f client.EventFilter
	url := serviceFlag(flags)
	flags.StringVar(&f.MerchantID, "merchant", "", "")
	flags.StringVar((*string)(&f.Type), "type", "", "")
	flags.StringVar(&f.InvoiceID, "invoice", "", "")
	flags.StringVar((*string)(&f.Delivery), "delivery", "", "")
	limit := flags.Uint("limit", 50, "")
	asJSON := flags.Bool("json", false, "")
	if err := parse(env, flags, eventsListHelp, args); err != nil {
		return ended(err)
	}
	c, err := openClient(*url)
	if err != nil {
		return err
	}
	all := []client.EventRecord{}
	f.PageSize = int(min(*limit, 200))
	for r, err := range c.Events(ctx, f) {
		if err != nil {
			return err
		}
		all = append(all, r)
		if uint(len(all)) == *limit {
			break
		}
	}
	if *asJSON {
		return json.NewEncoder(env.stdout).Encode(client.EventList{Events: all})
	}
	return printEvents(env.stdout, all)
}

const eventsShowHelp = `Usage: quittance events show ID [flags]

Shows an event as it is sent, how its delivery stands, and every attempt: when
it began, how long its parts took, and what the endpoint answered.

Flags:
  --url URL    the service (default http://127.0.0.1:8080)
  --json       write JSON, as the service's GET /api/events/{id} does
`

func runEventsShow(ctx context.Context, env environment, args []string) error {
	flags := flag.NewFlagSet("events show", flag.ContinueOnError)
	url := serviceFlag(flags)
	asJSON := flags.Bool("json", false, "")
	ids, err := parseWords(env, flags, eventsShowHelp, args)
	if err != nil {
		return ended(err)
	}
	if len(ids) != 1 {
		return usageError{errors.New("events show needs the id of one event, evt_…")}
	}
	c, err := openClient(*url)
	if err != nil {
		return err
	}
	r, err := c.Event(ctx, ids[0])
	if err != nil {
		return err
	}
	if *asJSON {
		return json.NewEncoder(env.stdout).Encode(r)
	}
	return printEvent(env.stdout, r)
}

const eventsRedeliverHelp = `Usage: quittance events redeliver ID… [flags]
       quittance events redeliver --failed [flags]
       quittance events redeliver --from TIME [flags]

Sends events again, each under its old delivery id, by which receivers know
that they have had it. Those that are being sent as it is are left alone.

TIME is one such as 2026-01-31T10:00:00Z, or how long ago, such as 90m.

Flags:
  --url URL        the service (default http://127.0.0.1:8080)
  --failed         all whose delivery failed
  --from TIME      all that happened since then
  --to TIME        and until then
  --merchant ID    of these, only events of this merchant
  --type TYPE      only events of this type, such as invoice.paid
  --invoice ID     only events about this invoice
  --json           write JSON: how many are sent again
`

func runEventsRedeliver(ctx context.Context, env environment, args []string) error {
	flags := flag.NewFlagSet("events redeliver", flag.ContinueOnError)
	var r client.RedeliverEventsRequest
	url := serviceFlag(flags)
	flags.BoolVar(&r.FailedOnly, "failed", false, "")
	flags.Func("from", "", moment(&r.From))
	flags.Func("to", "", moment(&r.To))
	flags.StringVar(&r.MerchantID, "merchant", "", "")
	flags.StringVar((*string)(&r.Type), "type", "", "")
	flags.StringVar(&r.InvoiceID, "invoice", "", "")
	asJSON := flags.Bool("json", false, "")
	ids, err := parseWords(env, flags, eventsRedeliverHelp, args)
	if err != nil {
		return ended(err)
	}
	many := r != client.RedeliverEventsRequest{}
	switch {
	case len(ids) > 0 && many:
		return usageError{errors.New("events redeliver takes either the ids of events or flags that say which")}
	case len(ids) == 0 && !r.FailedOnly && r.From == nil:
		return usageError{errors.New("events redeliver needs the ids of events, --failed or --from TIME")}
	}
	c, err := openClient(*url)
	if err != nil {
		return err
	}
	sent, err := redeliver(ctx, c, ids, r)
	if *asJSON {
		return errors.Join(json.NewEncoder(env.stdout).Encode(client.RedeliverEventsResponse{Redelivered: sent}), err)
	}
	_, told := fmt.Fprintf(env.stdout, "%s sent again.\n", are(int(sent), "event"))
	return errors.Join(told, err)
}

// redeliver has events sent again by their ids or, without ids, as asked for.
// It returns how many are.
func redeliver(ctx context.Context, c *client.Client, ids []string, r client.RedeliverEventsRequest) (sent int64, err error) {
	if len(ids) == 0 {
		return c.RedeliverEvents(ctx, r)
	}
	var errs []error
	for _, id := range ids {
		if _, err := c.RedeliverEvent(ctx, id); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", id, err))
			continue
		}
		sent++
	}
	return sent, errors.Join(errs...)
}

// are is a number of things that something happens to.
func are(n int, thing string) string {
	if n == 1 {
		return count(n, thing) + " is"
	}
	return count(n, thing) + " are"
}

// moment reads a time, or how long ago it was, as Unix seconds.
func moment(dst **int64) func(string) error {
	return func(text string) error {
		at, err := time.Parse(time.RFC3339, text)
		if ago, agoErr := time.ParseDuration(text); agoErr == nil && ago >= 0 && !strings.HasPrefix(text, "+") {
			at, err = time.Now().Add(-ago), nil
		}
		if err != nil || at.Unix() < 0 {
			return errors.New("want a time such as 2026-01-31T10:00:00Z, or how long ago, such as 90m")
		}
		seconds := at.Unix()
		*dst = &seconds
		return nil
	}
}
