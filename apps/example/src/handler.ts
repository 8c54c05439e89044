/**
 * The handler: delivers one webhook, and decides by the reply whether to retry. It knows neither the broker nor the number and
 * the delays of retries: those belong to the policy.
 */
import { type Context, PermanentError, type Received, RetryLaterError } from "@requeue/core/promise"
import { sign } from "./signature.ts"

/** The destination of webhooks. */
export interface Destination {
  readonly urlOf: (endpoint: string) => URL
  readonly secret: string
}

export const makeHandler =
  ({ secret, urlOf }: Destination) =>
  async (message: Received<unknown>, { signal }: Context): Promise<void> => {
    const body = JSON.stringify(message.body)
    const endpoint = message.headers["x-webhook-endpoint"] ?? ""
    const request = {
      method: "POST",
      body,
      headers: {
        "content-type": "application/json",
        "x-github-event": message.headers["x-github-event"] ?? "",
        "x-github-delivery": message.id,
        "x-delivery-attempt": String(message.attempts),
        "x-hub-signature-256": sign(secret, body)
      },
      // A signed payload must go only to the address that subscribed.
      redirect: "manual",
      // Ends the request when the handler's time is up, and at shutdown.
      signal
    } as const
    const response = await fetch(urlOf(endpoint), request).catch((cause: unknown) => {
      // A dead letter with only "fetch failed" would not help.
      throw new Error(`${endpoint} cannot be reached`, { cause })
    })
    // A connection is reused only after the body of its last response has been read.
    await response.arrayBuffer()
    if (response.ok) return

    const answer = `${endpoint} answered ${response.status}`
    if (response.status === 410) throw new PermanentError({ message: `${answer}: the subscription is gone` })
    const retryAfter = response.headers.get("retry-after")
    if ((response.status === 429 || response.status === 503) && retryAfter !== null) {
      throw new RetryLaterError({ message: answer, retryAfter })
    }
    throw new Error(answer)
  }
