package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
)

func newEvents(env environment) *cobra.Command {
	return group(&cobra.Command{
		Use: "events COMMAND", GroupID: groupService,
		Short: "list events, show their deliveries, and send them again",
		Long:  "Lists events, shows the state of their deliveries, and sends them again.",
	}, newEventsList(env), newEventsShow(env), newEventsRedeliver(env))
}

// filterFlags adds the flags that filter events.
func filterFlags(cmd *cobra.Command, merchantID *string, typ *apitypes.EventType, invoiceID *string) {
	flags := cmd.Flags()
	flags.StringVar(merchantID, "merchant", "", "only events of the merchant with this `ID`")
	flags.StringVar((*string)(typ), "type", "", "only events of this `TYPE`, such as invoice.paid")
	flags.StringVar(invoiceID, "invoice", "", "only events about the invoice with this `ID`")
	types := append(triggerTypes(), string(apitypes.EventPaymentUnattributed))
	cobra.CheckErr(cmd.RegisterFlagCompletionFunc("type", cobra.FixedCompletions(types, cobra.ShellCompDirectiveNoFileComp)))
}

func newEventsList(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "list events, with the state of their deliveries",
		Long:    "Lists events, newest first, with the state of their deliveries.",
		Example: "  quittance events list --delivery failed",
		Args:    noArgs,
	}
	var f client.EventFilter
	at := remoteFlags(cmd)
	filterFlags(cmd, &f.MerchantID, &f.Type, &f.InvoiceID)
	cmd.Flags().StringVar((*string)(&f.Delivery), "delivery", "",
		"only events whose delivery is in this `STATE`: pending, delivered or failed, or none for those without one")
	limit := cmd.Flags().Uint("limit", 50, "list at most `N` events; 0 for all")
	states := []string{string(apitypes.WithPending), string(apitypes.WithDelivered), string(apitypes.WithFailed), string(apitypes.WithNone)}
	cobra.CheckErr(cmd.RegisterFlagCompletionFunc("delivery", cobra.FixedCompletions(states, cobra.ShellCompDirectiveNoFileComp)))
	return callCommand(env, cmd, at, "GET /api/events", func(
		ctx context.Context, c *client.Client, _ []string,
	) (apitypes.EventList, error) {
		f.PageSize = pageSize(*limit)
		all, err := firstOf(c.Events(ctx, f), *limit)
		return apitypes.EventList{Events: all}, err
	}, func(l apitypes.EventList) error { return printEvents(env.stdout, l.Events) })
}

func newEventsShow(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "show one event, and every attempt to deliver it",
		Long: `Shows an event as it is sent, the state of its delivery, and every attempt: when
it began, how long its parts took, and what the endpoint answered.`,
		Args: oneArg("events show needs the id of one event, evt_…"),
	}
	return callCommand(env, cmd, remoteFlags(cmd), "GET /api/events/{id}", func(
		ctx context.Context, c *client.Client, ids []string,
	) (apitypes.EventRecord, error) {
		return c.Event(ctx, ids[0])
	}, func(r apitypes.EventRecord) error { return printEvent(env.stdout, r) })
}

func newEventsRedeliver(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "redeliver {ID… | --failed | --from TIME}",
		Short: "send events again",
		Long: `Sends events again, each under its old delivery id, by which receivers recognise
an event that they have had. Events that are being sent anyway are left alone.

An event that is named by its ID also comes to every terminal where "quittance listen"
runs, whether its merchant has an endpoint or not.

TIME is one such as 2026-01-31T10:00:00Z, or how long ago, such as 90m.`,
		Example: `  quittance events redeliver evt_…
  quittance events redeliver --failed --merchant shop
  quittance events redeliver --from 2026-01-31T10:00:00Z --to 2026-01-31T11:00:00Z`,
		SuggestFor: []string{"resend", "retry", "replay"},
	}
	var r apitypes.RedeliverEventsRequest
	at := remoteFlags(cmd)
	cmd.Flags().BoolVar(&r.FailedOnly, "failed", false, "all events whose delivery failed")
	cmd.Flags().Func("from", "all events that happened since `TIME`", moment(&r.From))
	cmd.Flags().Func("to", "and until `TIME`", moment(&r.To))
	filterFlags(cmd, &r.MerchantID, &r.Type, &r.InvoiceID)
	asJSON := jsonFlag(cmd, "write JSON: how many are sent again")
	cmd.Args = func(_ *cobra.Command, ids []string) error {
		switch {
		case len(ids) > 0 && r != apitypes.RedeliverEventsRequest{}:
			return errors.New("events redeliver takes either the ids of events or flags that choose events")
		case len(ids) == 0 && !r.FailedOnly && r.From == nil:
			return errors.New("events redeliver needs the ids of events, --failed or --from TIME")
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, ids []string) error {
		return noService(runEventsRedeliver(cmd.Context(), env, at, ids, r, *asJSON))
	}
	return cmd
}

func runEventsRedeliver(ctx context.Context, env environment, at *remote, ids []string, r apitypes.RedeliverEventsRequest, asJSON bool) error {
	c, err := at.client(env)
	if err != nil {
		return err
	}
	sent, err := redeliver(ctx, c, ids, r)
	if asJSON {
		return errors.Join(env.writeJSON(apitypes.RedeliverEventsResponse{Redelivered: sent}), err)
	}
	_, printed := fmt.Fprintf(env.stdout, "%s sent again.\n", are(int(sent), "event"))
	return errors.Join(printed, err)
}

// redeliver reschedules the deliveries of the events with the ids or, without ids, of the events that
// the filter selects. It returns their number.
func redeliver(ctx context.Context, c *client.Client, ids []string, r apitypes.RedeliverEventsRequest) (sent int64, err error) {
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

// moment parses a time, or a duration before now, as Unix seconds.
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
