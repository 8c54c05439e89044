/**
 * Facts about messages in a simulated server of SQS, for a listener. Numbers are the server's. `entry` is the part of a call
 * that caused the fact, as the client has passed it.
 */
import type { Entry } from "./Api.ts"
import type { Message } from "./Message.ts"

/** One fact. */
export type Fact =
  /** A message is stored, and not delivered before `due`. `isNative`: SQS moved it from another queue. */
  | {
      readonly _tag: "Stored"
      readonly message: Message
      readonly queue: string
      readonly due: number
      readonly isNative: boolean
      readonly client: string | undefined
      readonly entry: Entry | undefined
    }
  /** A message is delivered; its answer may be lost on the way. `delivery` is in the receipt handle. */
  | {
      readonly _tag: "HandedOut"
      readonly message: Message
      readonly queue: string
      readonly delivery: number
      readonly client: string | undefined
    }
  /** A client has changed until when a message is hidden: it extends its lease, or returns the message. */
  | {
      readonly _tag: "Changed"
      readonly message: Message
      readonly queue: string
      readonly delivery: number
      readonly due: number
      readonly client: string | undefined
      readonly entry: Entry | undefined
    }
  /** A message is visible again. */
  | {
      readonly _tag: "Back"
      readonly message: Message
      readonly queue: string
      readonly delivery: number
    }
  /** A message has left its queue. */
  | {
      readonly _tag: "Gone"
      readonly message: Message
      readonly queue: string
      readonly why: "settled" | "purged" | "backstop" | "expired" | "deleted" | "moved"
      /** The delivery that settled it. */
      readonly delivery: number | undefined
      readonly entry?: Entry
    }

/** Called with each fact. */
export type Listener = (fact: Fact) => void
