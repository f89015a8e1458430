// An Express application. The body must reach verify as it came over the wire,
// so this route takes it raw, before any express.json() of the application:
//
//   app.post("/webhooks", express.raw({ type: "application/json", limit: "1mb" }), webhooks(process.env.WEBHOOK_SECRET!));
import { SignatureError, parseEvent, verify } from "@quittance/webhook";

interface Request {
  body: Uint8Array; // as express.raw leaves it
  get(name: string): string | undefined;
}

interface Response {
  status(code: number): Response;
  json(body: unknown): void;
  end(): void;
}

export function webhooks(secret: string) {
  return async (req: Request, res: Response, next: (error: unknown) => void): Promise<void> => {
    try {
      await verify(secret, req.get("X-Service-Signature"), req.body);
      const event = parseEvent(req.body);
      if (event.type === "invoice.paid") {
        // Ship event.data.invoice.id, once for each req.get("X-Service-Delivery").
      }
      res.status(204).end();
    } catch (error) {
      if (error instanceof SignatureError) {
        res.status(error.status).json({ code: error.code, detail: error.message });
        return;
      }
      next(error); // answered with 5xx, so that the event comes again
    }
  };
}
