/** Plans: the objects that a queue and its policy need, in one form for all brokers, to print, draw or compare. */
import * as Delay from "../message/Delay.ts"
import { reasons } from "../message/Metadata.ts"
import type { RetryPolicy } from "../policy/RetryPolicy.ts"
import * as Policy from "../policy/RetryPolicy.ts"

/** An object that the broker must have. */
export interface PlannedObject {
  /** The kind, in the broker's own words: `queue`, `exchange`, `binding`, `topic`, `channel`. */
  readonly kind: string
  readonly name: string
  /** The arguments or attributes of the object, as text. */
  readonly details: string
  /** The object's group, such as the objects that all queues share. A group is printed as one object. */
  readonly group?: string
}

/** A path of messages between two objects or groups, by name. */
export interface Flow {
  readonly from: string
  readonly to: string
  /** When or why messages go this way, for example `after 5s`. */
  readonly label: string
}

/** A queue and its retry policy on a broker. */
export interface Plan {
  /** The broker's name, for example `memory`. */
  readonly broker: string
  readonly queue: string
  /** How delays are kept, in one line. */
  readonly delays: string
  /** The objects, in the order of creation. */
  readonly objects: ReadonlyArray<PlannedObject>
  readonly flows: ReadonlyArray<Flow>
  /** How many objects delays outside the policy may add, and when, in words. Default: none. */
  readonly growth?: string | undefined
  /**
   * The worst lateness of the policy's delays, in words, if the broker rounds them up by much. Default: it rounds by
   * little or not at all.
   */
  readonly lateness?: string | undefined
  /** Remarks for users. */
  readonly notes: ReadonlyArray<string>
}

/** The state of a planned object on the server; `unknown` if the server cannot be asked. */
export type State = "present" | "missing" | "different" | "unknown"

/** A planned object and its state. */
export interface Inspected extends PlannedObject {
  readonly state: State
  /** The difference, or the reason why the state is unknown. */
  readonly why?: string | undefined
}

/** A planned object, with its state if the server was asked. */
export type Shown = PlannedObject & Partial<Inspected>

/** Worst first: a group has the worst state of its members. */
const worst: ReadonlyArray<State> = ["different", "missing", "unknown", "present"]

const asOne = (group: string, members: ReadonlyArray<Shown>): Shown => {
  const kinds = Object.entries(Object.groupBy(members, ({ kind }) => kind)).map(([kind, found = []]) =>
    found.length === 1 ? kind : `${found.length} ${kind}s`
  )
  const state = worst.find((state) => members.some((member) => member.state === state))
  return { kind: "group", name: group, details: `${kinds.join(", ")}, shared by all queues`, ...(state && { state }) }
}

/** Returns the objects, with each group as one object in the place of its first member. */
export const grouped = (objects: ReadonlyArray<Shown>): ReadonlyArray<Shown> => {
  const groups = Map.groupBy(objects, ({ group }) => group)
  return objects.flatMap((object) => {
    if (object.group === undefined) return [object]
    const members = groups.get(object.group) ?? []
    return members[0] === object ? [asOne(object.group, members)] : []
  })
}

/** Whether the inspection found an object that is missing or different, or another problem. */
export const isAmiss = ({ findings, objects }: Inspection): boolean =>
  objects.some(({ state }) => state === "missing" || state === "different") ||
  findings.some(({ verdict }) => verdict === "bad")

/** A property of a queue on which a consumer relies. */
export interface Finding {
  /** The property, in words. */
  readonly about: string
  readonly verdict: "good" | "bad" | "unknown"
  readonly detail: string
}

/** A plan compared with the server. */
export interface Inspection {
  /** The objects of the plan, in its order. */
  readonly objects: ReadonlyArray<Inspected>
  readonly findings: ReadonlyArray<Finding>
}

/** Returns the label of the flow of retries. `steps` has at least one retry. */
export const after = (steps: ReadonlyArray<Policy.Step>): string => {
  if (steps.every(({ delay }) => delay[1] === 0)) return "retry at once"
  const listed = steps.slice(0, 5).map(({ delay: [low, high] }) => {
    return low === high ? Delay.format(high) : `${Delay.format(low)}..${Delay.format(high)}`
  })
  return `retry after ${listed.join(", ")}${steps.length > 5 ? ", …" : ""}`
}

/** Returns the flow of retries straight back to their queue, for brokers that need no other object. */
export const retries = (queue: string, retry: RetryPolicy): ReadonlyArray<Flow> => {
  const steps = Policy.schedule(retry)
  return steps.length === 0 ? [] : [{ from: queue, to: queue, label: after(steps) }]
}

/** Returns the flows of dead letters to their queues, labelled with reasons. */
export const deadLetters = (queue: string, retry: RetryPolicy): ReadonlyArray<Flow> => {
  const byTarget = Map.groupBy(reasons, (reason) => Policy.deadLetterQueue(retry, queue, reason))
  return [...byTarget].flatMap(([to, found]) => {
    return to === undefined
      ? []
      : [{ from: queue, to, label: found.length === reasons.length ? "dead letters" : found.join(", ") }]
  })
}

const quoted = (text: string): string => `"${text.replaceAll('"', "#quot;")}"`

/** Draws the flows as a Mermaid flowchart. */
export const mermaid = ({ flows }: Plan): string => {
  const ids = new Map<string, string>()
  const node = (name: string): string => {
    const existing = ids.get(name)
    if (existing !== undefined) return existing
    ids.set(name, `n${ids.size}`)
    return `${ids.get(name)}[${quoted(name)}]`
  }
  const lines = flows.map(
    ({ from, label, to }) => `  ${node(from)} -->${label === "" ? "" : `|${quoted(label)}|`} ${node(to)}`
  )
  return ["flowchart LR", ...lines].join("\n")
}
