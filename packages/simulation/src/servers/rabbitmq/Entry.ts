/** Messages in a queue. */
import type { Message } from "./Message.ts"

/** A message in a queue, from its arrival to its end. */
export interface Entry {
  /** The server's number of it. */
  readonly id: number
  readonly message: Message
  /** Its place among the others. Only the queue changes the members from here on. */
  place: number
  /** The server's number of its last delivery; 0 before the first. */
  delivery: number
  expiresAt: number
  /** All returns, and those that are failures. */
  returns: number
  failures: number
  isRedelivered: boolean
}
