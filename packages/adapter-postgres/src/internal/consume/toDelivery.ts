/** From a row to a delivery. Pure. */
import { type Delivery, type Message, Metadata } from "@requeue/core/port"
import type { StoredRow } from "../rows.ts"

/** Frozen, because handlers see it. */
const none: Message.Headers = Object.freeze({})

/** Returns the headers; `undefined` if another program wrote something else. */
const headersOf = (text: string | null): Message.Headers | undefined => {
  if (text === null) return none
  try {
    const headers: unknown = JSON.parse(text)
    const isRecord = typeof headers === "object" && headers !== null && !Array.isArray(headers)
    if (!isRecord || !Object.values(headers).every((value) => typeof value === "string")) return undefined
    return Object.freeze(headers as Message.Headers) // All values are text.
  } catch {
    return undefined
  }
}

const unreadable = { name: "InvalidHeaders", message: "the column headers is not a JSON object of text" }

/** A message without Requeue's metadata is a foreign producer's: its id is made from its number, and stays the same. */
export const toDelivery = (row: StoredRow): Omit<Delivery.Delivery, "receipt"> => {
  const { at, body, deliveries, metadata: encoded, seq } = row
  const metadata = (encoded === null ? undefined : Metadata.decode(encoded)) ?? Metadata.make(`postgres-${seq}`, at)
  const headers = headersOf(row.headers)
  return {
    body,
    headers: headers ?? none,
    attempts: metadata.attempts + deliveries,
    metadata,
    redelivered: deliveries > 1,
    ...(headers === undefined ? { unreadable } : {})
  }
}
