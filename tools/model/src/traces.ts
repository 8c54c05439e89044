/**
 * Traces of the model, as readable lines: what happens in each step, and what the engine must do then. Copies are called a, b, c
 * ... in the order of their first mention.
 */
import type { Outcome, State } from "./alloy.ts"

export interface Trace {
  readonly name: string
  /** The copies that exist at the start. */
  readonly copies: ReadonlyArray<string>
  readonly steps: ReadonlyArray<Step>
}

/**
 * An event, and all that the engine does then, in any order: `["End a Later", "a Retry later", "b runs"]`. The handler ends with
 * a later retry; the engine requests that, and runs the next one.
 */
type Step = readonly [act: string, ...does: ReadonlyArray<string>]

/** The atoms that a copy has in a relation of a state. */
const atomOf = (state: State, relation: string, atom: string): string | undefined =>
  state.get(relation)?.find(([first]) => first === atom)?.[1]

const has = (state: State, set: string, atom: string): boolean => state.get(set)!.some(([first]) => first === atom)

/** The name of an atom that exists once. */
const word = (atom = ""): string => atom.replace(/\$\d+$/, "")

/** The core's words for the requests of the model. */
const words: Record<string, string> = {
  Ack: "Ack",
  Drop: "Drop",
  Again: "Retry",
  Later: "Retry later",
  Bury: "DeadLetter",
  Hop: "Release later",
  Release: "Release"
}

const sizes: Record<string, string> = {
  Whole: "",
  NoHistory: " without history",
  NoText: " without error-text",
  NoError: " without error",
  Least: " without all"
}

/** The event of the step that the state begins. */
const actOf = (state: State): string => word(atomOf(state, "act", "Step$0"))

const isAsked = (state: State, copy: string): boolean => /Asking|Probing/.test(atomOf(state, "stage", copy) ?? "")

/** Describes what the engine does with a copy in the step from one state to the next. */
const doesOf = (act: string, copy: string, before: State, after: State): string | undefined => {
  if (act === "Begin") return has(before, "Last", copy) ? "runs for the last time" : "runs"
  if (!isAsked(after, copy) || (isAsked(before, copy) && !/Refuse|Gone/.test(act))) return undefined
  return `${words[word(atomOf(after, "wish", copy))]}${sizes[word(atomOf(after, "size", copy))]}`
}

/** The copies of a step; of one that is stored, the original comes first. */
const copiesOf = (before: State, after: State): ReadonlyArray<string> =>
  (before.get("on") ?? [])
    .map(([, copy]) => copy!)
    .toSorted((a, b) => Number(has(after, "Copied", b)) - Number(has(after, "Copied", a)))

/** Makes a trace of an instance. Its last state serves only for comparison. */
const make = (name: string, states: ReadonlyArray<State>): Trace => {
  const names = new Map<string, string>()
  const nameOf = (copy: string): string => {
    if (!names.has(copy)) names.set(copy, String.fromCodePoint(97 + names.size))
    return names.get(copy)!
  }
  const first = states[0]!
  const initial = first.get("InBroker")!.map(([copy]) => copy!)
  const copies = initial.map(nameOf)
  const steps: Array<[string, ...Array<string>]> = []
  for (const [index, before] of states.slice(0, -1).entries()) {
    const after = states[index + 1]!
    const act = actOf(before)
    if (act === "Idle") break
    const all = copiesOf(before, after)
    const [copy = ""] = all
    const does = act === "Cut" ? undefined : doesOf(act, copy, before, after)
    const done = does === undefined ? [] : [`${nameOf(copy)} ${does}`]
    // Runs that may begin, begin at once.
    if (act === "Begin") steps.at(-1)!.push(...done)
    else steps.push([lineOf(act, all, before, after, nameOf), ...done])
  }
  return { name, copies, steps }
}

/** The different traces of the instances that Alloy found; some differ only in what no step shows. */
export const of = (outcomes: ReadonlyArray<Outcome>): ReadonlyArray<Trace> => {
  const all = outcomes.flatMap(({ command, instances }) =>
    instances.map((states, index) => make(`${command} ${index + 1}`, states))
  )
  return [...new Map(all.map((trace) => [JSON.stringify(trace.steps), trace])).values()]
}

/** The number of steps to the last state, which is where the shortest counterexample shows its error. */
export const lengthOf = (states: ReadonlyArray<State>): number => states.length - 2

const lineOf = (
  act: string,
  copies: ReadonlyArray<string>,
  before: State,
  after: State,
  nameOf: (copy: string) => string
): string => {
  if (act === "Cut") return act
  const [copy = ""] = copies
  const words = [act, ...copies.map(nameOf)]
  if (act === "End") words.push(word(atomOf(after, "wish", copy)))
  if (act === "Deliver" && has(before, "Early", copy)) words.push("early")
  return words.join(" ")
}
