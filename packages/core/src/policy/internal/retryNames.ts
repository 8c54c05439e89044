/** The options of a retry policy, for programs that write one beside `retry`. */
import type { OptionKind } from "../../options/OptionKind.ts"
import type { Options } from "../RetryPolicy.ts"

const names: Readonly<Record<keyof Options, true>> = {
  maxRetries: true,
  maxAttempts: true,
  maxDeliveries: true,
  maxAge: true,
  immediate: true,
  backoff: true,
  classify: true,
  deadLetter: true,
  afterDeadLetter: true
}

/** Returns how to write each of them inside `retry`. `write` makes the value of `retry` from its options as text. */
export const inside = (write: (options: string) => string): OptionKind["inside"] =>
  Object.fromEntries(Object.keys(names).map((name) => [name, (value: string) => write(`{ ${name}: ${value} }`)]))
