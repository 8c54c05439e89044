/** Unique names for copies and consumers. */
import { Random } from "@requeue/core/port"
import * as Effect from "effect/Effect"

/** Makes unique names: a random part for each broker, then a counter. */
export const uniqueNames = Effect.map(Effect.all([Random.next, Random.next]), (parts) => {
  const mine = parts.map((part) => Math.floor(part * 2 ** 32).toString(36)).join("")
  let count = 0
  return () => `${mine}.${(++count).toString(36)}`
})
