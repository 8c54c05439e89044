/** The native objects of a plan, as data. */
import type { Queues as Mode } from "../../SqsOptions.ts"
import type * as Names from "../names.ts"

/** Attributes of a queue as SQS writes them: every value is text. */
export type Attributes = Readonly<Record<string, string>>

/** One queue. */
export interface Queue {
  /** The name that the program uses. */
  readonly queue: string
  /** The name that SQS uses. */
  readonly name: Names.Name
  readonly role: "work" | "dead letters"
  /** All attributes except those with ARNs. */
  readonly attributes: Attributes
  /** Where SQS moves a message with more receives than `maxReceiveCount`; `undefined` for nowhere. */
  readonly redrive: { readonly to: Names.Name; readonly maxReceiveCount: number } | undefined
  /** The queue whose messages SQS may move here; `undefined` if not planned. */
  readonly redriveFrom: Names.Name | undefined
}

/** The queues of a consumer or producer. */
export interface Plan {
  readonly queue: string
  /** Whether missing queues are created, all are compared with the plan, or they are only used. */
  readonly mode: Mode
  /** All queues, in the order in which they are created: dead-letter queues first, the work queue last. */
  readonly queues: ReadonlyArray<Queue>
  /** Tags of queues that are created. */
  readonly tags: Attributes
  /** Receives of one copy that the policy needs; the queue's `maxReceiveCount` must be above it. */
  readonly receives: number
  /** Milliseconds for which the policy's retries may keep one copy in the queue; 0 if unlimited or unknown. */
  readonly lasts: number
  /** Notes for the user about limits of the plan. */
  readonly notes: ReadonlyArray<string>
}

/** Returns the attributes of a queue for display, redrive policies in words. */
export const listed = ({ attributes, redrive, redriveFrom }: Queue): ReadonlyArray<readonly [string, string]> => [
  ...Object.entries(attributes),
  ...(redrive === undefined
    ? []
    : [["RedrivePolicy", `to ${redrive.to.name} after ${redrive.maxReceiveCount}`] as const]),
  ...(redriveFrom === undefined ? [] : [["RedriveAllowPolicy", `from ${redriveFrom.name}`] as const])
]
