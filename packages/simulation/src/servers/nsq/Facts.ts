/** Facts about the messages of an nsqd, for a listener such as the history of a simulation. */
import type { Message } from "./Messages.ts"

/** A delivery of a message. Its frame names the nsqd's id and attempts; the client is one connection. */
export interface Delivery {
  /** The server's number of this delivery, unique among all deliveries of a run. */
  readonly number: number
  readonly attempts: number
  readonly clientId: string
}

/** Why a message waits again. */
export type Return = "requeued" | "timeout" | "restart"

/** Why a message is gone. `forgotten`: a killed nsqd, or an ephemeral queue, has lost it. */
export type End = "finished" | "emptied" | "deleted" | "forgotten"

/** A place of messages. Without a channel, the messages belong to channels that do not exist yet. */
export interface Place {
  readonly nsqd: string
  readonly topic: string
  readonly channel: string | undefined
}

/** One fact. `due` is when the message may be delivered, in milliseconds since the epoch by nsqd's clock. */
export type Fact = { readonly place: Place; readonly message: Message } & (
  | { readonly _tag: "Stored"; readonly due: number; readonly clientId: string | undefined }
  /** Its deferral is over. */
  | { readonly _tag: "Due" }
  | { readonly _tag: "HandedOut"; readonly delivery: Delivery }
  | { readonly _tag: "Back"; readonly delivery: Delivery | undefined; readonly due: number; readonly why: Return }
  | { readonly _tag: "Gone"; readonly delivery: Delivery | undefined; readonly why: End }
)

export type Report = (fact: Fact) => void
