/** Names for copies and consumers. */
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"

/** Makes names that nobody else has: random for each broker, then counted. */
export const uniqueNames = Effect.map(
  Effect.all([Random.nextIntBetween(0, 2 ** 32 - 1), Random.nextIntBetween(0, 2 ** 32 - 1)]),
  (parts) => {
    const mine = parts.map((part) => part.toString(36)).join("")
    let count = 0
    return () => `${mine}.${(++count).toString(36)}`
  }
)
