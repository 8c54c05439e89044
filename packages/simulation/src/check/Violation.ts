/** Violations: what a law reports about a history that breaks it. */
import type { Delivery, Key } from "../History.ts"

/** A law that a history breaks, and where. */
export interface Violation {
  /** The name of the law. */
  readonly law: string
  /** True milliseconds since the world began. */
  readonly at: number
  readonly key: Key | undefined
  readonly delivery: Delivery | undefined
  readonly process: string | undefined
  /** One sentence: what happened, and what was expected. */
  readonly what: string
  /** The indexes of the entries that show it, in their order. */
  readonly entries: ReadonlyArray<number>
}
