/** The part of an nsqd that its connections use. */
import type { Host } from "../Host.ts"
import type { Flags } from "./Flags.ts"
import type { Topic } from "./Topic.ts"

export interface Daemon {
  readonly host: Host
  readonly flags: Flags
  readonly version: string
  /** Returns a topic, which is made if it is missing. */
  readonly topic: (name: string) => Topic
  /** The reason for which nothing can be stored now; `undefined` if it can. */
  readonly trouble: () => string | undefined
  /** Returns the error with which one message is refused; `undefined` if it is not. */
  readonly refuses: (command: string, topic: string, body: Buffer) => string | undefined
}
