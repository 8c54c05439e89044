/** Reads the dead letters that the server itself makes: the queue they were in, and the reason. Pure. */
import type { Metadata } from "@requeue/core/port"
import * as Predicate from "effect/Predicate"
import type { Incoming } from "../client.ts"
import * as Wire from "../wire.ts"

/** The server's reasons. https://www.rabbitmq.com/docs/dlx#effects */
const causes: Readonly<Record<string, readonly [reason: Metadata.Reason, message: string]>> = {
  delivery_limit: ["too-many-deliveries", "it was returned more often than the queue's delivery limit allows"],
  expired: ["too-old", "it waited longer than its time to live"],
  maxlen: ["retries-exhausted", "the queue was full"],
  rejected: ["permanent", "a consumer rejected it"]
}

/** An AMQP timestamp, in seconds, as the driver shows it in a header. */
const timeOf = (time: unknown): number | undefined =>
  Predicate.hasProperty(time, "value") && typeof time.value === "number" ? time.value * 1000 : undefined

/**
 * Returns the dead letter that the server has made of a message, by its newest `x-death` record; `undefined` for any
 * other message. An expired message may come out of a delay: it is a dead letter only if it came through the server's
 * dead-letter exchange.
 */
export const givenUp = (
  incoming: Pick<Incoming, "fields" | "properties">,
  attempts: number,
  now: () => number
): Metadata.DeadLetter | undefined => {
  const last = Wire.deathsOf(incoming.properties.headers ?? {})[0]
  if (last === undefined || typeof last["queue"] !== "string" || typeof last["reason"] !== "string") return undefined
  const name = last["reason"]
  const cause = Object.hasOwn(causes, name) ? causes[name] : undefined
  if (cause === undefined || (name === "expired" && !Wire.isServersLetter(incoming))) return undefined
  const [reason, message] = cause
  return {
    queue: last["queue"],
    attempts,
    reason,
    at: timeOf(last["time"]) ?? now(),
    error: { name, message: `dead-lettered by RabbitMQ: ${message}` }
  }
}
