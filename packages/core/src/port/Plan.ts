/**
 * What a queue and its retry policy become on a broker, in a form that is the same for all brokers: to print, to draw,
 * to compare with what is there. An adapter makes it from its own plan.
 */

import * as Delay from "../message/Delay.ts"
import type { Reason } from "../message/Metadata.ts"
import type { RetryPolicy } from "../policy/RetryPolicy.ts"
import * as Policy from "../policy/RetryPolicy.ts"

/** Something that the broker must have. */
export interface PlannedObject {
  /** In the broker's own words: `queue`, `exchange`, `binding`, `topic`, `channel`. */
  readonly kind: string
  readonly name: string
  /** Arguments or attributes, for people. */
  readonly details: string
  /** Objects of a group belong together and are told as one, for example those that all queues share. */
  readonly group?: string
}

/** A way that messages take between two objects. */
export interface Flow {
  /** Names of objects, or of groups. */
  readonly from: string
  readonly to: string
  /** When or why a message goes this way, for example `after 5s`. */
  readonly label: string
}

export interface Plan {
  readonly broker: string
  readonly queue: string
  /** How delays are kept, in one line. */
  readonly delays: string
  /** In the order in which they are created. */
  readonly objects: ReadonlyArray<PlannedObject>
  readonly flows: ReadonlyArray<Flow>
  /** What a user should know of it. */
  readonly notes: ReadonlyArray<string>
}

/** How an object of a plan stands on the broker; `unknown` where the broker cannot be asked. */
export type State = "present" | "missing" | "different" | "unknown"

export interface Inspected extends PlannedObject {
  readonly state: State
  /** What is different, or why it is unknown. */
  readonly why?: string | undefined
}

/** Something about a queue, beyond its existence, that a consumer relies on. */
export interface Finding {
  readonly about: string
  readonly verdict: "good" | "bad" | "unknown"
  readonly detail: string
}

/** A plan beside what is there. */
export interface Inspection {
  /** One for each object of the plan, in its order. */
  readonly objects: ReadonlyArray<Inspected>
  readonly findings: ReadonlyArray<Finding>
}

/** What the way of these retries is called; there is at least one. */
export const after = (steps: ReadonlyArray<Policy.Step>): string => {
  if (steps.every(({ delay }) => delay[1] === 0)) return "retry at once"
  const listed = steps.slice(0, 5).map(({ delay: [low, high] }) => {
    return low === high ? Delay.format(high) : `${Delay.format(low)}..${Delay.format(high)}`
  })
  return `retry after ${listed.join(", ")}${steps.length > 5 ? ", …" : ""}`
}

/** The way of retries back to their queue, for brokers on which it has no stations. */
export const retries = (queue: string, retry: RetryPolicy): ReadonlyArray<Flow> => {
  const steps = Policy.schedule(retry)
  return steps.length === 0 ? [] : [{ from: queue, to: queue, label: after(steps) }]
}

const reasons: ReadonlyArray<Reason> = ["retries-exhausted", "permanent", "undecodable", "too-old"]

/** The ways of dead letters to their queues, each with the reasons that lead there. */
export const deadLetters = (queue: string, retry: RetryPolicy): ReadonlyArray<Flow> => {
  const byTarget = Map.groupBy(reasons, (reason) => Policy.deadLetterQueue(retry, queue, reason))
  return [...byTarget].flatMap(([to, found]) => {
    return to === undefined
      ? []
      : [{ from: queue, to, label: found.length === reasons.length ? "given up" : found.join(", ") }]
  })
}

const quoted = (text: string): string => `"${text.replaceAll('"', "#quot;")}"`

/**
 * The flows as a Mermaid flowchart.
 *
 * @example
 * ```ts
 * import { Plan } from "@requeue/core"
 *
 * const objects = ["orders", "orders.dlq"].map((name) => ({ kind: "queue", name, details: "" }))
 * const flows = [{ from: "orders", to: "orders.dlq", label: "given up" }]
 * const plan = { broker: "memory", queue: "orders", delays: "timers", objects, flows, notes: [] }
 * Plan.mermaid(plan).split("\n")[1] // => '  n0["orders"] -->|"given up"| n1["orders.dlq"]'
 * ```
 */
export const mermaid = ({ flows }: Plan): string => {
  const ids = new Map<string, string>()
  const node = (name: string): string => {
    const known = ids.get(name)
    if (known !== undefined) return known
    ids.set(name, `n${ids.size}`)
    return `${ids.get(name)}[${quoted(name)}]`
  }
  const lines = flows.map(
    ({ from, label, to }) => `  ${node(from)} -->${label === "" ? "" : `|${quoted(label)}|`} ${node(to)}`
  )
  return ["flowchart LR", ...lines].join("\n")
}
