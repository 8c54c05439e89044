/** What a plan is made of. */
import type { Queues as Mode } from "../../SqsOptions.ts"
import type * as Names from "../names.ts"

/** As SQS writes them: every value is text. */
export type Attributes = Readonly<Record<string, string>>

/** One queue. */
export interface Queue {
  /** As the program names it. */
  readonly queue: string
  readonly name: Names.Name
  readonly role: "work" | "dead letters"
  /** All attributes but those that hold ARNs. */
  readonly attributes: Attributes
  /** SQS itself moves a message there that was received more often. */
  readonly redrive: { readonly to: Names.Name; readonly maxReceiveCount: number } | undefined
  /** The queue whose redrive policy ends here. */
  readonly redriveFrom: Names.Name | undefined
}

export interface Plan {
  readonly queue: string
  /** What is done about them: create the missing ones, compare them, or only use them. */
  readonly mode: Mode
  /** In the order in which they are created: dead-letter queues first. */
  readonly queues: ReadonlyArray<Queue>
  readonly tags: Attributes
  /** Receives of one copy that the policy needs; the queue's `maxReceiveCount` must be above it. */
  readonly receives: number
  /** Milliseconds that the policy's retries may keep one copy in the queue; 0 where that is unlimited or not known. */
  readonly lasts: number
  /** What a user should know. */
  readonly notes: ReadonlyArray<string>
}

/** What a queue has, as people read it: by attribute. */
export const listed = ({ attributes, redrive, redriveFrom }: Queue): ReadonlyArray<readonly [string, string]> => [
  ...Object.entries(attributes),
  ...(redrive === undefined
    ? []
    : [["RedrivePolicy", `to ${redrive.to.name} after ${redrive.maxReceiveCount}`] as const]),
  ...(redriveFrom === undefined ? [] : [["RedriveAllowPolicy", `from ${redriveFrom.name}`] as const])
]
